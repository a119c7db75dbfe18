"""An OpenGrep rule as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule γ: ``body`` is all of it as plain data, ``line`` where it starts in its text."""

    id: str
    languages: tuple[str, ...]
    body: Mapping[str, Any]
    line: int = field(default=0, compare=False)
