"""``[rules]``: settings of the rule engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from codetaste.core.section import FilePath, Section, check_path
from codetaste.core.units import Bytes, Seconds


class RulesConfig(Section):
    """Program, limits and cache of OpenGrep."""

    opengrep: FilePath | None = None
    """The program, relative to the config file; otherwise OPENGREP_BIN, then PATH, then the one that was
    installed with codetaste."""
    scan_timeout: Seconds = Field(default=900.0, validation_alias=AliasChoices("scan_timeout", "scan_limit"))
    """Wall time of one scan of one tree; a scan that takes longer is bisected to find what hangs."""
    processes: int = Field(default=2, ge=1, le=1024)
    """Number of concurrent engine processes."""
    cache: Annotated[Literal["off"] | Path | None, BeforeValidator(check_path)] = None
    """Cache of matches: a folder, relative to the config file, or "off"; by default in codetaste's cache
    folder."""
    cache_size: Bytes = 1024**3
    """Size limit of the cache, bytes; the least recently used files are removed first."""
