"""Hostile patches have the expected signs, honest ones none; the page's tables show both."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.evaluation.faked_passes import HEADS, HONEST, HOSTILE, FakedPass, Repository, render_row

PAGE = Path(__file__).parents[4] / "docs/test-runs.md"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("R"))


@pytest.mark.parametrize("patch", [*HOSTILE, *HONEST], ids=lambda patch: patch.name)
def test_patch_has_the_expected_signs(repository: Repository, patch: FakedPass) -> None:
    flags = repository.flags_of(patch)
    assert {flag.kind for flag in flags} == set(patch.kinds), flags
    assert all(flag.evidence and flag.evidence.isprintable() for flag in flags)


def test_page_shows_all_patches_with_their_signs() -> None:
    page = PAGE.read_text("utf-8")
    for key, patches in (("hostile", HOSTILE), ("honest", HONEST)):
        rows = page.partition("\n".join(HEADS[key]) + "\n")[2].split("\n\n")[0].splitlines()
        expected = [
            f"| {each.name} | {', '.join(f'`{kind}`' for kind in sorted(each.kinds)) or '–'} |"
            for each in patches
        ]
        assert rows == expected
    assert render_row("x", ()) == "| x | – |"
