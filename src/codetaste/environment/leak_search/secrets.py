"""Secrets in an image: values that the caller names, and texts that look like a key of a known kind.

Values are searched for everywhere, as they are and in base64. Shapes of keys are searched for only in the
image's config and in files outside of packages and of the repository: packages have invented keys in their
tests and their documentation.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MIN_VALUE_CHARS = 8
"""A shorter value would be found by chance."""
_SHOWN = 6
MAX_SHAPE_BYTES = 1024**2
"""Larger files are not searched for shapes of keys."""
_TOKEN_BEGIN, _TOKEN_REST = "ct-", "[A-Za-z0-9_-]{43}"
GATEWAY_TOKEN = _TOKEN_BEGIN + _TOKEN_REST
"""The token of an agent's session at the gateway, as a regular expression that ``grep -E`` reads too."""
KEY_SHAPES: tuple[tuple[str, bytes, bytes], ...] = (
    ("a token of the gateway", _TOKEN_BEGIN.encode(), _TOKEN_REST.encode()),
    ("a key of Anthropic", b"sk-ant-", rb"[A-Za-z0-9_-]{24,}"),
    ("a key of OpenAI", b"sk-", rb"(?!ant-)(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{32,}"),
    *(("a token of GitHub", b"gh%c_" % kind, rb"[A-Za-z0-9]{36,}") for kind in b"pousr"),
    ("a token of GitHub", b"github_pat_", rb"[A-Za-z0-9_]{40,}"),
    ("a token of GitLab", b"glpat-", rb"[A-Za-z0-9_-]{20,}"),
    ("a key of AWS", b"AKIA", rb"[A-Z2-7]{16}"),
    ("a key of AWS", b"ASIA", rb"[A-Z2-7]{16}"),
    ("a key of Google", b"AIza", rb"[A-Za-z0-9_-]{35}"),
    ("a token of Slack", b"xox", rb"[abprs]-[A-Za-z0-9-]{20,}"),
    ("a token of npm", b"npm_", rb"[A-Za-z0-9]{36}"),
    ("a token of PyPI", b"pypi-", rb"[A-Za-z0-9_-]{60,}"),
    ("a token of Hugging Face", b"hf_", rb"[A-Za-z0-9]{34,}"),
)
"""Kinds of keys: how one begins, and the expression for its rest."""
_URL_KIND, _URL_ANCHOR = "a URL with a password", b"://"
_URL_REST = rb"[^\s/:@\"'<>]{1,64}:[^\s/:@\"'<>]{8,256}@"
_SCHEME = re.compile(rb"[a-z][a-z0-9+.-]{1,20}\Z")
_MAX_SCHEME = 21
# An expression that begins with fixed characters is searched for a hundred times as fast as all in one.
_KEYS = tuple(
    (kind, begin, re.compile(rb"%s%s(?![A-Za-z0-9])" % (re.escape(begin), rest)))
    for kind, begin, rest in KEY_SHAPES
)
_URL = re.compile(_URL_ANCHOR + _URL_REST)
_KEY_CHARACTER = re.compile(rb"[A-Za-z0-9_-]")
_INVENTED = re.compile(
    rb"example|sample|dummy|fake|test|placeholder|your|xxxx|\.\.\.|1234567|abcdef|password|passwd|secret"
    rb"|username|\$\{|\$\(|%\(|\{\{",
    re.IGNORECASE,
)
_MIN_DIFFERENT = 10
"""Different characters that a real key of a known kind has."""
_OWN_FOLDERS = (
    b"root/",
    b"home/",
    b"tmp/",
    b"var/tmp/",
    b"etc/",
    b"output/",
    b"task_description/",
    b"scripts/",
)
_PACKAGE_PARTS = re.compile(
    rb"/(?:site-packages|dist-packages|node_modules|_cacache|pkg/mod|registry|\.m2|\.gradle|\.nuget|\.rustup"
    rb"|\.nvm|go/src|ssl|ca-certificates)/"
)


@dataclass(frozen=True, slots=True)
class Secrets:
    """Values that must not be found, by their names; ``too_short`` are names of values left out."""

    needles: Mapping[bytes, str]
    too_short: tuple[str, ...] = ()

    @property
    def longest(self) -> int:
        """Length of the longest needle."""
        return max(map(len, self.needles), default=0)


NO_SECRETS = Secrets({})


def make_secrets(values: Mapping[str, str]) -> Secrets:
    """Return what is searched for, from values by their names, such as environment variables."""
    needles: dict[bytes, str] = {}
    short = tuple(sorted(name for name, value in values.items() if 0 < len(value) < _MIN_VALUE_CHARS))
    for name, value in values.items():
        raw = value.encode("utf-8", "surrogateescape")
        if len(value) >= _MIN_VALUE_CHARS:
            needles[raw] = name
            needles.update(dict.fromkeys(_in_base64(raw), f"{name} (in base64)"))
    return Secrets(needles, short)


def find_values(content: bytes, secrets: Secrets) -> Iterator[str]:
    """Yield a description of each value in ``content``; the value is not in it."""
    return (f"the value of {name}" for needle, name in secrets.needles.items() if needle in content)


def may_have_keys(path: bytes, size: int) -> bool:
    """Whether a file is searched for shapes of keys: not a package's, and not too large."""
    return (
        size <= MAX_SHAPE_BYTES and path.startswith(_OWN_FOLDERS) and not _PACKAGE_PARTS.search(b"/" + path)
    )


def find_shapes(content: bytes) -> Iterator[str]:
    """Yield a description of each text in ``content`` that looks like a key; only its beginning is in it."""
    for kind, text in _shapes_in(content):
        if len(set(text)) < _MIN_DIFFERENT or _INVENTED.search(text):
            continue
        shown = text[:_SHOWN].decode("ascii", "replace")
        yield f"{kind} ({shown}…, {len(text)} characters)"


def _shapes_in(content: bytes) -> Iterator[tuple[str, bytes]]:
    for kind, begin, pattern in _KEYS:
        if begin in content:
            for match in pattern.finditer(content):
                if not _KEY_CHARACTER.match(content, max(0, match.start() - 1), match.start()):
                    yield kind, match[0]
    if _URL_ANCHOR in content:
        for match in _URL.finditer(content):
            scheme = _SCHEME.search(content, max(0, match.start() - _MAX_SCHEME), match.start())
            if scheme:
                yield _URL_KIND, scheme[0] + match[0]


def _in_base64(raw: bytes) -> Iterator[bytes]:
    """Yield the part of the value's base64 that does not depend on its neighbours, at each alignment."""
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + raw)
        start = -(-before * 8 // 6)
        end = (before + len(raw)) * 8 // 6
        if end - start >= _MIN_VALUE_CHARS:
            yield coded[start:end]
