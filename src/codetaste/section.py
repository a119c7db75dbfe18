"""Base class of every config section: unknown keys are errors, and values are immutable."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of the config. The string under each field is its documentation."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def toml_to_json(value: Any) -> Any:  # noqa: ANN401 - TOML data
    """Return TOML data as JSON data.

    Raises:
        ValueError: a value has no JSON form, such as a date.
    """
    match value:
        case Decimal():
            return float(value)
        case dict():
            return {str(key): toml_to_json(item) for key, item in value.items()}
        case list() | tuple():
            return [toml_to_json(item) for item in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise ValueError(f"{value!r}: a provider takes text, numbers, booleans, lists and tables only")
