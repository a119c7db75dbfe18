"""Encoded texts are found, also one inside the other; damaged and huge ones do no harm."""

from __future__ import annotations

import base64
import bz2
import gzip
import lzma
import zlib

import pytest

from codetaste.evaluation.evasion.encoded_text import decoded_texts

TEXT = b"def first(a):\n    return old_call(a, 'b') + second(a)\n"
ENCODED = {
    "base64": base64.b64encode(TEXT),
    "base64 for addresses": b"x = '" + base64.urlsafe_b64encode(TEXT).rstrip(b"=") + b"'",
    "base32": base64.b32encode(TEXT),
    "base85": b"'" + base64.b85encode(TEXT) + b"'",
    "hexadecimal": TEXT.hex().encode(),
    "character codes": b"[" + b", ".join(b"%d" % char for char in TEXT) + b"]",
    "bytes of Go": b"{" + b", ".join(b"0x%02x" % char for char in TEXT) + b"}",
    "escape sequences": b'"' + b"".join(b"\\x%02x" % char for char in TEXT) + b'"',
    "octal escape sequences": b'"' + b"".join(b"\\%03o" % char for char in TEXT) + b'"',
    "of an address": b"".join(b"%%%02x" % char for char in TEXT),
    "entities": b"".join(b"&#%d;" % char for char in TEXT),
    "base64 in pieces": b'"%s" +\n  "%s"' % (base64.b64encode(TEXT)[:20], base64.b64encode(TEXT)[20:]),
    "zlib in base64": base64.b64encode(zlib.compress(TEXT)),
    "gzip": gzip.compress(TEXT, mtime=0),
    "bzip2": bz2.compress(TEXT),
    "xz in base64 in base64": base64.b64encode(base64.b64encode(lzma.compress(TEXT))),
}


@pytest.mark.parametrize("content", ENCODED.values(), ids=ENCODED)
def test_encoded_text_is_found(content: bytes) -> None:
    assert any(TEXT in found for found in decoded_texts(content))


@pytest.mark.parametrize(
    "content", [gzip.compress(TEXT, mtime=0)[:9], b"PK\x03\x04 no archive", b"BZh9 no data", TEXT, b""]
)
def test_damaged_and_plain_text_raise_nothing(content: bytes) -> None:
    assert decoded_texts(content) == []


def test_compressed_bomb_is_read_in_part() -> None:
    bomb = zlib.compress(zlib.compress(b"old_call(a) " * 20_000_000))
    assert sum(map(len, decoded_texts(bomb))) <= 8 * 1024**2
