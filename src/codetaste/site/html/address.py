"""Addresses of pages: paths below the site's folder, made of what a page is about.

An address depends on nothing but the identity of its subject, so that it is the same when the site is made
again. Every part is a portable file name: lower-case letters, digits, ``.``, ``_`` and ``-``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

from codetaste.environment.leak_search.secrets import KEY_SHAPES
from codetaste.rules.registration import Direction

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNSAFE = re.compile(r"[^a-z0-9._-]+")
_OTHER_FILE = re.compile(r".*\.(?:csv|html|js|json)|(?:aux|con|nul|prn|com\d|lpt\d)(?:\..*)?")
"""Names of files that a site has beside folders, and those that Windows keeps for devices."""
_HASHED = re.compile(r"(?:.*-)?[0-9a-f]{16}")
"""Names that look as if they had a hash: one that is a text itself must not be the name of another text."""
_KEY = re.compile(
    "|".join(
        rf"(?<![A-Za-z0-9_-]){re.escape(begin.decode())}{rest.decode()}" for _, begin, rest in KEY_SHAPES
    )
)
_MAX_CHARS = 60
_HASH_CHARS = 16


@lru_cache(maxsize=4096)  # few names are in the addresses of many pages
def file_name(text: str) -> str:
    """Return ``text`` as one part of an address; texts that differ have names that differ.

    A text that is no such name itself, is the name of another file, or ends like a hash, gets a hash at its
    end. Of a text with a key nothing but its hash is in the address, which stays when keys are removed.
    """
    name = "" if _KEY.search(text) else _UNSAFE.sub("-", text.lower()).strip(".-")[:_MAX_CHARS]
    if _OTHER_FILE.fullmatch(name):
        name = name.partition(".")[0]
    elif name == text and name and not _HASHED.fullmatch(name):
        return name
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{name}-{digest}" if name else digest


def rule_anchors(rules: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the fragments that name the rules of an instance in its pages.

    It is ``rule-ID``, and ``rule-ID.reductive`` of a reductive rule whose id an additive one has too.

    Args:
        rules: direction and id of each.
    """
    keys = dict.fromkeys(rules)
    return {
        (direction, rule): f"rule-{rule}.reductive"
        if direction == Direction.REDUCTIVE and (Direction.ADDITIVE, rule) in keys
        else f"rule-{rule}"
        for direction, rule in keys
    }


def relative(address: str, page: str) -> str:
    """Return the link from the page at ``page`` to ``address``; both are below the site's folder, "."."""
    target = [] if address == "." else address.split("/")
    folder = page.split("/")[:-1]
    shared = 0
    for there, here in zip(target, folder, strict=False):
        if there != here:
            break
        shared += 1
    return "/".join([*[".."] * (len(folder) - shared), *target[shared:]]) or "."
