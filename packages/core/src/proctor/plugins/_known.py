"""Which distribution provides a well-known name: for the error of somebody who has not installed it."""

from __future__ import annotations

from typing import Final

_OPENAI = (
    "azureai baseten cerebras dashscope deepinfra deepseek fireworks grok groq hf-inference-providers hyperbolic "
    "llama-cpp-server lm-studio minimax mistral moonshot nebius novita nvidia ollama openai openai-api openrouter "
    "perplexity sambanova sglang siliconflow together vllm zai"
)

KNOWN: Final[dict[str, dict[str, str]]] = {
    "model_providers": {
        **dict.fromkeys(_OPENAI.split(), "proctor-provider-openai"),
        "anthropic": "proctor-provider-anthropic",
        "bedrock": "proctor-provider-bedrock",
        "sagemaker": "proctor-provider-sagemaker",
        "google": "proctor-provider-google",
        "vertex": "proctor-provider-google",
        "llamacpp": "proctor-provider-llamacpp",
        "mock": "proctor-core",
    },
    "sandbox_providers": {
        "docker": "proctor-sandbox-docker",
        "k8s": "proctor-sandbox-k8s",
        "local": "proctor-core",
    },
    "log_stores": {
        "s3": "proctor-log-s3",
        "file": "proctor-core",
        "memory": "proctor-core",
    },
    "displays": {
        "textual": "proctor-display-textual",
        "none": "proctor-core",
        "plain": "proctor-core",
        "rich": "proctor-core",
    },
    "observers": {
        "acp": "proctor-acp",
        "lark": "proctor-notify-lark",
        "mlflow": "proctor-tracker-mlflow",
    },
    "runners": {
        "dlc": "proctor-runner-dlc",
        "k8s": "proctor-runner-k8s",
        "slurm": "proctor-runner-slurm",
    },
    "commands": {
        "recipe": "proctor-recipe",
        "view": "proctor-view",
    },
}
