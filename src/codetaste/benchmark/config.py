"""``[benchmark]``: the benchmark folder, its instances, and clones of their repositories."""

from __future__ import annotations

from pydantic import Field

from codetaste.core.section import FilePath, PathText, Section


class BenchmarkConfig(Section):
    """A folder in the published layout, and clones of its repositories."""

    path: PathText
    """A folder in the published layout, relative to the config file; or "quickstart"."""
    repos: FilePath | None = None
    """A folder of OWNER/REPO clones, relative to the config file; without it the origin's URL is used."""
    instances: tuple[str, ...] = Field(default=("*",), min_length=1)
    """Globs on instance ids."""
