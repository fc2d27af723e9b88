"""What a sample gets, and how it is read from compose files and settings."""

from proctor_sandbox_docker.compose._document import Given, UnsupportedKeyError
from proctor_sandbox_docker.compose._env_file import parse_env
from proctor_sandbox_docker.compose._interpolate import InterpolationError, Lookup, MissingVariableError, interpolate
from proctor_sandbox_docker.compose._order import start_order, waits_for
from proctor_sandbox_docker.compose._project import read_compose, read_compose_file, read_settings
from proctor_sandbox_docker.compose._risks import ALLOW, RISKS, allowed_risks, project_risks
from proctor_sandbox_docker.compose._spec import (
    BuildSpec,
    HealthSpec,
    MountSpec,
    NetworkSpec,
    PortSpec,
    ProjectSpec,
    ServiceSpec,
    StartCondition,
    VolumeSpec,
)
from proctor_sandbox_docker.compose._values import read_bytes, read_command, read_seconds

__all__ = [
    "ALLOW",
    "RISKS",
    "BuildSpec",
    "Given",
    "HealthSpec",
    "InterpolationError",
    "Lookup",
    "MissingVariableError",
    "MountSpec",
    "NetworkSpec",
    "PortSpec",
    "ProjectSpec",
    "ServiceSpec",
    "StartCondition",
    "UnsupportedKeyError",
    "VolumeSpec",
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
