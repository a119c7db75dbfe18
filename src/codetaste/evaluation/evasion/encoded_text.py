"""Decode the texts that bytes contain in encoded form.

Known are base64, base32, base85, hexadecimal digits, lists of character codes, escape sequences, and
compressed data (zlib, gzip, bzip2, xz, zip), also one inside the other. Ciphers and custom encodings are not
decoded.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import io
import lzma
import re
import zipfile
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAX_DEPTH = 4
_MAX_MEMBERS, _MAX_STREAMS = 10_000, 100
_CHUNK_BYTES = 256 * 1024
_TEXT_COST = 100
"""Bytes that are charged for each decoded text besides its own: a short one takes time, too."""
_JOINTS = re.compile(
    rb"""["'`]\s*+(?:[+,\\]\s*+)?[rb]?["'`]|(?<=[A-Za-z0-9+/=]{16})\r?\n[ \t]*+(?=[A-Za-z0-9+/=]{4})"""
)
"""Where a long text is broken: between adjacent literals, and between lines of base64."""
_RUN = re.compile(rb"[A-Za-z0-9+/_-]{12,}={0,6}")
# A backtick is a digit of base85. It must not begin a run that may have further ones: a try at each would
# take time that grows with the square of the text.
_QUOTED_RUN = re.compile(rb"""["']`?([!#-&(-~]{12,}+)["']|`([!#-&(-_a-~]{12,}+)`""")
_HEX = re.compile(rb"[0-9A-Fa-f]+")
# What may be given back in a repetition takes memory for each time: a hundred bytes for each number.
_CODES = re.compile(rb"(?:(?:0x[0-9A-Fa-f]{2}|[0-9]{1,3})\s*+,\s*+){5,}+(?:0x[0-9A-Fa-f]{2}|[0-9]{1,3})?")
_CODE = re.compile(rb"0x[0-9A-Fa-f]{2}|[0-9]+")
_ESCAPE = re.compile(
    rb"\\x([0-9A-Fa-f]{2})|\\u00([0-9A-Fa-f]{2})|\\u\{0*([0-9A-Fa-f]{2})\}|%([0-9A-Fa-f]{2})|&#x([0-9A-Fa-f]{2});"
    rb"|\\([0-3][0-7]{2})|&#([0-9]{2,3});"
)
_ESCAPED_PIECE = re.compile(
    rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?' + rb"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'?|`[^`]*+`?|[^\s\"'`]++",
    re.DOTALL,
)
"""A literal or a word: escape sequences decode what is in it, and not the code beside it."""
_HEX_ESCAPES = 5
_MIN_ESCAPES = 4
_UTF_7 = re.compile(rb"coding[:=][ \t]*(?:utf|u)[-_]?7\b", re.IGNORECASE)
_MAX_COOKIE_BYTES = 300
_TEXT = re.compile(rb"[\t\n\r -~]{8}")
"""Decoded bytes without such a piece are no text."""
_MAGIC = re.compile(rb"\x1f\x8b|\x78[\x01\x5e\x9c\xda]|BZh|\xfd7zXZ|PK\x03\x04")
"""Beginnings of compressed data."""
_DAMAGED = (OSError, ValueError, EOFError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


@dataclass
class ByteBudget:
    """How many bytes may still be read and decoded."""

    left: int
    exceeded: bool = False
    """Something has not been read because of the limit."""

    def take(self, size: int) -> bool:
        """Whether ``size`` bytes are left; takes them."""
        self.exceeded |= size > self.left
        self.left -= min(size, self.left)
        return not self.exceeded


def decoded_texts(content: bytes, budget: ByteBudget) -> list[bytes]:
    """Return the texts that ``content`` holds in encoded form, and those that they hold in turn."""
    found: list[bytes] = []
    pending = [(content, 0)]
    seen = {content}
    while pending and not budget.exceeded:
        outer, depth = pending.pop()
        for inner in _decoded_once(outer, budget):
            if inner in seen:
                continue
            seen.add(inner)
            if _TEXT.search(inner):
                found.append(inner)
            if depth + 1 < _MAX_DEPTH:
                pending.append((inner, depth + 1))
    return found


def _decoded_once(content: bytes, budget: ByteBudget) -> Iterator[bytes]:
    yield from _decompressed(content, budget)
    if content.count(b"\0") * 3 > len(content):
        # UTF-16 or UTF-32; characters of other scripts are of no interest.
        content = content.replace(b"\0", b"")
        yield content
    elif _UTF_7.search(content[:_MAX_COOKIE_BYTES]):
        yield content.decode("utf-7", "replace").encode()
    for text in _decoded_pieces(content):
        if not budget.take(len(text) + _TEXT_COST):
            return
        yield text


def _decoded_pieces(content: bytes) -> Iterator[bytes]:
    joined = _JOINTS.sub(b"", content)
    for run in set(_RUN.findall(joined)):
        yield from _decoded_run(run)
    for text in {quoted or template for quoted, template in _QUOTED_RUN.findall(joined)}:
        for decode in (base64.b85decode, base64.a85decode):
            yield from _attempt(decode, text)
    for codes in _CODES.findall(content):
        numbers = (int(code[0], 16 if code[0][:2] == b"0x" else 10) for code in _CODE.finditer(codes))
        yield bytes(number for number in numbers if number < 256)  # noqa: PLR2004
    if len(list(islice(_ESCAPE.finditer(joined), _MIN_ESCAPES))) == _MIN_ESCAPES:
        unescaped = (_ESCAPE.subn(_unescaped, piece[0]) for piece in _ESCAPED_PIECE.finditer(joined))
        yield b" ".join(text for text, escapes in unescaped if escapes)


def _unescaped(match: re.Match[bytes]) -> bytes:
    digits = match[match.lastindex or 0]
    base = 16 if (match.lastindex or 0) <= _HEX_ESCAPES else 8 if match[6] else 10
    return bytes([int(digits, base) % 256])


def _decoded_run(run: bytes) -> Iterator[bytes]:
    digits = run.rstrip(b"=")
    if _HEX.fullmatch(digits) and len(digits) % 2 == 0:
        yield from _attempt(binascii.unhexlify, digits)
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


def _decompressed(content: bytes, budget: ByteBudget) -> Iterator[bytes]:
    """Yield the contents of compressed data; all that is decompressed is taken from ``budget``."""
    magic = _MAGIC.match(content)
    if magic is None:
        return
    if magic[0] == b"PK\x03\x04":
        yield from _members(content, budget)
    elif magic[0] == b"BZh":
        yield _limited(_stream_chunks(bz2.BZ2Decompressor, content, budget), budget)
    elif magic[0] == b"\xfd7zXZ":
        yield _limited(_stream_chunks(lzma.LZMADecompressor, content, budget), budget)
    else:
        yield _limited(_zlib_chunks(content, budget), budget)


def _members(content: bytes, budget: ByteBudget) -> Iterator[bytes]:
    with suppress(*_DAMAGED), zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        for member in members[:_MAX_MEMBERS]:
            with suppress(*_DAMAGED), archive.open(member) as file:
                yield _limited(iter(partial(file.read, _CHUNK_BYTES), b""), budget)
        budget.exceeded |= len(members) > _MAX_MEMBERS


def _stream_chunks(
    new_stream: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor], content: bytes, budget: ByteBudget
) -> Iterator[bytes]:
    for _ in range(_MAX_STREAMS):
        stream = new_stream()
        yield stream.decompress(content, _CHUNK_BYTES)
        while not stream.eof and not stream.needs_input:
            yield stream.decompress(b"", _CHUNK_BYTES)
        content = stream.unused_data if stream.eof else b""
        if not _MAGIC.match(content):
            return
    budget.exceeded = True


def _zlib_chunks(content: bytes, budget: ByteBudget) -> Iterator[bytes]:
    for _ in range(_MAX_STREAMS):
        stream = zlib.decompressobj(zlib.MAX_WBITS | 32)
        while content and not stream.eof:
            yield stream.decompress(content, _CHUNK_BYTES)
            content = stream.unconsumed_tail
        content = stream.unused_data
        if not _MAGIC.match(content):
            return
    budget.exceeded = True


def _limited(chunks: Iterator[bytes], budget: ByteBudget) -> bytes:
    """Join ``chunks`` up to the first that is damaged or for which no bytes are left."""
    parts = []
    with suppress(*_DAMAGED):
        for chunk in chunks:
            if not budget.take(len(chunk)):
                break
            parts.append(chunk)
    return b"".join(parts)
