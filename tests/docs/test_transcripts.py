"""The page of things that go wrong shows what terminals show."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from support.docs import transcripts
from support.docs.transcripts import PAGE, SCENARIOS, SIZES, Scenario
from support.flows.tiny_benchmark import Bench, TinyBenchmark

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def alpha(tmp_path_factory: pytest.TempPathFactory, require: Callable[..., None]) -> TinyBenchmark:
    require("git")
    require("bwrap")
    folder = tmp_path_factory.mktemp("tiny")
    bench = Bench(folder)
    bench.add()
    return TinyBenchmark(bench, folder / "cache")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.title)
def test_page_has_what_terminals_show(scenario: Scenario, alpha: TinyBenchmark, tmp_path: Path) -> None:
    section = transcripts.section(scenario, alpha, tmp_path)
    assert section in PAGE.read_text(), f"renew the page with tests/support/docs/transcripts.py\n{section}"


def test_page_has_each_scenario_in_both_sizes_and_nothing_else() -> None:
    text = PAGE.read_text()
    assert text.startswith(transcripts.HEAD)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == [scenario.title for scenario in SCENARIOS]
    blocks = re.findall(r"^```text\n(.+?)\n```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == sum(len(SIZES) * (2 if scenario.interrupt else 1) for scenario in SCENARIOS)
    for number, block in enumerate(blocks):
        lines = block.splitlines()
        assert len(lines) <= max(size.lines for size in SIZES), number
        assert max(map(len, lines)) <= max(size.columns for size in SIZES), number
