"""Large commits of clones, with those of the published candidates marked: what keyword sets are chosen on.

``.venv/bin/python tests/support/mining/keywords/commits.py PAIRS.csv CLONES OUT.jsonl`` reads the clones
``CLONES/OWNER/REPO`` of the repositories in ``PAIRS.csv`` (``discovered_pairs_sample.csv`` of the published
data). OUT.jsonl has messages of other projects: it does not belong into this one.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

MIN_FILES = 45
FORMAT = "%x01%H%x00%P%x00%cs%x00%B%x02"
HEAD = re.compile(rb"\x01[0-9a-f]{40}\0")


class Commit(NamedTuple):
    repository: str
    hash: str
    merge: bool
    date: str
    """When it was committed, YYYY-MM-DD."""
    files: int
    """Changed files, against the first parent; a moved one counts once if its content is unchanged."""
    candidate: bool
    message: str


def read_commits(repository: str, clone: Path, candidates: set[str]) -> Iterator[Commit]:
    """Yield the large commits of HEAD's history, and the candidates, however many files they change."""
    there = [each for each in sorted(candidates) if has_commit(clone, each)]
    command = ["git", "-C", str(clone), "log", "--diff-merges=first-parent", "--raw", "-M100%", "-l0"]
    command += ["--no-abbrev", "--encoding=UTF-8", f"--format={FORMAT}", "HEAD", *there]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        text: list[bytes] = []
        for line in process.stdout:
            if HEAD.match(line) and text:
                yield from parse_commit(repository, text, candidates)
                text = []
            text.append(line)
        yield from parse_commit(repository, text, candidates)


def has_commit(clone: Path, commit: str) -> bool:
    command = ["git", "-C", str(clone), "cat-file", "-e", f"{commit}^{{commit}}"]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0


def parse_commit(repository: str, lines: list[bytes], candidates: set[str]) -> Iterator[Commit]:
    head, _, raw = b"".join(lines).rpartition(b"\x02")  # a message may have one
    if not head:
        return
    hash_, parents, date, message = head[1:].decode("utf-8", "replace").split("\0", 3)
    files = sum(line.startswith(b":") for line in raw.splitlines())
    if files >= MIN_FILES or hash_ in candidates:
        merge = len(parents.split()) > 1
        yield Commit(
            repository, hash_, merge, date, files, hash_ in candidates, message.replace("\r\n", "\n")
        )


def load_commits(path: Path) -> list[Commit]:
    with path.open(encoding="utf-8") as file:
        return [Commit(**json.loads(line)) for line in file]


def main(pairs: Path, clones: Path, out: Path) -> None:
    candidates: dict[str, set[str]] = defaultdict(set)
    with pairs.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            candidates[f"{row['owner']}/{row['repo']}"].add(row["golden_commit_hash"])
    found: dict[str, Any] = {"repositories": 0, "commits": 0, "candidates": 0}
    with out.open("w", encoding="utf-8") as file:
        for repository in sorted(candidates):
            if not (clones / repository).is_dir():
                continue
            found["repositories"] += 1
            for commit in read_commits(repository, clones / repository, candidates[repository]):
                file.write(json.dumps(commit._asdict()) + "\n")
                found["commits"] += 1
                found["candidates"] += commit.candidate
    sys.stdout.write(f"{found}; in {pairs.name}: {sum(map(len, candidates.values()))}\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
