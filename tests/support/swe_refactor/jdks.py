"""The JDKs of the machine, for tests of what differs among them."""

from __future__ import annotations

from pathlib import Path

JDKS = sorted({path.parents[1].resolve() for path in Path("/usr/lib/jvm").glob("*/bin/javac")})
"""Their folders."""
