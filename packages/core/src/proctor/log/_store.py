"""The store: data that the solvers, tools and agents of one sample share."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, overload

from pydantic import BaseModel, ConfigDict, PrivateAttr

from proctor.log._fold import fold

__all__ = ["Store", "StoreModel", "begin_store", "folded_store", "store", "store_as", "use_store"]

_EMPTY: dict[str, Any] = {}  # what an empty store is folded to, at no cost: most samples have no other

_T = TypeVar("_T")
_S = TypeVar("_S", bound="StoreModel")


class Store:
    """A dictionary of JSON-like values that lives as long as its sample and is written to the log with it."""

    __slots__ = ("_data", "_folded")

    def __init__(self, data: dict[str, Any] | None = None) -> None:
        self._data: dict[str, Any] = {} if data is None else dict(data)
        self._folded: Any = None

    @overload
    def get(self, key: str) -> Any: ...
    @overload
    def get(self, key: str, default: _T) -> _T: ...
    def get(self, key: str, default: Any = None) -> Any:
        """The value at ``key``; a ``default`` that is not ``None`` is stored there first when the key is new."""
        if default is not None:
            return self._data.setdefault(key, default)
        return self._data.get(key)

    def set(self, key: str, value: Any) -> None:
        """Put ``value`` at ``key``."""
        self._data[key] = value

    def delete(self, key: str) -> None:
        """Remove ``key``; nothing happens if it is not there."""
        self._data.pop(key, None)

    def keys(self) -> KeysView[str]:
        """The keys, oldest first."""
        return self._data.keys()

    def values(self) -> ValuesView[Any]:
        """The values, in the order of the keys."""
        return self._data.values()

    def items(self) -> ItemsView[str, Any]:
        """Keys and values."""
        return self._data.items()

    def to_dict(self) -> dict[str, Any]:
        """A new dictionary with the same values."""
        return dict(self._data)

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._data[key] = value

    def __delitem__(self, key: str) -> None:
        del self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and other._data == self._data

    __hash__ = None  # type: ignore[assignment]  # mutable, compared by value

    def __repr__(self) -> str:
        return f"Store({self._data!r})"


_current: ContextVar[Store | None] = ContextVar("proctor_store", default=None)


def folded_store() -> Any:
    """The values of the store as they are now, for ``json_changes``; the same object as the last time if nothing has
    changed.
    """
    current = _current.get()
    if current is None or not current._data:
        return _EMPTY
    current._folded = fold(current._data, current._folded)
    return current._folded


def store() -> Store:
    """The store of the running sample; outside a sample, one of the calling context's own."""
    current = _current.get()
    if current is None:
        current = Store()
        _current.set(current)
    return current


def begin_store(value: Store) -> None:
    """Make ``value`` what ``store()`` returns in this context from here on (the engine: see ``begin_transcript``)."""
    _current.set(value)


@contextmanager
def use_store(value: Store) -> Iterator[Store]:
    """Make ``value`` what ``store()`` returns inside the block."""
    token = _current.set(value)
    try:
        yield value
    finally:
        _current.reset(token)


class StoreModel(BaseModel):
    """A typed view of a store: each field is kept there as ``<class name>[:<instance>]:<field>``.

    Reading an attribute reads the store and setting one writes it, so all views of one sample agree::

        class Progress(StoreModel):
            steps: int = 0


        store_as(Progress).steps += 1
    """

    model_config = ConfigDict(validate_assignment=True, arbitrary_types_allowed=True)

    instance: str | None = None
    _store: Store = PrivateAttr(default_factory=store)

    def _key(self, name: str) -> str:
        prefix = type(self).__name__ if self.instance is None else f"{type(self).__name__}:{self.instance}"
        return f"{prefix}:{name}"

    def model_post_init(self, context: Any, /) -> None:
        """Fill the store with what it lacks: fields that were passed win over it, defaults do not."""
        for name in type(self).model_fields:
            if name == "instance":
                continue
            key = self._key(name)
            if name in self.model_fields_set or key not in self._store:
                self._store.set(key, self.__dict__[name])

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name == "instance" or name not in type(self).model_fields:
            return super().__getattribute__(name)
        key = self._key(name)
        return self._store.get(key) if key in self._store else super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in type(self).model_fields and name != "instance":
            self._store.set(self._key(name), self.__dict__[name])


def store_as(model_cls: type[_S], instance: str | None = None) -> _S:
    """The running sample's store as a ``model_cls``; ``instance`` keeps several of one class apart."""
    return model_cls(instance=instance)
