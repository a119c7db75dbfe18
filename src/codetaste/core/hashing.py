"""Canonical JSON and digests."""

from __future__ import annotations

import json
from hashlib import file_digest, sha256
from typing import TYPE_CHECKING, Any

from codetaste.core.files import open_regular_file

if TYPE_CHECKING:
    from pathlib import Path


def canonical_json(value: Any) -> str:  # noqa: ANN401 - JSON data
    """Return the canonical JSON text of a value: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def json_digest(value: Any) -> str:  # noqa: ANN401 - JSON data
    """Return the sha256 of a JSON value, in hex."""
    return sha256(canonical_json(value).encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the sha256 of the content of a file, in hex.

    Raises:
        OSError: it cannot be read.
    """
    with open_regular_file(path) as file:
        return file_digest(file, "sha256").hexdigest()
