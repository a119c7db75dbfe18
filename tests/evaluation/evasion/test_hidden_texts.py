"""Written texts are searched with work and memory in proportion to their size, up to a limit."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest

from codetaste.evaluation.evasion import hidden_matches
from codetaste.evaluation.evasion.encoded_text import ByteBudget
from codetaste.evaluation.evasion.hidden_texts import WantedTexts, WrittenFile, read_written_files
from codetaste.evaluation.evasion.word_runs import OldFile, RunSearch
from codetaste.evaluation.output.scores_json import scores_to_json
from codetaste.rules.rule import Rule
from codetaste.rules.scan.model import Match, Scanner, ScanResult
from codetaste.source.patch.model import FileDiff, Patch
from codetaste.source.tree.overlay import OverlayTree
from support.evaluation.trees import Files, git_diff, rule, score, write_tree

CODE = b"".join(b"first = second(%d)\n" % number for number in range(9)) + b"old(one, two)\nlast(1)\n"
MATCH = Match("old", "a.py", 10, 10)
RUNS = OldFile(CODE).runs(MATCH)


def read(folder: Path, content: bytes, *runs: range, budget: ByteBudget | None = None) -> WrittenFile:
    """Read ``b.json``, a new file, or an old one of which the patch wrote the lines ``runs``."""
    tree = OverlayTree(folder / "R", folder / "X", frozenset({"b.json"}), frozenset())
    write_tree(tree.overlay, {"b.json": content})
    patch = Patch((FileDiff("b.json" if runs else None, "b.json", added_runs=runs),))
    wanted = WantedTexts(RunSearch(RUNS), frozenset({b"old(one,two)"}))
    return read_written_files(patch, tree, wanted, budget or ByteBudget(32 * 1024**2))["b.json"]


def lock_file(lines: int) -> tuple[bytes, list[range]]:
    """A file with two literals on a line, and every second line as a run."""
    text = b"".join(b'"package-%d": "1.%d",\n{\n' % (at, at) for at in range(lines))
    return text, [range(at, at + 1) for at in range(1, 2 * lines, 2)]


def processor_time(folder: Path, lines: int) -> float:
    text, runs = lock_file(lines)
    start = time.thread_time()
    read(folder, text, *runs)
    return time.thread_time() - start


def test_time_for_a_lock_file_grows_with_its_lines(tmp_path: Path) -> None:
    short = min(processor_time(tmp_path, 2000) for _ in range(3))
    assert min(processor_time(tmp_path, 8000) for _ in range(3)) < 10 * short


TEXTS = {
    "words": b" ".join(b"word%d" % number for number in range(100_000)),
    "short words": b"a b " * 100_000,
    "literals": b"'a' b\n" * 100_000,
    "comments": b"//\nx\n" * 100_000,
    "character codes": b"1," * 200_000,
    "backslashes": b"\\n" * 200_000,
}


@pytest.mark.heavy
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_memory_for_a_text_is_a_few_times_its_size(tmp_path: Path, text: bytes) -> None:
    tracemalloc.start()
    try:
        read(tmp_path, text)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(text)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "runs", "found"),
    [
        (CODE, (), True),
        (CODE.replace(b"\n", b"\\n"), (), True),
        (b"x " + CODE.replace(b"\n", b" # "), (), True),
        (CODE.replace(b"old", b"new"), (), False),
        (CODE.replace(b"last(1)", b"x").replace(b"first = second(8)", b"x"), (), False),
        (CODE, (range(6, 12),), True),
        (CODE, (range(6, 8), range(8, 12)), True),
        (CODE, (range(6, 7), range(8, 12)), False),
        (CODE, (range(40, 50),), False),
    ],
)
def test_parts_that_the_patch_wrote_are_searched(
    tmp_path: Path, content: bytes, runs: Sequence[range], found: bool
) -> None:
    assert bool(read(tmp_path, content, *runs).written) == found


@pytest.mark.parametrize(
    "line",
    [
        b'exec("old(one, two)")',
        b'exec("\\n".join(["a = 1", "old(one, two)"]))',
        b"exec(''.join(['a = 1;old', '(one, two)']))",
        b'eval(["a = 1", "old(one, two)"].join(";"))',
        b'exec("ol" "d(one, two)")',
    ],
)
def test_lines_that_are_joined_and_evaluated_are_found(tmp_path: Path, line: bytes) -> None:
    assert read(tmp_path, line + b"\n").encoded == {b"old(one,two)"}
    assert not read(tmp_path, line.replace(b"exec(", b"show(").replace(b"eval(", b"show(")).encoded


def test_short_file_must_be_there_as_a_whole() -> None:
    runs = OldFile(b"old(one)\n").runs(Match("old", "a.py", 1, 1))
    assert runs == (b"old one",)
    search = RunSearch(runs)
    assert search.found_in(b"# old: one\n") == {b"old one"}
    assert search.found_in(b"an old one") == search.found_in(b"old one " * 12) == set()


def test_long_match_must_be_there_as_a_whole() -> None:
    (whole,) = OldFile(CODE).runs(Match("old", "a.py", 1, 10))
    search = RunSearch([whole, *RUNS])
    assert whole in search.found_in(CODE)
    assert whole not in search.found_in(CODE.replace(b"two", b"twofold"))
    assert search.found_in(b"x" + whole + b" last 1") == set(RUNS)


def test_whole_short_file_beside_it_does_not_hide_a_run() -> None:
    whole = b"a_name_that_is_longer_than_any_run_of_twelve_short_words old_call"
    run = b"a b c d e f g h i j k l"
    search = RunSearch([whole, run])
    assert search.found_in(b"'a, b, c, d, e, f, g, h, i, j, k, l'") == {run}
    assert search.found_in(whole) == {whole}


def test_what_is_not_read_is_known(tmp_path: Path) -> None:
    assert not read(tmp_path, CODE, budget=ByteBudget(len(CODE))).unread
    assert read(tmp_path, CODE, budget=ByteBudget(len(CODE) - 1)).unread


BASE: Files = {"a.py": "def f():\n    old(1)\n    return 2\n", "b.py": "x = 1\n"}
REDUCTIVE = [rule("old", "old(...)"), rule("x", "x = 1")]


def test_matches_that_may_be_in_an_unread_part_are_not_cleaned(
    tmp_path: Path, scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hidden_matches, "MAX_BYTES", 10_000)
    base = write_tree(tmp_path / "R", BASE)
    after: Files = {"a.py": "y = 1\n", "b.py": "x = 1\n", "data.txt": "line\n" * 2000}
    read_in_full = score(
        scanner, base, git_diff(tmp_path, BASE, {**after, "data.txt": "l\n"}), None, REDUCTIVE
    )
    assert (read_in_full.unmet_reductive, read_in_full.unread) == (("x",), ())
    evaluation = score(scanner, base, git_diff(tmp_path, BASE, after), None, REDUCTIVE)
    assert (evaluation.unmet_reductive, evaluation.unread) == (("old", "x"), ("data.txt",))
    assert evaluation.hidden_in == ()
    assert scores_to_json(evaluation)["unread"] == ["data.txt"]
    assert "count as unmet because of it: 1" in evaluation.notes[-1]


class CountingScanner:
    def __init__(self, scanner: Scanner) -> None:
        self.scanner, self.scans = scanner, 0

    async def scan(self, rules: Sequence[Rule], tree: Path | OverlayTree) -> ScanResult:
        self.scans += 1
        return await self.scanner.scan(rules, tree)


def test_all_uncertain_places_are_scanned_at_once(tmp_path: Path, scanner: Scanner) -> None:
    before: Files = {"a.py": CODE, "b.js": "z()\n"}
    base = write_tree(tmp_path / "R", before)
    copies = {f"copies/{at}.{ending}": CODE for at in range(25) for ending in ("js", "pyi")}
    patch = git_diff(tmp_path, before, {"b.js": "z()\n", **copies}, "--no-renames")
    counting = CountingScanner(scanner)
    evaluation = score(
        counting, base, patch, None, [rule("old", "old(...)"), rule("z", "z()", languages=["js"])]
    )
    assert evaluation.unmet_reductive == ("old", "z")
    assert evaluation.hidden_in == ("copies/0.js",)
    assert counting.scans == 3
