"""Compose files: read, checked, and turned into what a sample gets."""

from proctor_sandbox_docker.compose._document import Given, UnsupportedKeyError
from proctor_sandbox_docker.compose._env_file import parse_env
from proctor_sandbox_docker.compose._interpolate import InterpolationError, Lookup, MissingVariableError, interpolate
from proctor_sandbox_docker.compose._order import start_order, waits_for
from proctor_sandbox_docker.compose._project import read_compose, read_compose_file, read_settings
from proctor_sandbox_docker.compose._risks import ALLOW, RISKS, allowed_risks, project_risks
from proctor_sandbox_docker.compose._values import read_bytes, read_command, read_seconds

__all__ = [
    "ALLOW",
    "RISKS",
    "Given",
    "InterpolationError",
    "Lookup",
    "MissingVariableError",
    "UnsupportedKeyError",
    "allowed_risks",
    "interpolate",
    "parse_env",
    "project_risks",
    "read_bytes",
    "read_command",
    "read_compose",
    "read_compose_file",
    "read_seconds",
    "read_settings",
    "start_order",
    "waits_for",
]
