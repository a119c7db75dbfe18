"""The examples in the prompt of rule discovery work, and have every feature that published rules use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from codetaste.llm.prompts import load_prompt
from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.engine.opengrep import OpenGrep
from codetaste.rules.rule import Rule, parse_rules, read_candidates
from codetaste.rules.scan.full import FullScanner

CODE = """
from theme.colours import RED


class Canvas:
    def on_colour_change(self, canvas, key):
        paint(canvas, RED)
        canvas.paint("red")
        paint(canvas, parse_colour("red"))
        return COLOURS[key], COLOURS["none"]

    def reset(self, key):
        return COLOURS[key]
"""
MATCHES = {
    "imports-old-colours": 1,
    "calls-old-paint": 2,
    "paints-or-fills-by-string": 1,
    "reads-colour-in-method": 1,
    "old-handler-name": 1,
    "mentions-old-option": 1,
    "colour-from-string-is-painted": 1,
}


def examples() -> list[Rule]:
    text = load_prompt("discover_system").render(direction="additive", overlap="0.95")
    found = [read_candidates(each) for each in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    assert [error for each in found for error in each.errors] == []
    return [rule for each in found for rule in each.rules]


def keys_of(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield key
            yield from keys_of(value)
    elif isinstance(node, list):
        for each in node:
            yield from keys_of(each)


@pytest.mark.anyio
async def test_each_example_matches_what_it_is_about(engine: RuleEngine, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/canvas.py").write_text(CODE)
    (tmp_path / "paint.toml").write_text("colour_depth = 8\n")
    rules = examples()
    scan = await FullScanner(OpenGrep(engine), None).scan(rules, tmp_path)
    assert {rule.id: len(scan.by_rule.get(rule.id, [])) for rule in rules} == MATCHES


def test_each_feature_of_published_rules_is_taught(published_data: Path) -> None:
    used = {
        key
        for path in (published_data / "assets/rules").rglob("rules_*.yml")
        for rule in parse_rules(path.read_bytes(), source=path.name)
        for key in keys_of({name: value for name, value in rule.body.items() if name != "metadata"})
    }
    assert len(used) > 15
    assert used - {key for rule in examples() for key in keys_of(rule.body)} == set()
