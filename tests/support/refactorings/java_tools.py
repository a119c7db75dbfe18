"""The pinned Java tools, which ``codetaste java install`` put on this machine, in the cache of a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.core.paths import cache_dir
from codetaste.errors import ToolMissing
from codetaste.java.artifacts.artifact_set import load_artifact_set
from codetaste.java.artifacts.store import class_path, jars_folder
from codetaste.java.jdk import INSTALLED_FOLDER


def tools_in(cache: Path, jars: str) -> Path:
    """Return ``cache`` with the installed jars and JDKs; skip the test if the set ``jars`` is missing."""
    installed = cache_dir(print)
    try:
        class_path(load_artifact_set(jars), installed)
    except ToolMissing as error:
        pytest.skip(str(error))
    cache.mkdir(parents=True, exist_ok=True)
    for folder in (jars_folder(installed), installed / INSTALLED_FOLDER):
        if folder.is_dir():
            (cache / folder.name).symlink_to(folder)
    return cache
