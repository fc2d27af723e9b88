"""Sessions of the SDK: each has credentials of its own, and all share what the SDK reads of its API descriptions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import boto3
import botocore.session
from botocore.loaders import create_loader

__all__ = ["new_session"]


@lru_cache(maxsize=4)
def _loader(data_path: str | None) -> Any:
    return create_loader(data_path)


def new_session(profile: str | None) -> Any:
    """A new session; reading the descriptions anew for each would take a fifth of a second.

    Raises:
        ProfileNotFound: if there is no such profile.
    """
    core = botocore.session.Session()
    core.register_component("data_loader", _loader(core.get_config_variable("data_path")))
    session = boto3.Session(botocore_session=core, profile_name=profile)
    core.get_scoped_config()  # it looks for the profile
    return session
