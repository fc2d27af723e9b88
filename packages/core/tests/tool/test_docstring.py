"""Docstrings of all three styles give the same descriptions."""

from __future__ import annotations

import pytest

from proctor.tool._docstring import parse_docstring

GOOGLE = """Add numbers.

More words
on two lines.

Args:
    x (int): The first,
        continued: here.
    y (float, optional): The second.
    **more: The rest.

Returns:
    x: not a parameter
"""
NUMPY = """Add numbers.

More words
on two lines.

Parameters
----------
x : int
    The first,
    continued: here.
y : float, optional
    The second.
**more
    The rest.

Returns
-------
x : int
    not a parameter
"""
REST = """Add numbers.

More words
on two lines.

:param int x: The first,
    continued: here.
:param y: The second.
:type y: float, optional
:param more: The rest.
:returns: nothing
"""


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, REST], ids=["google", "numpy", "rest"])
def test_every_style_says_what_the_function_and_its_parameters_are(text: str) -> None:
    doc = parse_docstring(text)
    assert doc.description == "Add numbers.\n\nMore words\non two lines."
    assert {name: param.description for name, param in doc.params.items()} == {
        "x": "The first,\ncontinued: here.",
        "y": "The second.",
        "more": "The rest.",
    }
    assert (doc.params["x"].type, doc.params["y"].type) == ("int", "float, optional")


def test_numpy_parameters_may_share_a_description() -> None:
    doc = parse_docstring("D.\n\nParameters\n----------\na, b : int\n    Both.\n")
    assert {name: param.description for name, param in doc.params.items()} == {"a": "Both.", "b": "Both."}


@pytest.mark.parametrize("text", [None, "", "   \n"])
def test_no_docstring_says_nothing(text: str | None) -> None:
    doc = parse_docstring(text)
    assert (doc.description, doc.params) == ("", {})


def test_a_word_before_a_colon_is_no_section() -> None:
    doc = parse_docstring("Look at this:\n\nIt says: yes.")
    assert doc.description == "Look at this:\n\nIt says: yes."
