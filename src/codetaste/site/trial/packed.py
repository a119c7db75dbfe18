"""Data in scripts beside a page: compressed, in base64, which a script unpacks when it is needed."""

from __future__ import annotations

from base64 import b64encode

from isal import isal_zlib

from codetaste.site.html.site_file import data_script

_LEVEL = 1
"""As small as level 1 of zlib, in a third of its time."""
_GZIP = 31


def gzip_bytes(content: bytes) -> bytes:
    """Return ``content`` in the format of gzip, the same bytes for the same content."""
    packer = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, _GZIP)
    return packer.compress(content) + packer.flush()


def packed_script(name: str, packed: bytes) -> bytes:
    """Return a script that hands gzip data to the page's script as base64 text, under ``name``."""
    return data_script(name, b64encode(packed).decode("ascii"))
