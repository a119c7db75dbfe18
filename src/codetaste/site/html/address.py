"""Addresses of pages: paths below the site's folder, made of what a page is about.

An address depends on nothing but the identity of its subject, so that it is the same when the site is made
again. Every part is a portable file name: lower-case letters, digits, ``.``, ``_`` and ``-``.
"""

from __future__ import annotations

import posixpath
import re
from hashlib import sha256

_UNSAFE = re.compile(r"[^a-z0-9._-]+")
_MAX_CHARS = 60
_HASH_CHARS = 8


def file_name(text: str) -> str:
    """Return ``text`` as one part of an address; texts that differ have names that differ.

    A text that is no such name itself, or could be taken for another, gets a short hash at its end.
    """
    name = _UNSAFE.sub("-", text.lower()).strip(".-")[:_MAX_CHARS]
    if name == text and name:
        return name
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{name}-{digest}" if name else digest


def relative(address: str, page: str) -> str:
    """Return the link from the page at ``page`` to ``address``; both are below the site's folder."""
    return posixpath.relpath(address, posixpath.dirname(page) or ".")
