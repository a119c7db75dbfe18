"""The developers' answers to the published instances of junit4, and mutants of them, before the check."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from codetaste.core.concurrency import gather
from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.refactorings.service import refactoring_service
from codetaste.swe_refactor.dataset.format import read_instances
from support.refactorings.java_tools import tools_in
from support.swe_refactor.mutate_answers import answer

VERIFIED = 13
"""Developers' answers that are verified; docs/swe-refactor-scores.md has the reasons of the others."""


@pytest.mark.anyio
@pytest.mark.heavy
@pytest.mark.timeout(900)
async def test_mutants_are_rejected(published_data: Path, tmp_path: Path) -> None:
    file = published_data.parent / "swe_refactor" / "pure_refactor_junit4.json"
    if not file.is_file():
        pytest.skip(f"no data: {file} is not there")
    cache = tools_in(tmp_path / "cache", "refactoring-miner-3.1.4")
    async with refactoring_service(RefactoringMinerConfig(workers=1), cache) as service:
        results = await gather([partial(answer, service, each) for each in read_instances(file)])
    mutants = [each for found in results for each in found or ()]
    assert sum(found is not None for found in results) == VERIFIED
    assert len(mutants) > 300
    assert [each for each in mutants if each[1] == "verified"] == []
    assert Counter(outcome for _, outcome, _ in mutants)["tool_failed"] == 0
    published = Counter(is_published for _, _, is_published in mutants)
    assert published[True] > len(mutants) / 2, "the published check accepts most of them"
