from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import click

    from proctor.contracts import Display, LogStore, ModelAPI, Observer, SandboxDriver
    from proctor.schema import GenerateConfig

_BOTH = ("asyncio", "trio")
DEFAULT_CONNECTIONS = 20
"""Requests in flight at once on a credential whose provider and user say nothing, and where a moving limit starts."""


class ModelFactory(Protocol):
    """Makes the API of one model; the SDK is imported here and not before.

    Example:
        >>> def make_echo(name, *, base_url, api_key, config, args):
        ...     return Echo(name, base_url=base_url, config=config)
    """

    def __call__(
        self, name: str, *, base_url: str | None, api_key: str | None, config: GenerateConfig, args: Any
    ) -> ModelAPI:
        """Make the API for ``name`` (what follows the first ``/``); ``args`` is an instance of the record's ``args``.

        Raises:
            PrerequisiteError: if the SDK or a key is missing.

        Example:
            >>> make_echo("loud", base_url=None, api_key=None, config=GenerateConfig(), args=None)
            Echo('loud')
        """


def _unlimited(cpus: int) -> int | None:
    return None


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """Models named ``<name>/...``.

    Args:
        name: the provider, equal to the entry point's name.
        factory: makes a :class:`ModelAPI`.
        args: a dataclass whose fields are what ``-M`` accepts, or ``None``.
        env: alternatives, each a set of environment variables that suffices together; ``()`` when the SDK finds
            credentials by itself.
        max_connections: requests in flight at once for a credential, unless told otherwise.
        adaptive: whether that number may follow the server's answers; ``False`` for models in the process itself.
        backends: async back-ends that the API runs on.
        summary: one line for ``proctor plugins show``.

    Example:
        >>> from proctor.contracts import ModelProvider
        >>> provider = ModelProvider(name="echo", factory=make_echo, env=(("ECHO_KEY",), ("ECHO_ID", "ECHO_SECRET")))
        >>> provider.max_connections, provider.backends
        (20, ('asyncio', 'trio'))
    """

    name: str
    factory: ModelFactory
    args: type | None = None
    env: tuple[tuple[str, ...], ...] = ()
    max_connections: int = DEFAULT_CONNECTIONS
    adaptive: bool = True
    backends: tuple[str, ...] = _BOTH
    summary: str = ""


@dataclass(frozen=True, slots=True)
class SandboxProvider:
    """Sandboxes that a task or a sample asks for by ``name``.

    Args:
        name: equal to the entry point's name.
        factory: makes the driver, once a run.
        default_max_sandboxes: sandboxes at once, given the CPU budget; ``None`` means no limit.
        config_files: file names that are picked up beside a task file, such as ``compose.yaml``.
        backends: async back-ends that the driver runs on.
        summary: one line for ``proctor plugins show``.
        takes_config: whether a configuration means anything to it; of one that does not, a run warns.
        default_max_execs: commands at once in all its sandboxes together, given the CPU budget; ``None`` means no
            limit. Waiting for a place is not working time of the sample.

    Example:
        >>> from proctor.contracts import SandboxProvider
        >>> provider = SandboxProvider(name="toy", factory=ToyDriver, default_max_sandboxes=lambda cpus: 2 * cpus)
        >>> provider.default_max_sandboxes(4), provider.default_max_execs(4)
        (8, None)
    """

    name: str
    factory: Callable[[], SandboxDriver]
    default_max_sandboxes: Callable[[int], int | None] = _unlimited
    config_files: tuple[str, ...] = ()
    backends: tuple[str, ...] = _BOTH
    summary: str = ""
    takes_config: bool = True
    default_max_execs: Callable[[int], int | None] = _unlimited


@dataclass(frozen=True, slots=True)
class LogStoreProvider:
    """Where logs whose location starts with ``<scheme>://`` live (``file`` for plain paths).

    Args:
        scheme: equal to the entry point's name.
        factory: makes the store.
        summary: one line for ``proctor plugins show``.

    Example:
        >>> from proctor.contracts import LogStoreProvider
        >>> provider = LogStoreProvider(scheme="dict", factory=DictStore, summary="gone when the program ends")
    """

    scheme: str
    factory: Callable[[], LogStore]
    summary: str = ""

    @property
    def name(self) -> str:
        """The scheme, under the name that all records share.

        Example:
            >>> provider.name
            'dict'
        """
        return self.scheme


