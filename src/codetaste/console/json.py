"""JSON documents that commands print."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

JSON_FORMAT = 1
"""The version of the documents of all commands; it rises when a key is removed or changes its meaning."""


def json_document(data: Mapping[str, Any]) -> str:
    """Return a command's result or error as JSON text, which begins with the version of its format."""
    return json.dumps({"json_format": JSON_FORMAT, **data}, indent=2)
