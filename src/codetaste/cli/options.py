"""Types of options that many commands have."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

Flag = Annotated[bool, Parameter(negative=())]
AsJson = Annotated[bool, Parameter(name="--json", negative=())]
Several = Annotated[tuple[str, ...], Parameter(negative=())]
"""May be given several times."""
