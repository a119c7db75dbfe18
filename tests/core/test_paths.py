"""Folders of codetaste that other users of the machine could prepare."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codetaste.core.paths import private_temporary_folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the private folder is made."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / f"codetaste-{os.getuid()}"


def test_temporary_folder_is_private_and_found_again(place: Path) -> None:
    assert private_temporary_folder() == private_temporary_folder() == place
    assert place.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_temporary_folder_that_others_can_write_is_not_used(mode: int, place: Path) -> None:
    place.mkdir()
    place.chmod(mode)
    assert private_temporary_folder() is None


def test_temporary_folder_that_is_a_link_or_a_file_is_not_used(place: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    place.symlink_to(tmp_path / "elsewhere")
    assert private_temporary_folder() is None
    place.unlink()
    place.touch()
    assert private_temporary_folder() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_temporary_folder_of_another_user_is_not_used(place: Path) -> None:
    place.mkdir(mode=0o700)
    os.chown(place, 12345, 12345)
    assert private_temporary_folder() is None
