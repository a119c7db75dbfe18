"""Parsed patches agree with git's own counts and with the trees."""

from __future__ import annotations

import os
import random
import re
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from codetaste.errors import PatchError
from codetaste.source.patch.model import FileDiff
from codetaste.source.patch.parse import parse_patch
from support.source.random_trees import LINES, LINK, SUBMODULE, EditedRepository, Edits, Tree, random_edits
from support.source.repositories import ENVIRONMENT

FILES = 40
OPTIONS = {
    "renames": ["--no-renames", "-M", "-M30%", "-C", "-C --find-copies-harder", "-M -B"],
    "context": ["-U0", "-U1", "-U3", "-U5", "-W", "--inter-hunk-context=4"],
    "algorithm": ["", "--patience", "--histogram", "--minimal", "--no-indent-heuristic"],
    "binary": ["", "--binary", "--full-index", "--text", "--abbrev=12"],
    "prefix": ["", "--no-prefix", "--src-prefix=i/ --dst-prefix=w/", "--src-prefix=old/ --dst-prefix=new/"],
}
HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
Counts = dict[tuple[bytes, bytes], tuple[int, int]]


def lines_of(tree: Tree, path: str | None) -> list[bytes]:
    """Return the lines of a file as git counts them: only a newline ends a line."""
    if path is None:
        return []
    mode, content = tree[os.fsencode(path)]
    if mode == SUBMODULE:
        content = b"Subproject commit %s\n" % content
    parts = content.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def parse_numstat(output: bytes) -> Counts:
    """Return added and removed lines by old and new path; binary files have none."""
    counts: Counts = {}
    fields = iter(output.split(b"\0")[:-1])
    for field in fields:
        added, removed, path = field.split(b"\t", 2)
        names = (path, path) if path else (next(fields), next(fields))
        counts[names] = (int(added.replace(b"-", b"0")), int(removed.replace(b"-", b"0")))
    return counts


def count_lines(files: tuple[FileDiff, ...]) -> Counts:
    counts: dict[tuple[bytes, bytes], list[int]] = defaultdict(lambda: [0, 0])
    for file in files:
        names = os.fsencode(file.old or file.new or ""), os.fsencode(file.new or file.old or "")
        counts[names][0] += file.added_count
        counts[names][1] += file.removed_count
    return {names: (added, removed) for names, (added, removed) in counts.items()}


def count_by_walking(content: bytes) -> tuple[int, int]:
    """Count the added and removed lines of a whole patch of git's, line by line."""
    added = removed = old = new = 0
    for line in content.split(b"\n"):
        if old or new:
            removed += line[:1] == b"-"
            added += line[:1] == b"+"
            old -= line[:1] in {b"-", b" "}
            new -= line[:1] in {b"+", b" "}
        elif header := HUNK.match(line):
            old, new = (1 if text is None else int(text) for text in header.groups())
    return added, removed


def balance(counts: Counts) -> dict[tuple[bytes, bytes], int]:
    return {names: added - removed for names, (added, removed) in counts.items()}


def comparable(edits: Edits, names: tuple[bytes, bytes], options: list[str]) -> bool:
    """Return whether git counts these files as its patches show them."""
    old, new = edits.old.get(names[0]), edits.new.get(names[1])
    contents = [each[1] for each in (old, new) if each]
    if "--text" in options and any(b"\0" in content for content in contents):
        return False  # git's counts ignore that option
    # They show the lines that differ if a link becomes a file; its patch deletes the link and adds the file.
    return not (old and new and (old[0] == LINK) != (new[0] == LINK))


def check_parsing(seed: int) -> None:
    rng = random.Random(seed)
    edits = random_edits(rng, FILES)
    chosen = {what: rng.choice(choices).split() for what, choices in OPTIONS.items()}
    options = [word for words in chosen.values() for word in words]
    deciding = [*chosen["renames"], *chosen["algorithm"]]
    quoting = f"core.quotePath={rng.choice(['true', 'false'])}"
    with tempfile.TemporaryDirectory() as folder:
        repository = EditedRepository.create(Path(folder) / "r.git", edits)
        content = repository.git("-c", quoting, "diff", *options, "old", "new")
        expected = parse_numstat(repository.git("diff", "--numstat", "-z", *deciding, "old", "new"))
    patch = parse_patch(content)
    assert patch.strip == ("--no-prefix" not in options), options
    found = count_lines(patch.files)
    found, expected = (
        {names: counts for names, counts in each.items() if comparable(edits, names, options)}
        for each in (found, expected)
    )
    if chosen["context"] == ["-U0"] and not chosen["algorithm"]:
        assert found == expected, options
    else:  # git may find other changes if it only counts them
        assert balance(found) == balance(expected), options
    assert (patch.added_count, patch.removed_count) == count_by_walking(content)
    for file in patch.files:
        if not file.binary:
            removed, added = set(file.removed), set(file.added)
            old, new = lines_of(edits.old, file.old), lines_of(edits.new, file.new)
            unchanged = [line for number, line in enumerate(old, 1) if number not in removed]
            assert unchanged == [line for number, line in enumerate(new, 1) if number not in added], options
            assert len(removed) == file.removed_count
            assert all(1 <= number <= len(old) for number in removed)
            assert all(1 <= number <= len(new) for number in added)
    assert len(patch.added) == patch.added_count


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(59586778)  # a file that becomes a link with some of its lines
@given(st.integers(0, 2**32))
def test_patch_lines_match_git_counts(seed: int) -> None:
    check_parsing(seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_patch_lines_of_ten_thousand_files_match_git_counts(seed: int) -> None:
    check_parsing(seed)


def damage(rng: random.Random, content: bytes) -> bytes:
    """Return a patch with a few lines deleted, doubled, replaced, inserted or cut, or the rest deleted."""
    lines = content.split(b"\n")
    for _ in range(rng.randrange(1, 4)):
        if not lines:
            break
        at = rng.randrange(len(lines))
        lines[at : at + 1] = rng.choice(
            [[], [lines[at]] * 2, [rng.choice(LINES)], [rng.choice(LINES), lines[at]], [lines[at][:-1]]]
        )
        if rng.random() < 0.1:
            del lines[at + 1 :]
    return b"\n".join(lines)


def check_damaged(seed: int) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        repository = EditedRepository.create(Path(folder) / "r.git", random_edits(rng, 8))
        content = repository.git(
            "diff", *rng.choice(["-M", "--binary", "-U1", "--no-prefix"]).split(), "old", "new"
        )
        for _ in range(6):
            damaged = damage(rng, content)
            try:
                patch = parse_patch(damaged)
            except PatchError:
                continue
            command = ["git", "apply", "--numstat", "-z", f"-p{patch.strip}", "-"]
            done = subprocess.run(
                command, input=damaged, capture_output=True, env=ENVIRONMENT, cwd=folder, check=False
            )
            if done.returncode == 0 and b"error:" not in done.stderr:
                counts = sorted((file.added_count, file.removed_count) for file in patch.files)
                rows = [row.split(b"\t") for row in done.stdout.split(b"\0") if row.count(b"\t") > 1]
                assert counts == sorted(
                    (int(b"0" + row[0].strip(b"-")), int(b"0" + row[1].strip(b"-"))) for row in rows
                )


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_damaged_patches_are_refused_or_read_like_git(seed: int) -> None:
    check_damaged(seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_many_damaged_patches_are_refused_or_read_like_git(seed: int) -> None:
    check_damaged(seed)
