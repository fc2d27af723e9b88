from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

import pytest

F = TypeVar("F", bound=Callable[..., Any])
_ATTRIBUTE = "__proctor_check__"
_LIMIT = "__proctor_seconds__"

SECONDS = 120.0
"""What an async check may take: a component that hangs fails, and the run goes on."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a suite.

    Attributes:
        id: its stable name, such as ``model.usage``.
        level: ``must`` for what the core relies on, ``should`` for what people expect.
        needs: the capabilities without which it says nothing, separated by spaces.
    """

    id: str
    level: Literal["must", "should"]
    needs: str | None


def check(
    id: str, *, level: Literal["must", "should"] = "must", needs: str | None = None, seconds: float | None = None
) -> Callable[[F], F]:
    """Declare a test method of a suite as the check ``id``; see :class:`Check`.

    Args:
        seconds: after which a check has failed, 120 by default for one that is async, and none for another. A check
            that cannot be cancelled then, since it blocks its event loop or shields itself, ends the run of the tests
            a little later.
    """

    def declare(function: F) -> F:
        is_async = inspect.iscoroutinefunction(function)
        limit = seconds if seconds is not None or not is_async else SECONDS
        declared: Any = _bounded(function, limit) if is_async and limit is not None else function
        setattr(declared, _ATTRIBUTE, Check(id, level, needs))
        setattr(declared, _LIMIT, limit)
        return declared  # type: ignore[no-any-return]  # as it came, or a coroutine function in its place

    return declare


def _bounded(function: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    @functools.wraps(function)
    async def run(*args: Any, **kwargs: Any) -> None:
        import anyio  # pytest loads this file in every run where the kit is installed

        with anyio.move_on_after(seconds) as scope:
            await function(*args, **kwargs)
        assert not scope.cancelled_caught, f"not done after {seconds:g} s"

    return run


def check_of(function: object) -> Check | None:
    """The check that ``function`` was declared as."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, Check) else None


def seconds_of(function: object) -> float | None:
    """What the check that ``function`` was declared as may take; None without a limit."""
    found: float | None = getattr(function, _LIMIT, None)
    return found


@dataclass(frozen=True, slots=True)
class Needed:
    """What a subclass of a suite gives: an attribute, or a fixture among its methods.

    Attributes:
        name: of the attribute or fixture.
        example: a line that gives it.
        capability: it is needed with this one only.
        unless: a fixture that makes it needless.
    """

    name: str
    example: str
    capability: str | None = None
    unless: str | None = None


class Suite:
    """The base of the suites: a subclass in a plugin's tests says what is tested and what it can do.

    Attributes:
        needed: what a subclass must give; its tests are not collected without.
        kind: the kind of component, for the report.
        capabilities: what the component can do; checks that need something else are left out.
        backends: the async back-ends that it runs on; its record must say the same.
        expected_failures: check ids that fail today, each with its reason; one that passes is an error.

    A subclass cannot override a check: a suite that was weakened says nothing. It raises ``TypeError`` when it tries,
    as it does for a capability that no check knows. What it lacks is told when its tests are collected.
    """

    needed: ClassVar[tuple[Needed, ...]] = ()
    kind: ClassVar[str] = "component"
    capabilities: ClassVar[frozenset[str]] = frozenset()
    backends: ClassVar[tuple[str, ...]] = ("asyncio", "trio")
    expected_failures: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def component(cls) -> str:
        """What the report calls that which is tested."""
        return cls.__name__.removeprefix("Test")

    @classmethod
    def checks(cls) -> tuple[Check, ...]:
        """The checks of this suite, by id."""
        found = (check_of(getattr(cls, name, None)) for name in dir(cls))
        return tuple(sorted((one for one in found if one is not None), key=lambda one: one.id))

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _refuse_overrides(cls)
        _refuse_wrong_types(cls)
        checks = cls.checks()
        if not checks:
            return
        if unknown := sorted(set(cls.expected_failures) - {one.id for one in checks}):
            raise TypeError(f"{cls.__name__}.expected_failures: no check is called {', '.join(unknown)}")
        if empty := sorted(id for id, reason in cls.expected_failures.items() if not reason.strip()):
            raise TypeError(f"{cls.__name__}.expected_failures needs a reason for {', '.join(empty)}")
        known = {word for one in checks for word in (one.needs or "").split()}
        if unknown := sorted(cls.capabilities - known):
            raise TypeError(
                f"{cls.__name__}.capabilities: no check needs {', '.join(unknown)}; "
                f"what it may name is {', '.join(sorted(known)) or 'nothing'}"
            )

    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        """Every async check runs once on each back-end."""
        return str(request.param)


def problem_of(suite: type[Suite]) -> str | None:
    """What is wrong with a suite whose tests are about to be collected, in a sentence; None when nothing is."""
    try:
        _refuse_overrides(suite)  # a check may have been replaced after the class was made
    except TypeError as error:
        return str(error)
    lines = [
        f"{suite.__name__} declares the capability `{one.capability}`: it needs `{one.name}`, such as {one.example}"
        if one.capability
        else f"{suite.__name__} needs `{one.name}`, such as {one.example}"
        for one in suite.needed
        if (one.capability is None or one.capability in suite.capabilities)
        and not _given(suite, one.name)
        and not (one.unless and _given(suite, one.unless))
    ]
    return "\n".join(lines) or None


def _given(suite: type[Suite], name: str) -> bool:
    """Whether a class outside the kit has the attribute."""
    owner = next((base for base in suite.__mro__ if name in vars(base)), None)
    return owner is not None and not owner.__module__.startswith("proctor_testkit.")


def _refuse_wrong_types(suite: type[Suite]) -> None:
    given: Any = suite.capabilities
    if not isinstance(given, Set) or not all(isinstance(word, str) for word in given):
        raise TypeError(f'{suite.__name__}.capabilities is a set of names, such as {{"usage"}}, but it is {given!r}')
    expected: Any = suite.expected_failures
    if not isinstance(expected, Mapping) or not all(isinstance(why, str) for why in expected.values()):
        raise TypeError(
            f'{suite.__name__}.expected_failures gives each check its reason, such as {{"model.usage": "the service '
            f'does not count"}}, but it is {expected!r}'
        )


def _refuse_overrides(suite: type[Suite]) -> None:
    for base in suite.__mro__:
        for name, value in vars(base).items():
            declared = check_of(value)
            if declared is not None and inspect.getattr_static(suite, name) is not value:
                raise TypeError(
                    f"{suite.__name__}.{name} overrides the check {declared.id}. Declare what is missing in "
                    f"`capabilities`, or the check in `expected_failures` with its reason."
                )