@dataclass(frozen=True, slots=True)
class DisplayProvider:
    """A screen, chosen with ``--display name[:k=v,...]``.

    Args:
        name: equal to the entry point's name.
        factory: makes the display; it gets an instance of ``args``, or ``None`` without one.
        args: a dataclass whose fields are the accepted options, or ``None``.
        summary: one line for ``proctor plugins show``.
        backends: async back-ends that it runs beside; under another one the core's own display takes its place.

    Example:
        >>> from proctor.contracts import DisplayProvider
        >>> provider = DisplayProvider(name="counter", factory=lambda args: Counter(), summary="what is done")
        >>> isinstance(provider.factory(None), Display)
        True
    """

    name: str
    factory: Callable[[Any], Display]
    args: type | None = None
    summary: str = ""
    backends: tuple[str, ...] = _BOTH


@dataclass(frozen=True, slots=True)
class ObserverProvider:
    """A tracker or notifier, asked for with ``--observer name[:k=v,...]``.

    Args:
        name: equal to the entry point's name.
        factory: makes the observer; it gets an instance of ``args``, or ``None`` without one.
        args: a dataclass whose fields are the accepted options, or ``None``.
        summary: one line for ``proctor plugins show``.
        backends: async back-ends that it runs beside; a run under another one is refused.

    Example:
        >>> from dataclasses import dataclass
        >>> from proctor.contracts import ObserverProvider
        >>> @dataclass
        ... class DiaryArgs:
        ...     title: str = "diary"
        >>> provider = ObserverProvider(name="diary", factory=lambda args: Diary(), args=DiaryArgs)
        >>> isinstance(provider.factory(DiaryArgs(title="today")), Observer)
        True
    """

    name: str
    factory: Callable[[Any], Observer]
    args: type | None = None
    summary: str = ""
    backends: tuple[str, ...] = _BOTH


@dataclass(frozen=True, slots=True)
class RunnerProvider:
    """A way to run shards (local processes, a cluster).

    Args:
        name: equal to the entry point's name.
        factory: makes the runner; it gets an instance of ``args``, or ``None`` without one.
        args: a dataclass whose fields are the accepted options, or ``None``.
        summary: one line for ``proctor plugins show``.

    Example:
        >>> from proctor.contracts import RunnerProvider
        >>> provider = RunnerProvider(name="queue", factory=lambda args: {"queue": "short"})
        >>> provider.factory(None)
        {'queue': 'short'}
    """

    name: str
    factory: Callable[[Any], Any]
    args: type | None = None
    summary: str = ""


@dataclass(frozen=True, slots=True)
class PartitionerProvider:
    """A way to cut units into shards.

    Args:
        name: equal to the entry point's name.
        factory: makes the partitioner; it gets an instance of ``args``, or ``None`` without one.
        args: a dataclass whose fields are the accepted options, or ``None``.
        summary: one line for ``proctor plugins show``.

    Example:
        >>> from proctor.contracts import PartitionerProvider
        >>> def make_halves(args):
        ...     return lambda samples: [samples[: len(samples) // 2], samples[len(samples) // 2 :]]
        >>> provider = PartitionerProvider(name="halves", factory=make_halves)
        >>> provider.factory(None)([1, 2, 3, 4])
        [[1, 2], [3, 4]]
    """

    name: str
    factory: Callable[[Any], Any]
    args: type | None = None
    summary: str = ""


@dataclass(frozen=True, slots=True)
class CommandProvider:
    """A command of its own: ``proctor <name>``.

    Args:
        name: equal to the entry point's name.
        factory: makes the click command; click is imported here and not before.
        summary: the line in ``proctor --help``, shown without making the command.

    Example:
        >>> from proctor.contracts import CommandProvider
        >>> def make_hello():
        ...     import click
        ...
        ...     return click.Command("hello", callback=lambda: click.echo("Hello."))
        >>> provider = CommandProvider(name="hello", factory=make_hello, summary="Greet somebody.")
        >>> provider.factory().callback()
        Hello.
    """

    name: str
    factory: Callable[[], click.Command]
    summary: str = ""


@dataclass(frozen=True, slots=True)
class TaskPackage:
    """An importable package with task files, addressed as ``<name>/<task>``.

    Args:
        name: equal to the entry point's name.
        package: the dotted name of the package.
        summary: one line for ``proctor plugins show``.

    Example:
        >>> from proctor.contracts import TaskPackage
        >>> TaskPackage(name="acme", package="acme_tasks").package  # its tasks are acme/TASK
        'acme_tasks'
    """

    name: str
    package: str
    summary: str = ""
