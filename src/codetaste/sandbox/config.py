"""``[sandbox]``: where untrusted commands run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from codetaste.section import Section
from codetaste.units import Bytes


class SandboxConfig(Section):
    """The rule agent's shell is always a local one; containers serve coding agents."""

    engine: Literal["auto", "local", "bubblewrap", "landlock"] = "auto"
    """"auto" and "local" take bubblewrap where user namespaces work, and Landlock elsewhere."""
    max: int = Field(default=8, ge=1, le=10_000)
    """Sandboxes at once."""
    memory: Bytes = 4 * 1024**3
    """Memory of one command."""
