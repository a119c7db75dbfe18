"""The minimal Debian system, built once for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.system import minimal_debian


@pytest.fixture(scope="session")
def minimal_archive(as_root: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The root file system as a tar archive."""
    archive = tmp_path_factory.mktemp("minimal") / "minimal.tar"
    minimal_debian.build(archive)
    yield archive
    archive.unlink()


@pytest.fixture(scope="session")
def as_root(require: Callable[..., None]) -> None:
    """Skip without root, which namespaces and mmdebstrap's devices need, or without a program."""
    require("root", ok=os.geteuid() == 0, reason="building and entering a root file system needs root")
    for program in ("mmdebstrap", "unshare", "setpriv", "git"):
        require(program)


@pytest.fixture
def minimal_system_with_checkout(
    minimal_archive: Path, tmp_path: Path
) -> Iterator[minimal_debian.MinimalSystem]:
    """An unpacked minimal system of this test's own, with the checkout in it."""
    root = tmp_path / "root"
    try:
        yield minimal_debian.unpack(minimal_archive, root)
    finally:
        minimal_debian.remove(root)
