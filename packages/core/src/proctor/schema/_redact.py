"""What is a secret, and data and texts without it: the one place that decides what no log or screen may show.

Names are judged exactly: a log without its ``max_tokens`` is worth as little as one with somebody's key in it. Where a
name leaves it open (``key``, ``token``), it counts as a secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar, cast

__all__ = ["REMOVED", "is_removed", "is_secret", "redact", "redact_text", "redact_url", "without_removed"]

T = TypeVar("T")

REMOVED = "[removed]"
"""What stands in the place of a secret."""

_SHORTEST = 8  # characters; shorter values of environment variables stand in ordinary texts by chance


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A name is judged by its last word, and by the word before that: `openai_api_key` is a secret, `api_key_file` is none.
_SECRETS = _words(
    "secret secrets password passwords passwd passphrase passcode passkey pwd credential credentials creds "
    "authorization auth bearer cookie cookies jwt apikey apikeys accesskey secretkey privatekey authkey "
    "apitoken authtoken accesstoken refreshtoken sessiontoken bearertoken"
)
_ENDINGS = ("password", "passwd", "apikey")  # PGPASSWORD
_TRAILING = _words("value val text str string plain b64 base64 hex pem header bytes")  # an `api_key_value` is one still
_ABOUT = _words("num n count max min has is use no with without require requires need needs skip allow")
_PLAIN_KEYS = _words(
    "answer target question input output prompt response score label field column row text message sample dataset data "
    "record metadata state store dict map json item group sort order primary foreign public cache index lookup id name "
    "choice choices category task split source sub partition idempotency logit connection reducer metric solver scorer "
    "model role event hash hot arrow enter shift escape num n max min top any each per"
)
_COUNTED = _words(
    "max min num n total input output prompt completion context reasoning thinking think cached cache budget stop "
    "start end begin bos eos eot eom eog pad unk sep cls mask special next prev previous first last current new per "
    "each any every this one image audio video text logit logits logprob forced extra added tool role word sub control "
    "separator suffix prefix infix fim nl newline placeholder split choice answer yes target label generated sampled "
    "top page cancel cancellation unexpected invalid seq sequence"
)
_LOGINS = _words("user db database smtp ftp http https proxy mysql postgres pg redis mail email root admin basic login")
_SEVERAL = _words("api access secret private auth bearer refresh session signing encryption")
_QUERY = frozenset({"sig", "signature", "x-amz-signature", "x-goog-signature"})  # a signed address is a credential
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Whether what is called ``name`` is a credential: ``OPENAI_API_KEY``, ``apiKey``, ``X-Auth-Token``, ``password``.

    Counts and places are none (``max_tokens``, ``stop_token``, ``token_limit``, ``sort_key``, ``password_file``).

    Args:
        name: an argument, a key of a mapping, a header or an environment variable, in any spelling of words.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    said = len(words)
    while len(words) > 1 and words[-1] in _TRAILING:
        words.pop()
    if not words or (len(words) < said and words in (["key"], ["token"])):
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in _SECRETS or last.endswith(_ENDINGS):
        # PWD and OLDPWD are the folders of a shell.
        return before not in _ABOUT and not (last == "pwd" and not before)
    if last == "key":
        return before not in _PLAIN_KEYS
    if last == "token":
        return before not in _COUNTED
    if last in ("keys", "tokens"):
        return before in _SEVERAL
    return last == "pass" and before in _LOGINS


def redact(value: T) -> T:
    """``value`` without what is a secret by its key, however deep; the same object when there is none.

    Args:
        value: data of mappings, lists and tuples. In its texts only passwords and keys in addresses, and what looks
            like the key of a well-known service, are replaced: a prompt may well speak of passwords.
    """
    return cast(T, _redacted(value))


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return _KNOWN_FORMS.sub(REMOVED, redact_url(value))
    if isinstance(value, Mapping):
        changed = {key: new for key, item in value.items() if (new := _item(key, item)) is not item}
        return {**value, **changed} if changed else value
    if isinstance(value, (list, tuple)):
        items = [_redacted(item) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return items if isinstance(value, list) else tuple(items)
    return value


def _item(key: object, value: Any) -> Any:
    if not (isinstance(key, str) and is_secret(key)):
        return _redacted(value)
    # That there is none, or that there is to be one, may be said.
    says_nothing = value is None or isinstance(value, bool) or value in ("", REMOVED) or value in ([], {}, ())
    return value if says_nothing else REMOVED


# Possessive quantifiers (`++`): a megabyte of one word is looked at once.
_USER = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*+://)[^/?#\s'\"<>]*@")
_QUERY_ARGUMENT = re.compile(r"([?&;#])([\w.-]++)=([^&;#\s'\"<>\[\])]++)")
_KNOWN_FORMS = re.compile(
    r"\b(?:(?:sk|rk)-(?=[\w-]*\d)[\w-]{16,}|gh[opsur]_\w{20,}|github_pat_\w{20,}|hf_[A-Za-z0-9]{20,}|glpat-[\w-]{20,}"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{35}|eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?)"
)
_SCHEME = re.compile(r"(?i)\b(bearer|basic|apikey)\s{1,2}((?=[^\s'\"]*\d|[^\s'\"]{20})[\w.~+/=-]{8,})")
_COOKIE = re.compile(r"(?i)\b((?:set-)?cookie: ?)[^\n\r'\"]+")
_NAME = re.compile(r"(?<![\w.-])([A-Za-z][\w.-]*+)\\?[\"']?\s{0,2}([:=])\s{0,2}")
# In quotes, which a text that was cut may lack at the end; in quotes of a text that is itself quoted; or bare. Bare,
# what goes on with a bracket is code: `api_key=os.environ[...]`.
_VALUE = re.compile(
    r"""b?"(?P<double>(?:[^"\\\n]|\\.)*+)|b?'(?P<single>(?:[^'\\\n]|\\.)*+)|\\"(?P<inner>[^"\\\n]*+)"""
    r"""|(?P<bare>(?:(?:bearer|basic|token|apikey|digest)\s)?[^\s"',;&(){}\[\]<>\\]++)(?![(\[])""",
    re.IGNORECASE,
)


def redact_url(url: str) -> str:
    """``url`` (or a text with addresses) without user and password, and without keys in its query."""
    if "://" not in url:
        return url
    return _QUERY_ARGUMENT.sub(_without_argument, _USER.sub(r"\1", url))


def _without_argument(found: re.Match[str]) -> str:
    mark, name, _ = found.groups()
    return f"{mark}{name}={REMOVED}" if is_secret(name) or name.lower() in _QUERY else found[0]


def redact_text(text: str, *, forms: bool = True) -> str:
    """A message or traceback without credentials; libraries put them into their errors.

    The values of environment variables that are secrets by their name become ``[NAME]``.

    Args:
        text: what somebody may read.
        forms: also replace what stands after ``Authorization:``, ``Bearer``, ``api_key=`` and the like, in addresses
            and elsewhere. False for texts that are written by or for a model, or that quote what a person typed.
    """
    for name, value in _secrets_of_environment():
        if value in text:
            text = text.replace(value, f"[{name}]")
    if not forms:
        return text
    text = _KNOWN_FORMS.sub(REMOVED, redact_url(text))
    text = _COOKIE.sub(rf"\1{REMOVED}", text)
    text = _SCHEME.sub(rf"\1 {REMOVED}", text)
    return _without_assigned(text)


def _secrets_of_environment() -> list[tuple[str, str]]:
    # The longest first: one may be a part of another.
    found = [(name, value) for name, value in os.environ.items() if len(value) >= _SHORTEST and is_secret(name)]
    return sorted(found, key=lambda pair: len(pair[1]), reverse=True)


def _without_assigned(text: str) -> str:
    """``text`` without the values that are given to names of secrets (``api_key="..."``, ``'password': '...'``)."""
    kept: list[str] = []
    done = 0
    for named in _NAME.finditer(text):
        if named.start() < done or not is_secret(named[1]):
            continue
        given = _VALUE.match(text, named.end())
        if given is None or given.lastgroup is None or not _tells(named, given):
            continue
        start, end = given.span(given.lastgroup)
        kept += (text[done:start], REMOVED)
        done = end
    return "".join((*kept, text[done:])) if done else text


def _tells(named: re.Match[str], given: re.Match[str]) -> bool:
    """Whether the value is one: not ``None``, not ``...``, and not the next word of a sentence."""
    name, value = named[1].lower(), given[given.lastgroup or 0]
    if not any(map(str.isalnum, value)) or value.lower() in ("none", "null", "true", "false"):
        return False
    wordlike = len(value) < 20 and not any(map(str.isdigit, value))
    if name in ("key", "token"):
        return len(value) >= _SHORTEST and not wordlike
    # "wrong password: try another"
    return not (wordlike and named[2] == ":" and given.lastgroup == "bare" and " " not in value)


def without_removed(values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` without what a log does not hold: secrets are given again, or come from the environment."""
    return {name: value for name, value in values.items() if not is_removed(value)}


def is_removed(value: Any) -> bool:
    """Whether a secret was taken out of ``value``, at any depth."""
    if isinstance(value, Mapping):
        return any(map(is_removed, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(is_removed, value))
    return bool(value == REMOVED)
