"""What every section of the config has in common: unknown keys are errors, and values do not change."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of the config. The text under each field is its documentation."""

    model_config = ConfigDict(extra="forbid", frozen=True)
