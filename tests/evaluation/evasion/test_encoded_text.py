"""Encoded texts are found, also one inside the other; damaged and huge ones do no harm."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator

import pytest

from codetaste.evaluation.evasion import encoded_text
from codetaste.evaluation.evasion.encoded_text import ByteBudget, decoded_texts

LIMIT = 8 * 1024**2
TEXT = b"def first(a):\n    return old_call(a, 'b') + second(a)\n"


def _utf_7(char: int) -> bytes:
    return base64.b64encode(bytes([0, char])).rstrip(b"=")


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
    "UTF-16": TEXT.decode().encode("utf-16"),
    "UTF-16 without a mark": TEXT.decode().encode("utf-16-be"),
    "UTF-32": TEXT.decode().encode("utf-32"),
    "UTF-7": b"# coding: utf-7\n" + b"".join(b"+" + _utf_7(char) + b"-" for char in TEXT),
    "gzip": gzip.compress(TEXT, mtime=0),
    "gzip after an empty member": gzip.compress(b"", mtime=0) * 3 + gzip.compress(TEXT, mtime=0),
    "bzip2": bz2.compress(TEXT),
    "bzip2 after an empty stream": bz2.compress(b"") + bz2.compress(TEXT),
    "xz after an empty stream": lzma.compress(b"") + lzma.compress(TEXT),
    "xz in base64 in base64": base64.b64encode(base64.b64encode(lzma.compress(TEXT))),
}


@pytest.mark.parametrize("content", ENCODED.values(), ids=ENCODED)
def test_encoded_text_is_found(content: bytes) -> None:
    assert any(TEXT in found for found in decoded_texts(content, ByteBudget(LIMIT)))


@pytest.mark.parametrize(
    "content", [gzip.compress(TEXT, mtime=0)[:9], b"PK\x03\x04 no archive", b"BZh9 no data", TEXT, b""]
)
def test_damaged_and_plain_text_raise_nothing(content: bytes) -> None:
    assert decoded_texts(content, ByteBudget(LIMIT)) == []


def zip_archive(*members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for at, member in enumerate(members):
            archive.writestr(f"m{at}", member)
    return out.getvalue()


ZEROS = bytes(4 * 1024**2)
BOMBS: dict[str, Callable[[], bytes]] = {
    "zlib twice": lambda: zlib.compress(zlib.compress(b"old_call(a) " * 800_000)),
    "bzip2": lambda: bz2.compress(bytes(10 * 1024**2), 1),
    "xz in base64": lambda: base64.b64encode(lzma.compress(b"old_call(a) " * 800_000)),
    "many members": lambda: zip_archive(*[ZEROS] * 50),
    "archives in an archive": lambda: zip_archive(*[zip_archive(ZEROS, b"%d" % at) for at in range(50)]),
    "compressed literals": lambda: b"\n".join(
        b"'%s'" % base64.b64encode(zlib.compress(b"%d" % at + ZEROS)) for at in range(50)
    ),
    "damaged at the end": lambda: b"\n".join(
        b"'%s'" % base64.b64encode(zlib.compress(b"%d" % at + ZEROS)[:-4] + b"abcd") for at in range(50)
    ),
    "short texts": lambda: b" ".join(base64.b64encode(b"short text %7d" % at) for at in range(90_000)),
}


@pytest.mark.parametrize("make_bomb", BOMBS.values(), ids=BOMBS)
def test_all_that_is_decompressed_counts(
    monkeypatch: pytest.MonkeyPatch, make_bomb: Callable[[], bytes]
) -> None:
    """What comes out of the decompressors is counted here, whatever becomes of it."""
    chunks: list[int] = []
    limited = encoded_text._limited

    def count(parts: Iterator[bytes], budget: ByteBudget) -> bytes:
        def counted() -> Iterator[bytes]:
            for part in parts:
                chunks.append(len(part))
                yield part

        return limited(counted(), budget)

    monkeypatch.setattr(encoded_text, "_limited", count)
    budget = ByteBudget(LIMIT)
    found = decoded_texts(make_bomb(), budget)
    assert budget.exceeded
    assert sum(chunks) <= LIMIT + 50 * 256 * 1024
    assert sum(map(len, found)) <= LIMIT


def test_text_after_too_many_streams_counts_as_unread() -> None:
    budget = ByteBudget(LIMIT)
    assert decoded_texts(gzip.compress(b"", mtime=0) * 400_000 + gzip.compress(TEXT, mtime=0), budget) == []
    assert budget.exceeded


def test_start_of_a_bomb_is_read() -> None:
    budget = ByteBudget(LIMIT)
    bomb = zlib.compress(zlib.compress(TEXT + b"old_call(a) " * 800_000))
    assert any(text.startswith(TEXT) for text in decoded_texts(bomb, budget))
    assert budget.exceeded


def test_members_of_an_archive_after_a_damaged_one_are_read() -> None:
    archive = zip_archive(b"damaged " * 9, TEXT)
    at = archive.index(b"m0") + 2
    damaged = archive[:at] + b"\xff\xff" + archive[at + 2 :]
    assert TEXT in decoded_texts(damaged, ByteBudget(LIMIT))


def test_escape_sequences_do_not_decode_the_code_beside_them() -> None:
    line = b'print("%02d:%02d:%02d time passed %02d", old_call(a))\n'
    found = decoded_texts(line * 3 + TEXT, ByteBudget(LIMIT))
    assert found
    assert not any(b"old_call" in text for text in found)
