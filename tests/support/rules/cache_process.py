"""Use a cache of matches as a scan does, in a process of its own, and print what became of it.

Usage: cache_process.py CACHE ENGINE SIZE FIRST COUNT: entries FIRST … FIRST + COUNT - 1 are looked up, and
written where they are not there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from codetaste.rules.cache.entry import CacheEntry, FileAnswer
from codetaste.rules.cache.store import MatchStore


def entry(number: int, files: int = 40) -> CacheEntry:
    """An entry that is like no other: two rules, one of them in the next entry too."""
    rules = tuple(sorted((b"%016d" % number, b"%016d" % (number + 1))))
    said = FileAnswer(
        scanned=True, matches={rules[0]: ((number, 2, 3, 4),)}, problems=(("caf\udce9", number),)
    )
    return CacheEntry(rules, {b"%08d%08d" % (number, file): said for file in range(files)})


def main() -> None:
    cache, engine, *numbers = sys.argv[1:]
    size, first, count = map(int, numbers)
    warnings: list[str] = []
    store = MatchStore(Path(cache), engine, size=size, warn=warnings.append)
    found, wrong = [], []
    for number in range(first, first + count):
        wanted = entry(number)
        there = store.load(wanted.rules)
        if there is None:
            store.add(wanted)
        else:
            (found if there == wanted else wrong).append(number)
    print(json.dumps({"found": found, "wrong": wrong, "warnings": warnings}))  # noqa: T201


if __name__ == "__main__":
    main()
