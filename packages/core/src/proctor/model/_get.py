"""From a name to a model: provider, credentials, arguments, memory of what was made."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from proctor import plugins
from proctor.contracts import ModelAPI, ModelProvider, UsageError
from proctor.model._active import active_model, active_model_roles
from proctor.model._model import Model
from proctor.model._open import current_loop, memory, note_use
from proctor.model._settings import check_base_url, generation_settings
from proctor.schema import GenerateConfig

__all__ = ["get_model", "make_model"]


def get_model(
    model: str | Model | None = None,
    *,
    role: str | None = None,
    default: str | Model | None = None,
    config: GenerateConfig | Mapping[str, Any] | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    memoize: bool = True,
    **model_args: Any,
) -> Model:
    """A model by name, by role, or the one under evaluation.

    Args:
        model: ``provider/model``, or a Model, which is used as it is but for ``config`` and ``role``.
        role: the role to look up first, unless ``model`` is a Model; the model gets it either way, for the log and the
            usage.
        default: what plays ``role`` when the run gave it to no model.
        config: settings of this model. They lie over those that a given Model or the model under evaluation has
            already, and under those that the run gave to ``role``.
        base_url: where requests go, when it is not the provider's own address.
        api_key: the credential, when it is not in the environment.
        memoize: whether the same arguments give the same object (per run and event loop), and with it the same
            connections.
        model_args: the provider's own arguments (``-M``), checked against what it declares. Arguments with the names of
            the parameters above can be given with ``-M`` only, or to ``make_model``.

    Raises:
        UsageError: for a name without a provider, an unknown provider, argument or setting, or when no model was said.
        PrerequisiteError: when the provider's SDK or key is missing.
    """
    settings = None if config is None else generation_settings(config, "get_model()")
    if isinstance(model, Model):
        return _variant(model, settings, role)
    if role is not None and (chosen := active_model_roles.get().get(role)) is not None:
        # What the run says of a role goes before what the code says.
        return chosen if settings is None else chosen.with_config(settings.merge(chosen.config))
    name = model or default
    if name is None:
        name = active_model.get() or os.environ.get("PROCTOR_EVAL_MODEL", "").partition(",")[0].strip()
        if not name:
            raise UsageError("no model was given: say which with --model, for example --model openai/gpt-4o-mini")
    if isinstance(name, Model):
        return _variant(name, settings, role)
    return make_model(name, model_args, role=role, config=settings, base_url=base_url, api_key=api_key, memoize=memoize)


def _variant(model: Model, settings: GenerateConfig | None, role: str | None) -> Model:
    note_use(model)
    if settings is None and (role is None or model.role == role):
        return model
    settings = settings or GenerateConfig()
    return model.with_config(settings, role=role, own_connections=settings.max_connections)


def make_model(
    name: str,
    args: Mapping[str, Any] | None = None,
    *,
    role: str | None = None,
    config: GenerateConfig | Mapping[str, Any] | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    memoize: bool = True,
) -> Model:
    """The model ``name`` of a provider; no role and no running sample is asked.

    Args:
        name: ``provider/model``.
        args: the provider's own arguments by name (``-M``); any name goes, also those of the parameters here.
        role: the role that it gets.
        config: settings of this model, under those of the task and the call.
        base_url: where requests go, when it is not the provider's own address.
        api_key: the credential, when it is not in the environment.
        memoize: whether the same arguments give the same object.

    Raises:
        UsageError: for a name without a provider, an unknown provider, argument or setting, or a malformed address.
        PrerequisiteError: when the provider's SDK or key is missing.
    """
    if not isinstance(name, str):
        raise UsageError(f"a model is named provider/model, for example openai/gpt-4o-mini; {name!r} is not")
    args = {} if args is None else args
    settings = generation_settings(config, f"the model {name}")
    check_base_url(base_url, f"the base URL of {name}")
    if not memoize:
        return _make(name, role, settings, base_url, api_key, args)
    key = _key(name, role, settings, base_url, api_key, args)
    made = memory()
    known = made.get(key)
    if known is None:
        known = made[key] = _make(name, role, settings, base_url, api_key, args)
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
    plugins.check_backend(provider)
    args = plugins.build_args(provider, model_args)
    if api_key is None:
        plugins.require_env(provider)  # before the factory imports an SDK
    api: ModelAPI = plugins.make(
        "model_providers", provider, model_name, base_url=base_url, api_key=api_key, config=config, args=args
    )
    merged = api.config.merge(config) if api.config is not None and api.config is not config else config
    return Model(
        api,
        merged,
        name,
        role=role,
        max_connections=provider.max_connections,
        own_connections=config.max_connections,
        adaptive=provider.adaptive,
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
    args = json.dumps(model_args, sort_keys=True, default=lambda value: f"{type(value).__name__}@{id(value)}")
    return name, role, config.model_dump_json(exclude_none=True), base_url, secret, args, current_loop()
