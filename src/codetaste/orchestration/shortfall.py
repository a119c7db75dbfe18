"""Why a job that has a result did not end well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    NotRequired,  # of Python 3.11, pydantic does not take its own
)

from typing_extensions import TypedDict

if TYPE_CHECKING:
    from typing import Self


class ShortfallRow(TypedDict):
    """A ``Shortfall`` in the journal."""

    name: str
    text: str
    by_limit: bool
    transient: NotRequired[bool]


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why a job that has a result did not end well.

    Attributes:
        name: the kind of ending, by which it is counted, such as "error_planmode".
        text: why, in one line; "" if nothing more is known.
        by_limit: whether a limit cut the job, such as a maximum of turns.
        transient: whether the machine was to blame, so that the next session tries again.
    """

    name: str
    text: str = ""
    by_limit: bool = False
    transient: bool = False

    def to_json(self) -> ShortfallRow:
        """Return the shortfall as JSON data."""
        row: ShortfallRow = {"name": self.name, "text": self.text, "by_limit": self.by_limit}
        if self.transient:
            row["transient"] = True
        return row

    @classmethod
    def from_json(cls, data: ShortfallRow) -> Self:
        """Read what ``to_json`` returned."""
        return cls(data["name"], data["text"], data["by_limit"], data.get("transient", False))
