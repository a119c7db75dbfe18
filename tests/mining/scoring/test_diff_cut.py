"""A long diff is cut so that every file stays visible."""

from __future__ import annotations

import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.mining.scoring.diff_cut import MIN_CHARS, cut_diff, share


def file_diff(path: str, *hunks: tuple[int, int], width: int = 20) -> str:
    """A context-free diff of one file; each hunk removes and adds so many lines."""
    text = f"diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n"
    for number, (removed, added) in enumerate(hunks):
        text += f"@@ -{number * 100 + 1},{removed} +{number * 100 + 1},{added} @@ def function():\n"
        text += "".join(f"-old {number} {line} ".ljust(width, "o") + "\n" for line in range(removed))
        text += "".join(f"+new {number} {line} ".ljust(width, "n") + "\n" for line in range(added))
    return text


def titles(text: str) -> list[str]:
    return re.findall(r"^## (.*)$", text, re.MULTILINE)


def test_diff_that_fits_is_unchanged() -> None:
    diff = file_diff("a.py", (3, 4))
    assert cut_diff(diff, max(MIN_CHARS, len(diff))) == diff


def test_every_file_has_its_counts_and_a_share_of_its_hunks() -> None:
    diff = (
        file_diff("big.py", *[(30, 20)] * 12) + file_diff("small.py", (1, 2)) + file_diff("also.py", (200, 0))
    )
    cut = cut_diff(diff, 4000)
    assert len(cut) <= 4000
    assert cut.startswith(
        f"[This diff of {len(diff):,} characters and 3 files is cut.]\n## big.py (+240 -360)\n"
    )
    assert titles(cut) == ["big.py (+240 -360)", "small.py (+2 -1)", "also.py (+0 -200)"]
    assert "+new 0 1 nnn" in cut.split("## small.py")[1], "a small file is whole"
    shown = [len(part) for part in re.split("^## .*\n", cut, flags=re.MULTILINE)[1:]]
    assert shown[0] > 1500
    assert shown[2] > 1500
    assert len(cut) > 3800, "what a file does not need goes to the others"


def test_hunks_are_taken_from_all_of_a_file_and_the_others_are_counted() -> None:
    cut = cut_diff(file_diff("big.py", *[(6, 6)] * 20), 1500)
    starts = [int(line) for line in re.findall(r"^@@ -(\d+)", cut, re.MULTILINE)]
    assert len(starts) == 4
    assert starts == [1, 501, 1001, 1501]
    assert "[16 hunks left out]\n" in cut
    cut = cut_diff(file_diff("big.py", *[(16, 16)] * 20), 1500)
    assert re.search(r"\[\d+ lines left out\]\n@@", cut)


def test_kinds_and_names_of_files_are_shown() -> None:
    diff = (
        "diff --git a/old name.py b/new name.py\nsimilarity index 90%\nrename from old name.py\n"
        "rename to new name.py\nindex 1..2 100644\n--- a/old name.py\t\n+++ b/new name.py\t\n"
        "@@ -1 +1 @@\n-a\n+b\n"
        "diff --git a/made.go b/made.go\nnew file mode 100644\nindex 0..2\n--- /dev/null\n+++ b/made.go\n"
        "@@ -0,0 +1 @@\n+x\n"
        "diff --git a/lost.go b/lost.go\ndeleted file mode 100644\nindex 1..0\n--- a/lost.go\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n"
        "diff --git a/icon.png b/icon.png\nnew file mode 100644\nindex 0..2\n"
        "Binary files /dev/null and b/icon.png differ\n"
        "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
        'diff --git "a/\\303\\244.c" "b/\\303\\244.c"\nindex 1..2 100644\n--- "a/\\303\\244.c"\n'
        '+++ "b/\\303\\244.c"\n@@ -1 +1 @@\n---x\n+++x\n'
    )
    assert titles(cut_diff(diff + file_diff("long.py", (99, 99)), 1200)) == [
        "old name.py -> new name.py (+1 -1)",
        "made.go (new, +1 -0)",
        "lost.go (deleted, +0 -1)",
        "icon.png (new, binary, +0 -0)",
        "run.sh (+0 -0)",
        '"\\303\\244.c" (+1 -1)',
        "long.py (+99 -99)",
    ]


def test_files_whose_names_alone_do_not_fit_are_summed_up() -> None:
    cut = cut_diff("".join(file_diff(f"folder/file_{number}.py", (1, 2)) for number in range(500)), 2000)
    assert len(cut) <= 2000
    assert len(titles(cut)) > 50
    assert cut.endswith(
        f"[{500 - len(titles(cut))} more files: +{2 * (500 - len(titles(cut)))} -{500 - len(titles(cut))}]\n"
    )


