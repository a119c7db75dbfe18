"""Types of options that many commands have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from codetaste.core.section import check_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyclopts import Token

Flag = Annotated[bool, Parameter(negative=())]
AsJson = Annotated[bool, Parameter(name="--json", negative=())]


def _path(_type: object, tokens: Sequence[Token]) -> Path:
    """Return the path on the command line: the empty one would be the working directory."""
    return Path(check_path(tokens[0].value))


OptionalPath = Annotated[Path | None, Parameter(converter=_path)]
Several = Annotated[tuple[str, ...], Parameter(negative=())]
"""May be given several times."""
