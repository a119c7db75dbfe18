"""docs/config.md documents exactly the config's keys; all other pages use only keys that exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli
from pydantic import BaseModel

from codetaste.run.config import Config
from support.docs.config_reference import PAGE, model_in, render_page, sections

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
MODELS: dict[str, type[BaseModel]] = {name: model for name, _, model in sections()}


def unknown_keys(data: Any, model: type[BaseModel], where: str) -> Iterator[str]:
    """Yield the keys in ``data``, a table or a list of tables, that ``model`` does not have."""
    if isinstance(data, list):
        for each in data:
            yield from unknown_keys(each, model, where)
    elif isinstance(data, dict):
        for key, value in data.items():
            if key not in model.model_fields:
                yield f"{where}.{key}"
            elif inner := model_in(model.model_fields[key].annotation):
                yield from unknown_keys(value, inner, f"{where}.{key}")


def config_fences(text: str) -> Iterator[dict[str, Any]]:
    """Yield the TOML examples that are (parts of) a config, not an agent.toml."""
    for fence in re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        data = tomli.loads(fence)
        if "protocol" not in data:
            yield data


def test_page_has_every_key_with_its_type_default_and_meaning() -> None:
    text = PAGE.read_text("utf-8")
    assert text == render_page(text), "renew it: .venv/bin/python tests/support/docs/config_reference.py"
    assert set(MODELS) >= set(Config.model_fields)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(CHECKOUT).as_posix())
def test_a_page_names_only_keys_that_exist(path: Path) -> None:
    text = path.read_text("utf-8")
    unknown = [key for data in config_fences(text) for key in unknown_keys(data, Config, "config")]
    for section, key in re.findall(r"`\[+(\w+)\]+ (\w+)`", text):
        model = MODELS.get(section)
        if model is None or key not in model.model_fields:
            unknown.append(f"[{section}] {key}")
    for setting in re.findall(r"--set '?([a-z_]+(?:\.[\w-]+)+)=", text):
        section, *_, key = setting.split(".")
        if key not in MODELS[section].model_fields:
            unknown.append(setting)
    assert unknown == []


def test_config_of_the_readme_plans_a_run(tmp_path: Path) -> None:
    [text] = re.findall(
        r"^```toml\n(.*?)^```", (CHECKOUT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "first.toml").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "codetaste.run", "first.toml", "--dry-run"],
        cwd=tmp_path,
        env={**os.environ, "ANTHROPIC_API_KEY": "not-a-key"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "2 jobs call a model; all together they can cost $5.00 at most" in done.stdout + done.stderr
