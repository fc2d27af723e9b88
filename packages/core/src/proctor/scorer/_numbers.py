"""Numbers as models write them."""

# ruff: noqa: RUF001  # characters that look like others are what this module is about
from __future__ import annotations

import math
import re
import unicodedata

# Markup and currency, also with the backslash that LaTeX puts before them.
_MARKUP = re.compile(r"\\?[$,£€*_]")
_STRAY_POINT = re.compile(r"\.(?!\d)")
_SEPARATORS = str.maketrans("", "", "'’ʼ＇٬、，﹐")
_AROUND = '!"():;?[]`{}'
_MINUS = "-−－﹣"
_PLUS = "+＋"
_SUPERSCRIPTS = {char: str(digit) for digit, char in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")} | {"⁻": "-", "⁺": "+"}
_CJK_DIGITS = {char: digit for digit, char in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_CJK_UNITS = {"十": 10, "百": 100, "千": 1000}
_CJK_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "兆": 10**12}


def strip_markup(text: str) -> str:
    """``text`` without currency signs, thousands separators, emphasis, and points that are no decimal points."""
    return _STRAY_POINT.sub("", _MARKUP.sub("", text))


def number_words(text: str) -> list[float]:
    """The words of ``text`` that are numbers, in order; without brackets, quotes and sentence marks around them."""
    found = (parse_number(word.strip(_AROUND)) for word in strip_markup(text).split())
    return [number for number in found if number is not None]


def whole_number(text: str, loose: bool = False) -> float | None:
    """The number that ``text`` as a whole is, spaces in it ignored; ``loose``: also brackets and marks around it."""
    bare = strip_markup(text)
    return parse_number("".join((bare.strip(_AROUND) if loose else bare).split()))


def format_number(number: float) -> str:
    """A number with five significant digits: what two answers are compared by."""
    return f"{number:.5g}"


def parse_number(text: str) -> float | None:
    """The finite number that ``text`` is, or ``None``: in any script's digits, with vulgar fractions and powers."""
    body = text.translate(_SEPARATORS).replace("٫", ".").replace("．", ".")
    sign = 1.0
    while body and body[0] in _MINUS + _PLUS:
        sign = -sign if body[0] in _MINUS else sign
        body = body[1:]
    if not body:
        return None
    base = body.rstrip("".join(_SUPERSCRIPTS))
    exponent = "".join(_SUPERSCRIPTS[char] for char in body[len(base) :])
    if not base:
        return sign * float(exponent) if exponent.isdigit() else None
    number = _plain(base)
    if number is None:
        return None
    number *= sign
    if exponent:
        try:
            number **= int(exponent)
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
    # A negative number to a fractional power would be complex; powers here are whole.
    return number if math.isfinite(number) else None


def _plain(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return _scripted(text)
    # "infinity" and "nan" are words here, and so is what is too large for a float.
    return number if math.isfinite(number) else None


def _scripted(text: str) -> float | None:
    if len(text) == 1:
        return unicodedata.numeric(text, None)
    fraction = unicodedata.numeric(text[-1], None)
    if fraction is not None and unicodedata.decomposition(text[-1]).startswith("<fraction>"):
        whole = _plain(text[:-1]) if not _has_fraction(text[:-1]) else None
        return None if whole is None else whole + fraction
    digits = [unicodedata.digit(char, None) for char in text]
    if all(digit is not None for digit in digits):
        return float("".join(map(str, digits)))
    return _cjk(text)


def _has_fraction(text: str) -> bool:
    return any(unicodedata.decomposition(char).startswith("<fraction>") for char in text)


def _cjk(text: str) -> float | None:
    """A Chinese or Japanese numeral: digits one after the other, or with units as it is spoken."""
    if any(char not in _CJK_DIGITS and not char.isdecimal() for char in text):
        return _cjk_spoken(text)
    return float("".join(str(_CJK_DIGITS.get(char, char)) for char in text))


def _cjk_spoken(text: str) -> float | None:
    total = section = digit = 0
    for char in text:
        if char in _CJK_DIGITS:
            digit = _CJK_DIGITS[char]
        elif char in _CJK_UNITS:
            section += (digit or 1) * _CJK_UNITS[char]
            digit = 0
        elif char in _CJK_MYRIADS:
            total += (section + digit or 1) * _CJK_MYRIADS[char]
            section = digit = 0
        else:
            return None
    return float(total + section + digit)
