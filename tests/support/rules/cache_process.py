"""Use a match cache like a scan, in a separate process, and print the results as JSON.

Usage: cache_process.py CACHE ENGINE SIZE FIRST COUNT: entries FIRST … FIRST + COUNT - 1 are looked up, and
missing ones are written.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from codetaste.rules.cache.entry import CacheEntry, FileAnswer
from codetaste.rules.cache.store import MatchStore


def entry(number: int, files: int = 40) -> CacheEntry:
    """Return a unique entry with two rules, one of which is also in the next entry."""
    rules = tuple(sorted((b"%016d" % number, b"%016d" % (number + 1))))
    answer = FileAnswer(
        scanned=True, matches={rules[0]: ((number, 2, 3, 4),)}, problems=(("caf\udce9", number),)
    )
    return CacheEntry(rules, {b"%08d%08d" % (number, file): answer for file in range(files)})


def main() -> None:
    cache, engine, *numbers = sys.argv[1:]
    size, first, count = map(int, numbers)
    warnings: list[str] = []
    store = MatchStore(Path(cache), engine, size=size, warn=warnings.append)
    found, wrong = [], []
    for number in range(first, first + count):
        expected = entry(number)
        stored = store.load(expected.rules)
        if stored is None:
            store.add(expected)
        else:
            (found if stored == expected else wrong).append(number)
    print(json.dumps({"found": found, "wrong": wrong, "warnings": warnings}))  # noqa: T201


if __name__ == "__main__":
    main()
