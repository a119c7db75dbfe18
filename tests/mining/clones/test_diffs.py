import shutil
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.mining.clones.commit_diff import DiffReader, DiffTooLarge
from codetaste.mining.clones.diffs import find_diff, find_diffs
from codetaste.mining.clones.explain import Population, explain_commit
from codetaste.mining.clones.resolve import CommitPlaces
from codetaste.mining.commit import CommitRecord
from codetaste.mining.filter_result import FilterResult, Stage
from codetaste.mining.prefilter.diff import ChangeStatus, CommitDiff, FileChange
from codetaste.mining.prefilter.outliers import outlier_bounds
from codetaste.mining.prefilter.unreachable import Unreachable, UnreachableReason
from support.mining.clones import MadeClone, MadeCommit, make_clone

T = TypeVar("T")
CODE = b"".join(b"line %d\n" % n for n in range(30))
HISTORY = [
    MadeCommit({b"a.py": b"1\n2\n3\n", b"b.py": CODE, b"c.txt": b"x\n"}),
    MadeCommit(
        {
            b"a.py": b"1\n4\n3\n",
            b"b.py": None,
            b"d/b.py": CODE + b"end\n",
            b"c.txt": None,
            b"p": b"\0",
            b"n\xff.go": b"n\n",
        },
        [0],
        b"Rework all\n",
        submodules={b"lib.js": "1" * 40},
    ),
    MadeCommit({b"a.py": b"5\n"}, [1]),
]


@pytest.fixture
def made(tmp_path: Path) -> MadeClone:
    return make_clone(tmp_path / "clones" / "acme" / "shop", HISTORY)


def places(made: MadeClone, cache: Path | None = None, forge: str = "file:///nowhere") -> CommitPlaces:
    return CommitPlaces(made.path.parent.parent, cache, forge)


def run(function: Callable[..., Awaitable[T]], *args: object) -> T:
    return anyio.run(partial(function, *args))


def test_a_diff_has_each_file_and_its_text_without_context(made: MadeClone) -> None:
    first, second, _ = made.commits
    diff = run(find_diff, CommitRecord("acme/shop", second), places(made))
    assert isinstance(diff, CommitDiff)
    assert (diff.base, diff.golden) == (first, second)
    assert sorted(diff.files, key=lambda file: file.path) == [
        FileChange("a.py", None, ChangeStatus.MODIFIED, 1, 1),
        FileChange("c.txt", None, ChangeStatus.DELETED, 0, 1),
        FileChange("d/b.py", "b.py", ChangeStatus.RENAMED, 1, 0),
        FileChange("lib.js", None, ChangeStatus.ADDED, 1, 0, submodule=True),
        FileChange("n\udcff.go", None, ChangeStatus.ADDED, 1, 0),
        FileChange("p", None, ChangeStatus.ADDED, 0, 0, binary=True),
    ]
    assert (diff.changed_files, diff.changed_lines) == (6, 6)
    text = diff.context_free_diff
    assert b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n-2\n+4\ndiff" in text
    assert b"rename from b.py\nrename to d/b.py\n" in text
    assert b"\nindex " not in text
    assert b"\n line" not in text


def test_a_record_is_completed_from_its_repository(made: MadeClone) -> None:
    diff = run(find_diff, CommitRecord("acme/shop", made.commits[1], stars=5, files=99), places(made))
    assert isinstance(diff, CommitDiff)
    record = diff.record
    assert (record.message, record.base, record.stars) == ("Rework all", made.commits[0], 5)
    assert (record.files, record.additions, record.deletions) == (99, 4, 2)
    assert record.date is not None


def test_a_base_that_is_no_parent_is_taken_as_it_is(made: MadeClone) -> None:
    diff = run(find_diff, CommitRecord("acme/shop", made.commits[2], made.commits[0]), places(made))
    assert isinstance(diff, CommitDiff)
    assert diff.base == made.commits[0]
    assert diff.changed_files == 6


