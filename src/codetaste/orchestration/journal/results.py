"""Results of jobs that are dataclasses of JSON values: journalled as objects, and read back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from codetaste.orchestration.journal.journal import Json

_Result = TypeVar("_Result")


def result_to_json(result: Any) -> Json:  # noqa: ANN401 - any dataclass
    """Return a dataclass of JSON values as JSON data."""
    data: Json = asdict(result)
    return data


def result_from_json(kind: type[_Result], data: Any) -> _Result:  # noqa: ANN401 - JSON
    """Return the result of the class ``kind`` that ``result_to_json`` was given."""
    return kind(**data)