def test_hunks_of_fewer_files_are_shown_where_shares_would_be_tiny() -> None:
    diff = "".join(file_diff(f"f{number:03}.py", (40, 40)) for number in range(200))
    cut = cut_diff(diff, 8000)
    assert len(titles(cut)) == 200
    bodies = re.split("^## .*\n", cut, flags=re.MULTILINE)[1:]
    shown = [number for number, body in enumerate(bodies) if body]
    assert 5 <= len(shown) <= 12
    assert all(body.count("\n") > 3 for body in bodies if body)
    steps = {after - before for before, after in pairwise(shown)}
    assert max(steps) - min(steps) <= 1
    assert len(cut) > 7500


def test_long_lines_and_text_that_is_no_diff_are_cut() -> None:
    cut = cut_diff(file_diff("min.js", (2, 2), width=50_000), 1000)
    assert cut.count("…\n") >= 2
    assert cut_diff("x" * 5000, 1000) == f"[This diff of 5,000 characters and 0 files is cut.]\n{'x' * 299}…"
    assert len(cut_diff("line\n" * 5000, 1000)) <= 1000


def test_too_small_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="less than 1000 characters, such as 999"):
        cut_diff("", MIN_CHARS - 1)


HUNKS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)).filter(any), max_size=8)
FILES = st.lists(st.tuples(HUNKS, st.integers(20, 400)), min_size=1, max_size=40)


@given(FILES, st.integers(MIN_CHARS, 20_000))
def test_cut_keeps_to_its_number_and_names_every_file(
    files: list[tuple[list[tuple[int, int]], int]], chars: int
) -> None:
    diff = "".join(file_diff(f"d{n}/f{n}.py", *hunks, width=width) for n, (hunks, width) in enumerate(files))
    cut = cut_diff(diff, chars)
    assert len(cut) <= chars
    assert cut == cut_diff(diff, chars)
    if len(diff) <= chars:
        assert cut == diff
        return
    expected = [
        f"d{n}/f{n}.py (+{sum(added for _, added in hunks)} -{sum(removed for removed, _ in hunks)})"
        for n, (hunks, _) in enumerate(files)
    ]
    shown = titles(cut)
    assert shown == expected[: len(shown)]
    if len(shown) < len(expected):
        assert sum(len(title) + 4 for title in expected) + 100 > chars
        assert f"[{len(expected) - len(shown)} more file" in cut
    bodies = re.split("^## .*\n", cut, flags=re.MULTILINE)[1:]
    for body in bodies:
        lines = {line for line in body.splitlines() if not line.startswith("[")}
        assert all(len(line) <= 300 for line in lines)


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(0, 300))
def test_shares_are_those_of_dealing_one_at_a_time(needs: list[int], room: int) -> None:
    dealt, left = [0] * len(needs), room
    while left and any(has < need for has, need in zip(dealt, needs, strict=True)):
        for index, need in enumerate(needs):
            if left and dealt[index] < need:
                dealt[index] += 1
                left -= 1
    shares = share(needs, room)
    assert sum(shares) == sum(dealt)
    assert all(abs(one - other) <= 1 for one, other in zip(shares, dealt, strict=True))
    assert all(one <= need for one, need in zip(shares, needs, strict=True))


@given(st.text(st.characters(codec="utf-8"), max_size=3000))
def test_any_text_is_cut(text: str) -> None:
    assert len(cut_diff(text, MIN_CHARS)) <= MIN_CHARS
    assert len(cut_diff("diff --git " + text + "\n@@ " + text, MIN_CHARS)) <= MIN_CHARS


def test_diff_of_git_is_cut(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        program = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
        return subprocess.run(program, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    for number in range(30):
        (tmp_path / f"f{number}.py").write_text("".join(f"line {each}\n" for each in range(60)))
    git("add", "-A")
    git("commit", "-qm", "one")
    for number in range(30):
        path = tmp_path / f"f{number}.py"
        path.write_text(path.read_text().replace("5", "five" * number))
    git("mv", "f1.py", "g1.py")
    diff = git("diff", "-U0", "-M", "HEAD")
    cut = cut_diff(diff, 6000)
    assert len(cut) <= 6000
    names = [title.split(" (")[0] for title in titles(cut)]
    assert sorted(names) == sorted(git("diff", "--name-only", "HEAD").split()) or "f1.py -> g1.py" in names
    assert len(names) == 30