@pytest.mark.parametrize("cached", [False, True])
def test_why_a_commit_cannot_be_had_is_named(made: MadeClone, tmp_path: Path, cached: bool) -> None:
    first, second, _ = made.commits
    where = places(made, tmp_path / "cache" if cached else None, f"file://{tmp_path}/none")
    records = [
        CommitRecord("acme/shop", second),
        CommitRecord("acme/shop", "e" * 40),
        CommitRecord("acme/shop", second, "e" * 40),
        CommitRecord("acme/gone", second),
        CommitRecord("acme/shop", first),
        CommitRecord("acme/shop", "--output=x"),
    ]
    found = run(find_diffs, records, where)
    reasons = [diff.reason if isinstance(diff, Unreachable) else None for diff in found]
    gone = UnreachableReason.NO_REPOSITORY
    lost = gone if cached else UnreachableReason.NO_COMMIT
    no_clone = gone if cached else UnreachableReason.NO_CLONE
    assert reasons == [None, lost, lost, no_clone, UnreachableReason.NO_PARENT, UnreachableReason.NO_COMMIT]
    assert all("\n" not in diff.detail for diff in found if isinstance(diff, Unreachable))


def test_a_commit_that_no_clone_has_is_fetched_without_its_history(made: MadeClone, tmp_path: Path) -> None:
    forge = tmp_path / "forge" / "acme"
    forge.mkdir(parents=True)
    shutil.move(made.path, forge / "shop")
    moved = MadeClone(forge / "shop", made.commits)
    moved.repository.git("config", "uploadpack.allowAnySHA1InWant", "true")
    where = CommitPlaces(tmp_path / "clones", tmp_path / "cache", f"file://{tmp_path}/forge")
    for base in (None, made.commits[0]):
        diff = run(find_diff, CommitRecord("acme/shop", made.commits[1], base), where)
        assert isinstance(diff, CommitDiff)
        assert (diff.base, diff.changed_files) == (made.commits[0], 6)
    gone = run(find_diff, CommitRecord("acme/shop", "e" * 40), where)
    assert isinstance(gone, Unreachable)
    assert gone.reason is UnreachableReason.NO_COMMIT


def test_a_commit_that_no_ref_reaches_any_more_is_found(made: MadeClone) -> None:
    made.repository.git("update-ref", "refs/heads/b2", made.commits[0])
    diff = run(find_diff, CommitRecord("acme/shop", made.commits[2]), places(made))
    assert isinstance(diff, CommitDiff)
    assert diff.base == made.commits[1]


def test_a_server_that_does_not_answer_is_no_deleted_repository(tmp_path: Path) -> None:
    where = CommitPlaces(None, tmp_path / "cache", "http://127.0.0.1:1")
    found = run(find_diff, CommitRecord("acme/shop", "e" * 40), where)
    assert isinstance(found, Unreachable)
    assert found.reason is UnreachableReason.NO_ANSWER
    assert found.reason.temporary


def test_contents_that_a_clone_lacks_count_as_binary(made: MadeClone) -> None:
    _, second, third = made.commits
    made.lose(made.repository.git("rev-parse", f"{third}:a.py"))
    diff = run(find_diff, CommitRecord("acme/shop", third), places(made))
    assert isinstance(diff, CommitDiff)
    assert diff.files == (FileChange("a.py", None, ChangeStatus.MODIFIED, 0, 0, binary=True),)
    made.lose(made.repository.git("rev-parse", f"{second}^{{tree}}"))
    found = run(find_diff, CommitRecord("acme/shop", third), places(made))
    assert isinstance(found, Unreachable)
    assert found.reason is UnreachableReason.MISSING_OBJECTS


def test_a_diff_beyond_the_limit_is_given_up(made: MadeClone) -> None:
    reader = DiffReader(made.path, max_bytes=10)
    with pytest.raises(DiffTooLarge, match="a diff of more than 10 bytes"):
        reader.read(CommitRecord("acme/shop", made.commits[1]), made.commits[0], made.commits[1])


