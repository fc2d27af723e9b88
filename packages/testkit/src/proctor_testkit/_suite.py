from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

import pytest

F = TypeVar("F", bound=Callable[..., Any])
_ATTRIBUTE = "__proctor_check__"


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


def check(id: str, *, level: Literal["must", "should"] = "must", needs: str | None = None) -> Callable[[F], F]:
    """Declare a test method of a suite as the check ``id``; see :class:`Check`."""

    def declare(function: F) -> F:
        setattr(function, _ATTRIBUTE, Check(id, level, needs))
        return function

    return declare


def check_of(function: object) -> Check | None:
    """The check that ``function`` was declared as."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, Check) else None


class Suite:
    """The base of the suites: a subclass in a plugin's tests says what is tested and what it can do.

    Attributes:
        capabilities: what the component can do; checks that need something else are left out.
        backends: the async back-ends that it runs on; its record must say the same.
        expected_failures: check ids that fail today, each with its reason; one that passes is an error.

    A subclass cannot override a check: a suite that was weakened says nothing. It raises ``TypeError`` when it tries.
    """

    capabilities: ClassVar[frozenset[str]] = frozenset()
    backends: ClassVar[tuple[str, ...]] = ("asyncio", "trio")
    expected_failures: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in vars(cls):
            for base in cls.__mro__[1:]:
                declared = check_of(vars(base).get(name))
                if declared is not None:
                    raise TypeError(
                        f"{cls.__name__}.{name} overrides the check {declared.id}. Declare what is missing in "
                        f"`capabilities`, or the check in `expected_failures` with its reason."
                    )
        known = {found.id for name in dir(cls) if (found := check_of(getattr(cls, name, None)))}
        unknown = sorted(set(cls.expected_failures) - known) if known else []
        if unknown:
            raise TypeError(f"{cls.__name__}.expected_failures: no check is called {', '.join(unknown)}")
        if empty := sorted(id for id, reason in cls.expected_failures.items() if not reason.strip()):
            raise TypeError(f"{cls.__name__}.expected_failures needs a reason for {', '.join(empty)}")

    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        """Every async check runs once on each back-end."""
        return str(request.param)
