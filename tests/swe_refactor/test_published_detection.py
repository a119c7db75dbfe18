"""RefactoringMiner finds the published instances of junit4 anew, from the files that are in them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.refactorings.service import RefactoringService, refactoring_service
from codetaste.swe_refactor.dataset.format import read_instances
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from support.refactorings.java_tools import tools_in

pytestmark = [pytest.mark.anyio, pytest.mark.heavy]

LOST = {
    # It takes the classes of the three methods for renamed ones, and an inlined ``builder`` for the origin
    # of ``failAfter50Ms``.
    "3.0.10": {
        ("37a8aaba", "Move Method", "public testSomething() : void "): 3,
        ("2db63942", "Extract Method", "private failAfter50Ms(statement Statement) : FailOnTimeout "): 2,
    },
    # It takes ``run`` for a renamed ``evaluateWithWaitDuration``.
    "3.1.4": {
        ("2db63942", "Extract Method", "private run(failOnTimeout FailOnTimeout) : ThrowingRunnable "): 2,
    },
}
"""What each release does not find, by commit, type and method: docs/reproduction.md has the same."""


async def has(service: RefactoringService, instance: RefactoringInstance) -> bool:
    """Return whether the refactoring is found, with its description; its purity must then be the same."""
    detection = await service.detect_contents(
        {instance.file_path_before: instance.source_code_before_for_whole},
        {instance.file_path_after: instance.source_code_after_for_whole},
    )
    wanted = (instance.type, instance.description.replace("\t", " ", 1))
    found = [each for each in detection.refactorings if (each.type, each.description) == wanted]
    for each in found:
        assert each.purity is not None
        verdict = (each.purity.pure, each.purity.description, each.purity.comment, each.purity.mapping_state)
        (published,) = instance.purity_check_result_list
        assert verdict == (
            published.is_pure,
            published.description,
            published.purity_comment,
            published.mapping_state,
        )
    return bool(found)


@pytest.mark.parametrize("version", sorted(LOST))
async def test_type_description_and_purity_agree(version: str, published_data: Path, tmp_path: Path) -> None:
    file = published_data.parent / "swe_refactor" / "pure_refactor_junit4.json"
    if not file.is_file():
        pytest.skip(f"no data: {file} is not there")
    cache = tools_in(tmp_path / "cache", f"refactoring-miner-{version}")
    config = RefactoringMinerConfig.model_validate({"version": version, "workers": 1})
    lost = Counter[tuple[str, str, str]]()
    async with refactoring_service(config, cache) as service:
        for instance in read_instances(file):
            assert instance.file_path_before == instance.file_path_after, "one file has it all"
            if not await has(service, instance):
                method = instance.description.partition("\t")[2]
                words = (" from ", " extracted ")
                end = min(at for at in map(method.find, words) if at >= 0)
                lost[instance.commit_id[:8], instance.type, method[: end + 1]] += 1
    assert lost == LOST[version]