def test_configuration_of_a_clone_changes_nothing(made: MadeClone) -> None:
    record = CommitRecord("acme/shop", made.commits[1])
    before = run(find_diff, record, places(made))
    for setting in ("diff.noprefix", "diff.mnemonicPrefix", "diff.suppressBlankEmpty", "color.ui"):
        made.repository.git("config", setting, "true")
    for name, value in (("diff.context", "9"), ("diff.renames", "false"), ("diff.algorithm", "patience")):
        made.repository.git("config", name, value)
    made.repository.git("config", "core.abbrev", "12")
    assert run(find_diff, record, places(made)) == before


def test_attributes_and_grafts_of_a_clone_change_nothing(made: MadeClone) -> None:
    first, second, third = made.commits
    record = CommitRecord("acme/shop", third)
    before = run(find_diff, record, places(made))
    blob = made.repository.blob(b"*.py binary\n")
    made.repository.git("update-index", "--add", "--cacheinfo", f"100644,{blob},.gitattributes")
    (made.path / "info").mkdir(exist_ok=True)
    (made.path / "info" / "attributes").write_text("*.py -diff\n")
    (made.path / "info" / "grafts").write_text(f"{third} {first}\n")
    assert run(find_diff, record, places(made)) == before
    assert isinstance(before, CommitDiff)
    assert (before.base, before.changed_lines) == (second, 4)


def test_explain_shows_every_number_of_one_commit(made: MadeClone) -> None:
    def stage_1(record: CommitRecord) -> list[FilterResult]:
        shown = f"{record.files}: {record.message}"
        return [FilterResult(Stage.KEYWORDS, "files", passed=False, value=shown, bound="45", reason="few")]

    record = CommitRecord("acme/shop", made.commits[1])
    diff = run(find_diff, record, places(made))
    assert isinstance(diff, CommitDiff)
    population = Population(outlier_bounds([diff]), 2.0)
    results = run(explain_commit, record, places(made), stage_1, None, population)
    assert [(result.filter, result.passed, result.value) for result in results] == [
        ("files", False, "6: Rework all"),
        ("reachable", True, "yes"),
        ("code_edits", False, "4"),
        ("changed_lines", True, "6"),
        ("changed_files", True, "6"),
        ("gzip_ratio", False, f"{diff.compression_ratio:.4f}"),
    ]
    assert len(run(explain_commit, record, places(made), stage_1)) == 3
    gone = run(explain_commit, CommitRecord("acme/shop", "e" * 40), places(made), stage_1)
    assert [result.passed for result in gone] == [False, False]


_CONTENT = st.lists(st.sampled_from([b"a", b"b", b"", b"-- x", b"index 1", b"@@ -1 +1 @@ x"]), max_size=9)
_TREE = st.dictionaries(
    st.sampled_from([b"a", b"b b", b"c\td", b"e\nf"]), _CONTENT.map(b"\n".join), max_size=4
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_TREE, _TREE)
def test_diffs_of_any_trees_agree_with_git(
    tmp_path_factory: pytest.TempPathFactory, before: dict[bytes, bytes], after: dict[bytes, bytes]
) -> None:
    gone = {path: None for path in before if path not in after}
    made = make_clone(
        tmp_path_factory.mktemp("diff") / "acme" / "shop",
        [MadeCommit(before), MadeCommit({**after, **gone}, [0])],
    )
    first, second = made.commits
    diff = DiffReader(made.path).read(CommitRecord("acme/shop", second), first, second)
    counted = {file.path.encode(): (file.additions, file.deletions) for file in diff.files}
    assert counted == made.numstat(first, second)
    lines = made.repository.git("diff", "-M50%", first, second).splitlines()
    text = diff.context_free_diff.decode().splitlines()
    assert [line for line in lines if line.startswith(("+", "-"))] == [
        line for line in text if line.startswith(("+", "-"))
    ]
