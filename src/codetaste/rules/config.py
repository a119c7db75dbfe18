"""``[rules]``: the rule engine."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from codetaste.section import Section
from codetaste.units import Bytes, Seconds


class RulesConfig(Section):
    """Which OpenGrep, and how long it may take."""

    opengrep: Path | None = None
    """The program, relative to the config file; otherwise OPENGREP_BIN, then PATH, then the one that was
    installed with codetaste."""
    scan_limit: Seconds = 900.0
    """Wall time of one scan of one tree; what hangs is then found and named."""
    processes: int = Field(default=2, ge=1, le=1024)
    """Engine processes at once."""
    cache: Literal["off"] | Path | None = None
    """Where matches are kept between scans: a folder, relative to the config file, or "off"; otherwise in
    codetaste's own cache folder."""
    cache_size: Bytes = 1024**3
    """Bytes that they may take; what was used last is removed last."""
