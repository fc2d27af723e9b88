"""From a name to a model: provider, credentials, arguments, memory of what was made."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from typing import Any

from anyio.lowlevel import current_token

from proctor import plugins
from proctor.contracts import ModelProvider, UsageError
from proctor.model._active import active_model, active_model_roles
from proctor.model._model import Model
from proctor.schema import GenerateConfig

__all__ = ["close_models", "get_model"]

_made: dict[tuple[object, ...], Model] = {}


def get_model(
    model: str | Model | None = None,
    *,
    role: str | None = None,
    default: str | Model | None = None,
    config: GenerateConfig | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    memoize: bool = True,
    **model_args: Any,
) -> Model:
    """A model by name, by role, or the one under evaluation.

    Args:
        model: ``provider/model``; a Model is returned as it is.
        role: the role to look up first; the model gets it either way, for the log and the usage.
        default: what plays ``role`` when the run gave it to no model.
        config: settings of this model, under those of the task and the call.
        base_url: where requests go, when it is not the provider's own address.
        api_key: the credential, when it is not in the environment.
        memoize: whether the same arguments give the same object (per event loop), and with it the same connections.
        model_args: the provider's own arguments (``-M``), checked against what it declares.

    Raises:
        UsageError: for a name without a provider, an unknown provider or argument, or when no model was said.
        PrerequisiteError: when the provider's SDK or key is missing.
    """
    if isinstance(model, Model):
        return model
    if role is not None and role in active_model_roles.get():
        return active_model_roles.get()[role]
    name = model or default
    if name is None:
        current = active_model.get()
        if current is None:
            name = os.environ.get("PROCTOR_EVAL_MODEL", "").partition(",")[0].strip()
            if not name:
                raise UsageError("no model was given: say which with --model, for example --model openai/gpt-4o-mini")
        else:
            name = current
    if isinstance(name, Model):
        return name if role is None or name.role == role else name.with_config(config or GenerateConfig(), role=role)
    settings = config or GenerateConfig()
    if not memoize:
        return _make(name, role, settings, base_url, api_key, model_args)
    key = _key(name, role, settings, base_url, api_key, model_args)
    known = _made.get(key)
    if known is None:
        known = _made[key] = _make(name, role, settings, base_url, api_key, model_args)
    return known


def _make(
    name: str,
    role: str | None,
    config: GenerateConfig,
    base_url: str | None,
    api_key: str | None,
    model_args: Mapping[str, Any],
) -> Model:
    provider_name, slash, model_name = name.partition("/")
    if not (slash and provider_name and model_name):
        raise UsageError(f"a model is named provider/model, for example openai/gpt-4o-mini; {name!r} is not")
    provider: ModelProvider = plugins.get("model_providers", provider_name)
    args = plugins.build_args(provider, model_args)
    if api_key is None:
        plugins.require_env(provider)  # before the factory imports an SDK
    api = provider.factory(model_name, base_url=base_url, api_key=api_key, config=config, args=args)
    merged = api.config.merge(config) if api.config is not None and api.config is not config else config
    return Model(
        api,
        merged,
        name,
        role=role,
        max_connections=provider.max_connections,
        own_connections=config.max_connections,
        args=model_args,
    )


def _key(
    name: str,
    role: str | None,
    config: GenerateConfig,
    base_url: str | None,
    api_key: str | None,
    model_args: Mapping[str, Any],
) -> tuple[object, ...]:
    secret = hashlib.blake2b(api_key.encode(), digest_size=16).hexdigest() if api_key else None
    try:
        loop: object = current_token()
    except RuntimeError:  # no loop runs: a task file asks while it is loaded
        loop = None
    args = json.dumps(model_args, sort_keys=True, default=lambda value: f"{type(value).__name__}@{id(value)}")
    return name, role, config.model_dump_json(exclude_none=True), base_url, secret, args, loop


async def close_models() -> None:
    """Close the connections of all models that ``get_model`` made, as far as they belong to this event loop."""
    loop = current_token()
    for key, model in list(_made.items()):
        if key[-1] is None or key[-1] == loop:
            try:
                await model.api.aclose()
            except Exception:  # what was evaluated stands, whatever a connection does at its end
                logging.getLogger(__name__).exception("the connections of %s could not be closed", model.name)
        if key[-1] == loop:
            del _made[key]
