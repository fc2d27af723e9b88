"""Warnings as a person reads them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click

__all__ = ["plain_warnings"]


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings as one line on standard error: the place in this package that they come from helps nobody."""

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        click.echo(f"Warning: {message}", err=True)

    before = warnings.showwarning
    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before
