"""What is read of a patch is what git did: its own counts, and the trees themselves, say so."""

from __future__ import annotations

import os
import random
import re
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.errors import PatchError
from codetaste.source.patch.model import FileDiff
from codetaste.source.patch.parse import parse_patch
from support.source.random_trees import LINES, SUBMODULE, EditedRepository, Edits, Tree, random_edits
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
    """The lines of a file as git sees them: a newline ends one, and nothing else does."""
    if path is None:
        return []
    mode, content = tree[os.fsencode(path)]
    if mode == SUBMODULE:
        content = b"Subproject commit %s\n" % content
    parts = content.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def numstat(said: bytes) -> Counts:
    """Added and removed lines by old and new path; binary files have none."""
    counts: Counts = {}
    fields = iter(said.split(b"\0")[:-1])
    for field in fields:
        added, removed, path = field.split(b"\t", 2)
        names = (path, path) if path else (next(fields), next(fields))
        counts[names] = (int(added.replace(b"-", b"0")), int(removed.replace(b"-", b"0")))
    return counts


def counted(files: tuple[FileDiff, ...]) -> Counts:
    counts: dict[tuple[bytes, bytes], list[int]] = defaultdict(lambda: [0, 0])
    for file in files:
        names = os.fsencode(file.old or file.new or ""), os.fsencode(file.new or file.old or "")
        counts[names][0] += file.added_count
        counts[names][1] += file.removed_count
    return {names: (added, removed) for names, (added, removed) in counts.items()}


def walked(content: bytes) -> tuple[int, int]:
    """Added and removed lines of a whole patch of git's, line by line."""
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


def told_alike(edits: Edits, names: tuple[bytes, bytes], options: list[str]) -> bool:
    """Whether git's counting and git's patches have the same view of these files."""
    old, new = edits.old.get(names[0]), edits.new.get(names[1])
    contents = [each[1] for each in (old, new) if each]
    if "--text" in options and any(b"\0" in content for content in contents):
        return False  # its counting does not know of that option
    return not (old and new and old[0] != new[0] and old[1] == new[1])  # nor of a link that becomes a file


def check(seed: int) -> None:
    rng = random.Random(seed)
    edits = random_edits(rng, FILES)
    chosen = {what: rng.choice(choices).split() for what, choices in OPTIONS.items()}
    options = [word for words in chosen.values() for word in words]
    deciding = [*chosen["renames"], *chosen["algorithm"]]
    quoting = f"core.quotePath={rng.choice(['true', 'false'])}"
    with tempfile.TemporaryDirectory() as folder:
        repository = EditedRepository.made(Path(folder) / "r.git", edits)
        content = repository.git("-c", quoting, "diff", *options, "old", "new")
        expected = numstat(repository.git("diff", "--numstat", "-z", *deciding, "old", "new"))
    patch = parse_patch(content)
    assert patch.strip == ("--no-prefix" not in options), options
    found = counted(patch.files)
    found, expected = (
        {names: counts for names, counts in each.items() if told_alike(edits, names, options)}
        for each in (found, expected)
    )
    if chosen["context"] == ["-U0"] and not chosen["algorithm"]:
        assert found == expected, options
    else:  # git may find other changes where it only counts them
        assert balance(found) == balance(expected), options
    assert (patch.added_count, patch.removed_count) == walked(content)
    for file in patch.files:
        if not file.binary:
            gone, come = set(file.removed), set(file.added)
            old, new = lines_of(edits.old, file.old), lines_of(edits.new, file.new)
            stays = [line for number, line in enumerate(old, 1) if number not in gone]
            assert stays == [line for number, line in enumerate(new, 1) if number not in come], options
            assert len(gone) == file.removed_count
            assert all(1 <= number <= len(old) for number in gone)
            assert all(1 <= number <= len(new) for number in come)
    assert len(patch.added) == patch.added_count


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_patch_lines_match_git_counts(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_the_lines_of_ten_thousand_edited_files_are_those_that_git_counts(seed: int) -> None:
    check(seed)


def mutated(rng: random.Random, content: bytes) -> bytes:
    """A patch with a few lines lost, doubled, made up, cut, or all that follows gone."""
    lines = content.split(b"\n")
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(lines))
        lines[at : at + 1] = rng.choice(
            [[], [lines[at]] * 2, [rng.choice(LINES)], [rng.choice(LINES), lines[at]], [lines[at][:-1]]]
        )
        if rng.random() < 0.1:
            del lines[at + 1 :]
    return b"\n".join(lines)


def check_mutated(seed: int) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        repository = EditedRepository.made(Path(folder) / "r.git", random_edits(rng, 8))
        content = repository.git(
            "diff", *rng.choice(["-M", "--binary", "-U1", "--no-prefix"]).split(), "old", "new"
        )
        for _ in range(6):
            damaged = mutated(rng, content)
            try:
                patch = parse_patch(damaged)
            except PatchError:
                continue
            command = ["git", "apply", "--numstat", "-z", f"-p{patch.strip}", "-"]
            said = subprocess.run(
                command, input=damaged, capture_output=True, env=ENVIRONMENT, cwd=folder, check=False
            )
            if said.returncode == 0 and b"error:" not in said.stderr:
                counts = sorted((file.added_count, file.removed_count) for file in patch.files)
                rows = [row.split(b"\t") for row in said.stdout.split(b"\0") if row.count(b"\t") > 1]
                assert counts == sorted(
                    (int(b"0" + row[0].strip(b"-")), int(b"0" + row[1].strip(b"-"))) for row in rows
                )


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_damaged_patches_are_refused_or_read_as_git_reads_them(seed: int) -> None:
    check_mutated(seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_damaged_patches_are_rejected_or_read_like_git(seed: int) -> None:
    check_mutated(seed)
