"""Answers on disk: processes that use one cache at once see whole answers."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from codetaste.core.concurrency import gather
from codetaste.refactorings.cache import DetectionCache
from codetaste.refactorings.model import Detection

pytestmark = pytest.mark.anyio
WRITER = """
import sys, anyio
from pathlib import Path
from codetaste.refactorings.cache import DetectionCache
from codetaste.refactorings.model import Detection

async def main():
    cache = DetectionCache(Path(sys.argv[1]), "program")
    for number in range(40):
        await cache.write(Detection("a" * 40, (), "3.1.4", 1, "x" * 100_000), "commit", number)
        for earlier in range(number):
            assert await cache.read("commit", earlier) is not None

anyio.run(main)
"""


async def test_two_processes_write_and_read_the_same_answers(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    await gather([lambda: anyio.run_process(command) for _ in range(2)])  # fails unless both succeed
    cache = DetectionCache(tmp_path, "program")
    whole = Detection("a" * 40, (), "3.1.4", 1, "x" * 100_000)
    assert [await cache.read("commit", number) for number in range(40)] == [whole] * 40
    assert not list(tmp_path.rglob("*.tmp"))  # noqa: ASYNC240
