"""The table of published candidates, over a made-up clone whose commits land at known filters."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import anyio
import pytest

from support.mining.keywords.candidate_table import main
from support.mining.keywords.commits import read_commits


def test_each_pair_lands_at_the_first_filter_that_drops_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clone = tmp_path / "clones/o/r"
    clone.mkdir(parents=True)

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        command = ["git", *identity, "-C", str(clone), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    hashes = {"absent": "0" * 40}
    for title, suffix, files in [
        ("first", "py", 1),
        ("Refactor a, rename b", "py", 46),
        ("Refactor c, fix d", "py", 46),
        ("Refactor the texts", "txt", 46),
        ("Refactor a little", "py", 2),
    ]:
        for number in range(files):
            (clone / f"{number}.{suffix}").write_text(f"{title} {number}\n")
        git("add", "-A")
        git("commit", "-qm", f"{title}\n\nfix")
        hashes[title] = git("rev-parse", "HEAD")
    commits = [each for each in read_commits("o/r", clone, set()) if "fix d" not in each.message]
    file, pairs = tmp_path / "commits.jsonl", tmp_path / "pairs.csv"
    file.write_text("".join(json.dumps(each._asdict()) + "\n" for each in commits))
    pairs.write_text("repository,golden\n" + "".join(f"o/r,{each}\n" for each in hashes.values()))
    anyio.run(lambda: main(file, tmp_path / "clones", pairs, best=5, keep=10))
    cells = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if "| o/r@" in line]
    found = {row[0].removeprefix("| o/r@"): row[-1].removesuffix(" |") for row in cells}
    landings = {title: found.get(golden[:8]) for title, golden in hashes.items()}
    assert landings.pop("absent") == "reachable: commit deleted or force-pushed"
    assert landings == {
        "first": "reachable: root commit",
        "Refactor a, rename b": "stage 3",
        "Refactor c, fix d": "strong_minus",
        "Refactor the texts": "code_edits",
        "Refactor a little": "files",
    }
