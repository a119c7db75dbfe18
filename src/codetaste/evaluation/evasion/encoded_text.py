"""Texts that bytes hold in encoded form.

Known are base64, base32, base85, hexadecimal digits, lists of character codes, escape sequences, and
compressed data (zlib, gzip, bzip2, xz, zip), also one inside the other. Ciphers and an own coding are not.
"""

from __future__ import annotations

import base64
import bz2
import io
import lzma
import re
import zipfile
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAX_DEPTH = 4
_MAX_BYTES = 8 * 1024**2
"""Size limit of all decoded texts together."""
_JOINTS = re.compile(
    rb"""["'`]\s*+(?:[+,\\]\s*+)?[rb]?["'`]|(?<=[A-Za-z0-9+/=]{16})\r?\n[ \t]*+(?=[A-Za-z0-9+/=]{4})"""
)
"""Where a long text is broken: between adjacent literals, and between lines of base64."""
_RUN = re.compile(rb"[A-Za-z0-9+/_-]{12,}={0,6}")
_QUOTED_RUN = re.compile(rb"""["'`]([!#-&(-~]{12,1000000}+)["']""")
_HEX = re.compile(rb"[0-9A-Fa-f]+")
_CODES = re.compile(rb"(?:(?:0x[0-9A-Fa-f]{2}|[0-9]{1,3})\s*+,\s*+){5,}(?:0x[0-9A-Fa-f]{2}|[0-9]{1,3})")
_ESCAPE = re.compile(
    rb"\\x([0-9A-Fa-f]{2})|\\u00([0-9A-Fa-f]{2})|\\u\{0*([0-9A-Fa-f]{2})\}|%([0-9A-Fa-f]{2})|&#x([0-9A-Fa-f]{2});"
    rb"|\\([0-3][0-7]{2})|&#([0-9]{2,3});"
)
_HEX_ESCAPES = 5
_MIN_ESCAPES = 4
_TEXT = re.compile(rb"[\t\n\r -~]{8}")
"""Decoded bytes without such a piece are no text."""


def decoded_texts(content: bytes) -> list[bytes]:
    """Return the texts that ``content`` holds in encoded form, and those that they hold in turn."""
    found: list[bytes] = []
    left = _MAX_BYTES
    pending = [(content, 0)]
    seen = {content}
    while pending:
        outer, depth = pending.pop()
        for inner in _decoded_once(outer):
            if inner in seen or len(inner) > left:
                continue
            seen.add(inner)
            left -= len(inner)
            if _TEXT.search(inner):
                found.append(inner)
            if depth + 1 < _MAX_DEPTH:
                pending.append((inner, depth + 1))
    return found


def _decoded_once(content: bytes) -> Iterator[bytes]:
    yield from _decompressed(content)
    joined = _JOINTS.sub(b"", content)
    for run in set(_RUN.findall(joined)):
        yield from _decoded_run(run)
    for text in set(_QUOTED_RUN.findall(joined)):
        for decode in (base64.b85decode, base64.a85decode):
            yield from _attempt(decode, text)
    for codes in _CODES.findall(content):
        numbers = [int(code, 16 if code[:2] == b"0x" else 10) for code in re.split(rb"\s*,\s*", codes)]
        yield bytes(number for number in numbers if number < 256)  # noqa: PLR2004
    escapes = _ESCAPE.findall(joined)
    if len(escapes) >= _MIN_ESCAPES:
        start = _ESCAPE.search(joined)
        yield _ESCAPE.sub(_unescaped, joined[start.start() if start else 0 :])


def _unescaped(match: re.Match[bytes]) -> bytes:
    digits = match[match.lastindex or 0]
    base = 16 if (match.lastindex or 0) <= _HEX_ESCAPES else 8 if match[6] else 10
    return bytes([int(digits, base) % 256])


def _decoded_run(run: bytes) -> Iterator[bytes]:
    digits = run.rstrip(b"=")
    if _HEX.fullmatch(digits) and len(digits) % 2 == 0:
        yield bytes.fromhex(digits.decode())
    padded = digits + b"=" * (-len(digits) % 4)
    for text in {padded, padded.translate(bytes.maketrans(b"-_", b"+/"))}:
        decoded = list(_attempt(base64.b64decode, text))
        # A random text of this length has eight printable characters in a row once in two thousand times.
        yield from (each for each in decoded if _TEXT.search(each) or _MAGIC.match(each))
    if digits.isupper() or digits.isdigit():
        yield from _attempt(base64.b32decode, digits + b"=" * (-len(digits) % 8))


def _attempt(decode: Callable[[bytes], bytes], text: bytes) -> Iterator[bytes]:
    with suppress(ValueError):
        decoded = decode(text)
        if _TEXT.search(decoded) or _MAGIC.match(decoded):
            yield decoded


_MAGIC = re.compile(rb"\x1f\x8b|\x78[\x01\x5e\x9c\xda]|BZh|\xfd7zXZ|PK\x03\x04")


_DAMAGED = (OSError, ValueError, EOFError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def _decompressed(content: bytes) -> Iterator[bytes]:
    """Yield the contents of compressed data, no more than ``_MAX_BYTES`` of each."""
    magic = _MAGIC.match(content)
    with suppress(*_DAMAGED):
        if magic is None:
            return
        if magic[0] == b"PK\x03\x04":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                for member in archive.infolist()[:1000]:
                    with archive.open(member) as file:
                        yield file.read(_MAX_BYTES)
        elif magic[0] == b"BZh":
            yield bz2.BZ2Decompressor().decompress(content, _MAX_BYTES)
        elif magic[0] == b"\xfd7zXZ":
            yield lzma.LZMADecompressor().decompress(content, _MAX_BYTES)
        else:
            yield zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(content, _MAX_BYTES)
