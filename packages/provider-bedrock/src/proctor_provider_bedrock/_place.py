"""Where requests go and whose they are: region, address and credentials, found before the first request."""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ProfileNotFound

from proctor.contracts import ModelAPI, PrerequisiteError, UsageError
from proctor.model import check_base_url
from proctor_provider_bedrock._args import BedrockArgs
from proctor_provider_bedrock._family import arn_region
from proctor_provider_bedrock._session import new_session

__all__ = ["Place", "find_place"]

logger = logging.getLogger("proctor.provider.bedrock")

_REGION = re.compile(r"[a-z]{2,}(?:-[a-z]+)+-\d{1,2}")
_BEARER = "AWS_BEARER_TOKEN_BEDROCK"
_IN_FILES = frozenset({"env", "explicit", "shared-credentials-file", "config-file"})
_HOW = (
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE (or -M profile=NAME) or, for an API key of Bedrock, "
    f"{_BEARER}; `aws sts get-caller-identity` shows whom you are"
)


@dataclass(frozen=True, slots=True)
class Place:
    """An address with what opens it.

    Attributes:
        region: the AWS region.
        source: who said so.
        profile: the profile that was asked for, if any.
        base_url: the address, when it is not the region's own.
        api_key: an API key of Bedrock, when there is one.
        identity: what tells these credentials from others.
        secrets: what no message may repeat.
    """

    region: str
    source: str
    profile: str | None
    base_url: str | None
    api_key: str | None = field(repr=False)
    identity: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)

    def connection_key(self) -> str:
        """A hash of the credentials, the region and the address."""
        return ModelAPI.hash_key("bedrock", self.identity, f"{self.region} {self.base_url or ''}")


def find_place(model: str, base_url: str | None, api_key: str | None, args: BedrockArgs) -> Place:
    """Where ``model`` is and with what credentials it is asked.

    Raises:
        PrerequisiteError: if there is no region, no such profile, or there are no credentials.
        UsageError: for a region or an address that can't be one.
    """
    session = _session(model, args.profile)
    region, source = _region(model, args, session)
    address = base_url or os.environ.get("BEDROCK_BASE_URL") or None
    check_base_url(address, "--model-base-url" if base_url else "BEDROCK_BASE_URL", ("http", "https"))
    key = api_key or os.environ.get(_BEARER) or None
    identity, secrets = (key, (key,)) if key else _identity(model, args.profile, session)
    logger.info("bedrock/%s: region %s, from %s", model, region, source)
    return Place(region, source, args.profile, address, key, identity, secrets)


def _session(model: str, profile: str | None) -> Any:
    try:
        return new_session(profile)
    except ProfileNotFound as error:
        said = "-M profile" if profile else "AWS_PROFILE"
        raise PrerequisiteError(
            f"bedrock/{model}: {error}; {said} names one that ~/.aws/config does not have"
        ) from None


def _region(model: str, args: BedrockArgs, session: Any) -> tuple[str, str]:
    """The region and who said so: the argument, an ARN, the environment or the profile, in this order."""
    said = [
        (args.region, "-M region"),
        (arn_region(model), "the model's ARN"),
        (os.environ.get("AWS_REGION"), "AWS_REGION"),
        (os.environ.get("AWS_DEFAULT_REGION"), "AWS_DEFAULT_REGION"),
        (session.region_name, f"the profile {session.profile_name!r}"),
    ]
    region, source = next(((region, source) for region, source in said if region), (None, ""))
    if region is None:
        raise PrerequisiteError(
            f"bedrock/{model}: say which AWS region: -M region=us-east-1, or export AWS_REGION=us-east-1, or "
            "`aws configure set region us-east-1`"
        )
    if not _REGION.fullmatch(region):
        raise UsageError(f"bedrock/{model}: {region!r} of {source} is no AWS region, such as us-east-1")
    return region, source


def _identity(model: str, profile: str | None, session: Any) -> tuple[str, tuple[str, ...]]:
    """What tells the credentials of the chain from others, and the secrets in them that are known already."""
    credentials = _credentials(session, model)
    if credentials.method not in _IN_FILES:
        # A role, a program or a service gives those, anew from time to time: whose they are stands in the profile.
        return f"{credentials.method} {profile or session.profile_name}", ()
    frozen = credentials.get_frozen_credentials()
    secrets = tuple(text for text in (frozen.secret_key, frozen.token) if text)
    return str(frozen.access_key), secrets


def _credentials(session: Any, model: str) -> Any:
    """The credentials that the SDK's chain finds.

    Raises:
        PrerequisiteError: if it finds none.
    """
    try:
        credentials = session.get_credentials()
    except BotoCoreError as error:
        raise PrerequisiteError(f"bedrock/{model}: there are no usable AWS credentials ({error}). {_HOW}.") from None
    if credentials is None:
        raise PrerequisiteError(f"bedrock/{model}: there are no AWS credentials. {_HOW}.")
    return credentials
