"""Remove what looks like a key from the files of a site, in every encoding that a site uses.

Keys of known formats, bearer tokens, blocks of private keys, passwords in addresses, and values with much
information after words such as ``password=`` become ``[redacted]``. Files are read as what they are: data
scripts and JSON text by text, packed data unpacked and packed again, pages and tables as text.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.core.text import REDACTED
from codetaste.environment.leak_search.secrets import KEY_SHAPES
from codetaste.site.trial.packed import gzip_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_QUOTE = r"(?:[\"'`]|\\[\"']|&\#3[49];|&quot;|&apos;|\\u0022|\\u0027)"
_SHAPES = [
    (kind, re.compile(rf"(?<![A-Za-z0-9_-]){re.escape(begin.decode())}{rest.decode()}"))
    for kind, begin, rest in KEY_SHAPES
]
_CUT = re.compile(
    rf"(?<![A-Za-z0-9_-])(?:{'|'.join(re.escape(begin.decode()) for _, begin, _ in KEY_SHAPES)})"
    r"[A-Za-z0-9_-]{4,}(?=\n?…)"
)
"""The beginning of a key at the end of a text that was shortened."""
_BEARER = re.compile(r"(?<=Bearer )[A-Za-z0-9._~+/=-]{16,}", re.IGNORECASE)
_BASIC = re.compile(r"(?<=Basic )[A-Za-z0-9+/=]{16,}")
_JWT = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}")
_URL = re.compile(r"(?<=://)[^\s/:@\"'<>&\\]{1,64}:[^\s/:@\"'<>&\\]{8,256}(?=@)")
_NAMED = re.compile(
    r"(?P<name>[A-Za-z0-9_.-]{0,40}(?:api[_-]?key|access[_-]?key|auth[_-]?token|secret|passw(?:or)?d|token"
    r"|private[_-]?key|credential)[A-Za-z0-9_-]{0,20})"
    rf"(?P<between>{_QUOTE}?\s{{0,4}}(?:=>|:=|[:=])\s{{0,4}}{_QUOTE}?)"
    r"(?P<value>[A-Za-z0-9+/=_.~-]{16,512})",
    re.IGNORECASE,
)
_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?P<body>.{0,20000}?)"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_TAIL = re.compile(
    r"\A(?P<body>(?:(?!-----BEGIN ).){1,20000}?)(?=-----END [A-Z0-9 ]{0,40}PRIVATE KEY)", re.DOTALL
)
"""The end of a key that began in an earlier piece of a file."""
_TAIL_RUN = re.compile(r"[A-Za-z0-9+/=]{40,}")
_MIN_BODY_RUN = re.compile(r"[A-Za-z0-9+/=]{16,}")
_TAG = re.compile(r"<[^<>]*>")
_MIN_ENTROPY = 3.3
"""Bits a character: names of variables and words have less, random texts of 16 characters more."""
_WORDS = re.compile(r"[a-z]+|[A-Z][a-z]+|[A-Z]+")
_RECEIVE = re.compile(r"codetaste\.receive\((.*)\);\n?\Z", re.DOTALL)
_GZIP_BASE64 = "H4sI"
_GZIP = 31
_MAX_UNPACKED = 512 * 1024**2


@dataclass(frozen=True, slots=True)
class Redactions:
    """How many texts of each kind were removed from which file; never the texts."""

    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def __add__(self, other: Redactions) -> Redactions:
        """Return both together."""
        return Redactions(dict(Counter(self.counts) + Counter(other.counts))) if other.counts else self

    @property
    def total(self) -> int:
        """The number of removed texts."""
        return sum(self.counts.values())


def redact_file(address: str, content: bytes) -> tuple[bytes, Redactions]:
    """Return a file of a site without what looks like a key, and what was removed."""
    found: Counter[str] = Counter()
    suffix = address.rpartition(".")[2]
    if suffix == "gz":
        redacted = _redact_packed(content, found)
    elif suffix in {"png", "pdf", "zip"}:
        return content, Redactions()
    else:
        text = content.decode("utf-8", "surrogateescape")
        redacted = _redact_document(suffix, text, found).encode("utf-8", "surrogateescape")
    if not found:
        return content, Redactions()
    return redacted, Redactions({(address, kind): count for kind, count in found.items()})


def redact_text(text: str, found: Counter[str]) -> str:
    """Return ``text`` without what looks like a key, and count each kind in ``found``."""

    def replace(kind: str) -> Callable[[re.Match[str]], str]:
        def count(_: re.Match[str]) -> str:
            found[kind] += 1
            return REDACTED

        return count

    if "PRIVATE KEY" in text:
        text = _TAIL.sub(lambda tail: _TAIL_RUN.sub(replace("a private key"), tail["body"]), text)
        text = _BLOCK.sub(lambda block: _redact_block(block, found), text)
    for kind, pattern in _SHAPES:
        text = pattern.sub(replace(kind), text)
    for kind, pattern, sign in (
        ("the beginning of a key", _CUT, "…"),
        ("a token of JWT", _JWT, "eyJ"),
        ("a bearer token", _BEARER, "earer "),
        ("a basic credential", _BASIC, "Basic "),
        ("a password in a URL", _URL, "://"),
    ):
        if sign in text:
            text = pattern.sub(replace(kind), text)
    return _NAMED.sub(lambda match: _redact_named(match, found), text)


def _redact_document(suffix: str, text: str, found: Counter[str]) -> str:
    if suffix == "js" and (received := _RECEIVE.fullmatch(text)):
        values = json.loads(f"[{received[1]}]")
        redacted = [_redact_json(value, found) for value in values]
        parts = (json.dumps(each, separators=(",", ":")).replace("<", "\\u003c") for each in redacted)
        return f"codetaste.receive({','.join(parts)});\n"
    if suffix == "json":
        return f"{json.dumps(_redact_json(json.loads(text), found), indent=1)}\n"
    return redact_text(text, found)


def _redact_json(value: Any, found: Counter[str]) -> Any:  # noqa: ANN401 - JSON
    match value:
        case str() if value.startswith(_GZIP_BASE64):
            return _redact_base64(value, found)
        case str():
            return redact_text(value, found)
        case list():
            return [_redact_json(each, found) for each in value]
        case dict():
            return {redact_text(key, found): _redact_member(key, each, found) for key, each in value.items()}
        case _:
            return value


def _redact_member(key: str, value: Any, found: Counter[str]) -> Any:  # noqa: ANN401 - JSON
    """Redact the value of a key, which may be a name such as ``password``."""
    if isinstance(value, str) and not value.startswith(_GZIP_BASE64):
        start = f"{key}="
        whole = redact_text(start + value, found)
        return whole.removeprefix(start) if whole.startswith(start) else redact_text(value, found)
    return _redact_json(value, found)


def _redact_base64(text: str, found: Counter[str]) -> str:
    try:
        packed = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return redact_text(text, found)
    return base64.b64encode(_redact_packed(packed, found)).decode()


def _redact_packed(packed: bytes, found: Counter[str]) -> bytes:
    """Return gzip data with its content redacted: JSON by its texts, anything else as text."""
    try:
        content = _unpack(packed)
    except zlib.error:
        return packed
    before = found.total()
    text = content.decode("utf-8", "surrogateescape")
    redacted = _redact_packed_text(text, found)
    return gzip_bytes(redacted.encode("utf-8", "surrogateescape")) if found.total() > before else packed


def _unpack(packed: bytes) -> bytes:
    """Return the content of all members of gzip data."""
    parts = []
    while packed:
        member = zlib.decompressobj(_GZIP)
        parts.append(member.decompress(packed, _MAX_UNPACKED))
        packed = member.unused_data
    return b"".join(parts)


def _redact_packed_text(text: str, found: Counter[str]) -> str:
    if text[:1] in {"{", "["}:
        try:
            value = json.loads(text)
        except ValueError:
            return redact_text(text, found)
        return json.dumps(_redact_json(value, found), separators=(",", ":"))
    return redact_text(text, found)


def _redact_block(block: re.Match[str], found: Counter[str]) -> str:
    """Return a private key without its lines, which markup or signs of a patch may separate."""
    found["a private key"] += 1
    body, end = block["body"], block.end("body") - block.start()
    parts, at = [block[0][: block.start("body") - block.start()]], 0
    for tag in _TAG.finditer(body):
        parts += [_MIN_BODY_RUN.sub(REDACTED, body[at : tag.start()]), tag[0]]
        at = tag.end()
    return "".join([*parts, _MIN_BODY_RUN.sub(REDACTED, body[at:]), block[0][end:]])


def _redact_named(match: re.Match[str], found: Counter[str]) -> str:
    if not _looks_random(match["value"]):
        return match[0]
    found["a value named like a key"] += 1
    return f"{match['name']}{match['between']}{REDACTED}"


def _looks_random(value: str) -> bool:
    """Whether a value has much information: digits among letters, or an irregular spelling."""
    if _entropy(value) < _MIN_ENTROPY or re.fullmatch(r"[A-Za-z_.]+", value):
        longest = max(map(len, _WORDS.findall(value)), default=0)
        return longest <= 3 and _entropy(value) >= _MIN_ENTROPY  # noqa: PLR2004 - no words in it
    return any(char.isdigit() for char in value)


def _entropy(value: str) -> float:
    """Return bits a character (Shannon) of the frequencies in ``value``."""
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)
