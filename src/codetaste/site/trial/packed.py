"""Data in scripts beside a page: compressed, in base64, which a script unpacks when it is needed."""

from __future__ import annotations

import zlib
from base64 import b64encode

from codetaste.site.html.site_file import data_script

_LEVEL = 1
"""A third of the time of the default for a fifth more bytes."""
_GZIP = 31


def gzip_bytes(content: bytes) -> bytes:
    """Return ``content`` in the format of gzip, the same bytes for the same content."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return packer.compress(content) + packer.flush()


def packed_script(name: str, packed: bytes) -> bytes:
    """Return a script that hands gzip data to the page's script as base64 text, under ``name``."""
    return data_script(name, b64encode(packed).decode("ascii"))
