"""The README's table of the config names the sections and keys that there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from codetaste.run.config import Config

README = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")


def section_model(annotation: Any) -> type[BaseModel]:
    """The model behind ``Model``, ``Model | None`` or ``tuple[Model, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(section_model(part) for part in get_args(annotation) if part not in {type(None), ...})


def test_the_table_names_every_section_and_only_keys_that_exist() -> None:
    rows = dict(re.findall(r"^\| `\[+(\w+)\]+` \| (.+) \|$", README, re.MULTILINE))
    assert set(rows) == set(Config.model_fields)
    for section, text in rows.items():
        known = section_model(Config.model_fields[section].annotation).model_fields
        named = re.findall(r"`([a-z_]+)`", text)
        assert named
        assert [key for key in named if key not in known] == [], section
