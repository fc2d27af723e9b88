"""GGUF models in the process itself, through llama.cpp."""

from proctor_provider_llamacpp._args import LlamaArgs

__all__ = ["LlamaArgs"]
