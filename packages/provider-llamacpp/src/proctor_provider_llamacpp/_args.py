"""What ``-M`` accepts for GGUF models."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["DEFAULT_SLOTS", "LlamaArgs"]

DEFAULT_SLOTS = 4


@dataclass
class LlamaArgs:
    """Arguments of a GGUF model. Models of one file and the same arguments are loaded once and shared."""

    n_ctx: int = field(
        default=4096,
        metadata={"help": "tokens of one conversation with its reply; memory: n_ctx x n_parallel"},
    )
    n_parallel: int = field(default=DEFAULT_SLOTS, metadata={"help": "conversations that are decoded at once (slots)"})
    n_threads: int | None = field(
        default=None, metadata={"help": "CPU threads (default: the physical cores, or what a container may use)"}
    )
    n_gpu_layers: int = field(default=-1, metadata={"help": "layers kept on a GPU; -1: as many as fit, 0: none"})
    chat_template: str | None = field(
        default=None,
        metadata={"help": "a Jinja chat template (a file, or its text) instead of the model's own; or `chatml-tools`"},
    )
    flash_attention: bool = field(
        default=False, metadata={"help": "less memory for long contexts; a seed no longer fixes the text"}
    )

    def __post_init__(self) -> None:
        for name, least in (("n_ctx", 32), ("n_parallel", 1), ("n_gpu_layers", -1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")
        if self.n_threads is not None and self.n_threads < 1:
            raise ValueError(f"n_threads must be at least 1, not {self.n_threads}")
