"""Opaque names: the folder of one tree does not reveal the folder of another."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from codetaste.errors import SourceError
from codetaste.source.tree.opaque_names import opaque_name


def test_name_is_the_same_in_one_cache_and_different_in_another(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert opaque_name(here, "git-1") == opaque_name(here, "git-1")
    assert len({opaque_name(here, "git-1"), opaque_name(here, "git-2"), opaque_name(there, "git-1")}) == 3


def test_only_the_owner_can_read_the_secret(tmp_path: Path) -> None:
    opaque_name(tmp_path, "git-1")
    [secret] = tmp_path.iterdir()
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_concurrent_callers_agree_on_one_secret(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        names = set(pool.map(lambda _: opaque_name(tmp_path / "cache", "git-1"), range(64)))
    assert len(names) == 1
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["secret"]


def test_unwritable_cache_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    with pytest.raises(SourceError, match="cannot write"):
        opaque_name(tmp_path / "cache", "git-1")
