import os
import shutil
import subprocess
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.mining.clones.clone import Clone, open_clone
from codetaste.mining.clones.commits import read_commits
from codetaste.mining.clones.problem import CommitProblem, CommitProblemKind
from codetaste.mining.commit import CommitRecord
from support.mining.clones import MadeClone, MadeCommit, make_clone
from support.source.repositories import ENVIRONMENT

ROOT = MadeCommit({b"a.py": b"1\n2\n3\n", b"b.py": b"x\n" * 20})
LINK = "1" * 40


def records_of(
    path: Path, *, commits: tuple[str, ...] = (), silence_s: float = 60.0, lines: bool = True
) -> tuple[dict[str, CommitRecord], list[CommitProblem]]:
    clone: Clone = anyio.run(open_clone, path, "acme/shop")
    problems: list[CommitProblem] = []
    found = read_commits(clone, problems.append, commits=commits, silence_s=silence_s, lines=lines)
    records = {record.golden: record for record in found}
    return records, problems


def assert_counts(made: MadeClone, record: CommitRecord) -> None:
    base = made.first_parent(record.golden)
    expected = made.numstat(base, record.golden)
    assert record.base == base
    assert record.files == len(expected)
    assert record.additions == sum(added for added, _ in expected.values())
    assert record.deletions == sum(removed for _, removed in expected.values())


def test_each_commit_is_a_record_with_what_git_says_of_it(tmp_path: Path) -> None:
    made = make_clone(
        tmp_path / "shop",
        [
            ROOT,
            MadeCommit(
                {b"a.py": b"1\n2\n4\n5\n"}, [0], b"Rework a\n\nin two\nlines\n", date=b"1700000000 -0730"
            ),
            MadeCommit(
                {b"b.py": None, b"c/b.py": b"x\n" * 20, b"LICENSE": b"SPDX-License-Identifier: MIT\n"}, [1]
            ),
            MadeCommit({b"pic": b"\0\1\2"}, [2]),
        ],
    )
    records, problems = records_of(made.path)
    assert set(records) == set(made.commits[1:])
    for record in records.values():
        assert_counts(made, record)
    second = records[made.commits[1]]
    assert second.message == "Rework a\n\nin two\nlines"
    assert second.date == datetime.fromtimestamp(1_700_000_000, UTC)
    assert str(second.date).endswith("-07:30")
    assert (second.repository, second.licence, second.source) == ("acme/shop", None, str(made.path))
    assert records[made.commits[3]].licence == "MIT"
    assert [(problem.kind, problem.commit, problem.skipped) for problem in problems] == [
        (CommitProblemKind.ROOT, made.commits[0], True)
    ]


def test_merges_are_compared_with_their_first_parent(tmp_path: Path) -> None:
    made = make_clone(
        tmp_path / "shop",
        [
            ROOT,
            MadeCommit({b"main.py": b"m\n"}, [0]),
            MadeCommit({b"one.py": b"1\n"}, [0]),
            MadeCommit({b"two.py": b"2\n2\n"}, [0]),
            MadeCommit({b"one.py": b"1\n", b"two.py": b"2\n2\n"}, [1, 2, 3], b"octopus"),
            MadeCommit({b"main.py": None}, [2, 1], b"other way"),
            MadeCommit({}, [4, 5], b"nothing new"),
        ],
    )
    records, _ = records_of(made.path)
    for record in records.values():
        assert_counts(made, record)
    octopus = records[made.commits[4]]
    assert (octopus.base, octopus.files, octopus.additions) == (made.commits[1], 2, 3)
    assert records[made.commits[6]].files == 0


def test_a_submodule_bump_is_one_file(tmp_path: Path) -> None:
    made = make_clone(tmp_path / "shop", [ROOT, MadeCommit({}, [0], b"bump", submodules={b"lib": LINK})])
    records, problems = records_of(made.path)
    assert records[made.commits[1]].files == 1
    assert_counts(made, records[made.commits[1]])
    assert len(problems) == 1


@pytest.mark.parametrize(
    ("message", "encoding", "expected", "decoded"),
    [
        ("Größe".encode("latin-1"), b"ISO-8859-1", "Größe", True),
        ("Привет".encode("koi8-r"), b"KOI8-R", "Привет", True),
        ("日本".encode("euc-jp"), b"EUC-JP", "日本", True),
        ("Größe".encode(), b"", "Größe", True),
        ("Größe".encode(), b"no-such-set", "Größe", True),
        (b"Gr\xf6\xdfe", b"", "Gr\ufffd\ufffde", False),
        (b"caf\xe9", b"hex", "caf\ufffd", False),
        (b"\\ud800 x", b"unicode_escape", "\\ud800 x", True),
    ],
)
def test_messages_have_any_encoding(
    tmp_path: Path, message: bytes, encoding: bytes, expected: str, decoded: bool
) -> None:
    made = make_clone(tmp_path / "shop", [ROOT, MadeCommit({b"a.py": b""}, [0], message, encoding)])
    records, problems = records_of(made.path)
    assert records[made.commits[1]].message == expected
    assert (CommitProblemKind.ENCODING in {problem.kind for problem in problems}) is not decoded


def test_the_encoding_that_git_was_configured_with_is_used(tmp_path: Path) -> None:
    made = make_clone(tmp_path / "shop", [ROOT])
    tree = made.repository.git("rev-parse", f"{made.commits[0]}^{{tree}}")
    commit = made.repository.git(
        *("-c", "i18n.commitEncoding=cp1251", "commit-tree", "-p", made.commits[0], tree),
        stdin="Рефакторинг".encode("cp1251"),
    )
    made.repository.git("update-ref", "refs/heads/next", commit)
    assert records_of(made.path)[0][commit].message == "Рефакторинг"


def test_dates_out_of_range_are_unknown(tmp_path: Path) -> None:
    made = make_clone(tmp_path / "shop", [ROOT])
    tree = made.repository.git("rev-parse", f"{made.commits[0]}^{{tree}}")
    for index, date in enumerate((b"99999999999999 +0000", b"soon", b"1 +9999")):
        raw = b"tree %s\nparent %s\nauthor A <a> %s\ncommitter A <a> %s\n\nx\n"
        content = raw % (tree.encode(), made.commits[0].encode(), date, date)
        commit = made.repository.git(
            "hash-object", "-w", "-t", "commit", "--literally", "--stdin", stdin=content
        )
        made.repository.git("update-ref", f"refs/heads/odd{index}", commit)
        assert records_of(made.path)[0][commit].date is None


def test_a_repository_may_have_long_hashes(tmp_path: Path) -> None:
    licence = b"SPDX-License-Identifier: MIT\n"
    history = [ROOT, MadeCommit({b"LICENSE": licence}, [0], b"licence"), MadeCommit({b"a.py": None}, [1])]
    made = make_clone(tmp_path / "shop", history, object_format="sha256")
    records, _ = records_of(made.path)
    assert {len(commit) for commit in records} == {64}
    assert {record.licence for record in records.values()} == {"MIT"}
    for record in records.values():
        assert_counts(made, record)


def test_refs_that_are_no_history_are_left_out(tmp_path: Path) -> None:
    made = make_clone(
        tmp_path / "shop",
        [ROOT, *(MadeCommit({b"a.py": b"%d\n" % n}, [0]) for n in range(6))],
        {
            "refs/heads/main": 1,
            "refs/tags/v1": 2,
            "refs/remotes/origin/topic": 3,
            "refs/pull/7/head": 4,
            "refs/notes/commits": 5,
            "refs/stash": 6,
        },
    )
    assert set(records_of(made.path)[0]) == set(made.commits[1:4])
    assert set(records_of(made.path, commits=(made.commits[4],))[0]) == {made.commits[4]}


def test_a_detached_head_is_history(tmp_path: Path) -> None:
    made = make_clone(tmp_path / "shop", [ROOT, MadeCommit({b"a.py": b"y\n"}, [0])], {"refs/heads/main": 0})
    made.repository.git("update-ref", "--no-deref", "HEAD", made.commits[1])
    assert set(records_of(made.path)[0]) == {made.commits[1]}


def test_an_empty_repository_has_no_records(tmp_path: Path) -> None:
    assert records_of(make_clone(tmp_path / "shop", []).path) == ({}, [])


def test_a_shallow_clone_ends_with_a_named_problem(tmp_path: Path) -> None:
    made = make_clone(tmp_path / "made", [ROOT, *(MadeCommit({b"a.py": b"%d\n" % n}, [n]) for n in range(4))])
    shallow = tmp_path / "shop"
    _git("clone", "--quiet", "--bare", "--depth=2", f"file://{made.path}", str(shallow))
    records, problems = records_of(shallow)
    assert set(records) == {made.commits[4]}
    assert [(problem.kind, problem.commit) for problem in problems] == [
        (CommitProblemKind.SHALLOW, made.commits[3])
    ]
    assert "fetch --unshallow" in str(problems[0])


def test_a_work_tree_of_a_shallow_clone_ends_as_the_clone_does(tmp_path: Path) -> None:
    made = make_clone(tmp_path / "made", [ROOT, *(MadeCommit({b"a.py": b"%d\n" % n}, [n]) for n in range(4))])
    shallow, linked = tmp_path / "shop", tmp_path / "linked"
    _git("clone", "--quiet", "--depth=2", f"file://{made.path}", str(shallow))
    _git("-C", str(shallow), "worktree", "add", "--quiet", "--detach", str(linked))
    _git("-C", str(linked), "commit", "--quiet", "--allow-empty", "--message=only here")
    records, problems = records_of(linked)
    assert [problem.kind for problem in problems] == [CommitProblemKind.SHALLOW]
    assert sorted(record.message for record in records.values()) == ["change", "only here"]


def test_attributes_and_grafts_do_not_change_what_is_counted(tmp_path: Path) -> None:
    made = make_clone(tmp_path / "shop", [ROOT, *(MadeCommit({b"a.py": b"%d\n" % n}, [n]) for n in range(3))])
    (made.path / "info").mkdir(exist_ok=True)
    (made.path / "info" / "attributes").write_text("* binary\n")
    (made.path / "info" / "grafts").write_text(f"{made.commits[3]} {made.commits[0]}\n")
    records, _ = records_of(made.path)
    assert list(records) == [*made.commits[:0:-1]]
    for record in records.values():
        assert (record.additions, record.deletions) != (0, 0)


@pytest.mark.parametrize("contents", ["blob:none", "tree:0"])
def test_a_partial_clone_has_records_without_numbers(tmp_path: Path, contents: str) -> None:
    made = make_clone(
        tmp_path / "made",
        [ROOT, *(MadeCommit({b"a.py": b"%d\n" % n, b"n": b"%d" % n}, [n]) for n in range(4))],
    )
    made.repository.git("config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "shop"
    _git("clone", "--quiet", "--bare", f"--filter={contents}", f"file://{made.path}", str(partial))
    records, problems = records_of(partial)
    assert set(records) == set(made.commits[1:])
    files = 2 if contents == "blob:none" else None
    assert {(record.files, record.additions) for record in records.values()} == {(files, None)}
    assert CommitProblemKind.MISSING_OBJECTS in {problem.kind for problem in problems}
    assert "fetch --refetch --no-filter" in str(problems[-1])


def test_a_commit_whose_contents_are_missing_does_not_end_the_run(tmp_path: Path) -> None:
    commits = [ROOT, *(MadeCommit({b"a.py": b"%d\n" % n, b"b.py": b"%d\n" % n}, [n]) for n in range(9))]
    made = make_clone(tmp_path / "shop", commits)
    lost = made.repository.git("rev-parse", f"{made.commits[4]}:a.py")
    made.lose(lost)
    records, problems = records_of(made.path)
    assert set(records) == set(made.commits[1:])
    unknown = {commit for commit, record in records.items() if record.additions is None}
    assert unknown == {made.commits[4], made.commits[5]}
    assert {record.files for record in records.values()} == {2}
    assert {problem.commit for problem in problems if not problem.skipped} == unknown
    for commit in set(records) - unknown:
        assert_counts(made, records[commit])


@pytest.mark.parametrize("lines", [True, False])
def test_a_missing_folder_concerns_no_other_commits(tmp_path: Path, lines: bool) -> None:
    history = [ROOT, *(MadeCommit({b"a.py": b"%d\n" % n} if n % 3 else {}, [n]) for n in range(9))]
    made = make_clone(tmp_path / "shop", history)
    made.lose(made.repository.git("rev-parse", f"{made.commits[5]}^{{tree}}"))
    records, problems = records_of(made.path, lines=lines)
    unknown = {commit for commit, record in records.items() if record.files is None}
    assert unknown == {made.commits[5], made.commits[6]}
    assert {problem.commit for problem in problems if not problem.skipped} == unknown


def test_without_lines_files_are_counted_in_the_same_way(tmp_path: Path) -> None:
    text = b"".join(b"%d\n" % n for n in range(40))
    moved = MadeCommit({b"a.py": None, b"b/a.py": text + b"more\n", b"c.py": b"c\n"}, [0])
    made = make_clone(tmp_path / "shop", [MadeCommit({b"a.py": text}), moved])
    records, _ = records_of(made.path, lines=False)
    record = records[made.commits[1]]
    assert (record.files, record.additions, record.deletions) == (2, None, None)


def test_a_broken_history_ends_with_a_named_problem(tmp_path: Path) -> None:
    made = make_clone(tmp_path / "shop", [ROOT, *(MadeCommit({b"a.py": b"%d\n" % n}, [n]) for n in range(5))])
    made.lose(made.commits[2])
    records, problems = records_of(made.path)
    assert set(records) <= set(made.commits[3:])
    assert CommitProblemKind.NO_HISTORY in {problem.kind for problem in problems}


def test_a_comparison_that_takes_too_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_clone(tmp_path / "shop", [ROOT, MadeCommit({b"a.py": b"x\n"}, [0])])
    slow = tmp_path / "slow" / "git"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\ncase "$*" in *numstat*) sleep 60;; esac\nexec {shutil.which("git")} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(slow.parent), prepend=os.pathsep)
    records, problems = records_of(made.path, silence_s=0.1)
    record = records[made.commits[1]]
    assert (record.files, record.additions) == (1, None)
    assert [problem.kind for problem in problems] == [CommitProblemKind.ROOT, CommitProblemKind.TIMEOUT]


_PATHS = st.sampled_from(
    [b"a.py", b"b.py", b"dir/c.py", b"\xff.py", b"tab\there", b'quo"te', b"nl\nx", "é".encode()]
)
_CONTENTS = st.one_of(
    st.none(),
    st.lists(st.sampled_from([b"a", b"b", b"", b" c"]), max_size=12).map(b"\n".join),
    st.just(b"\0\1"),
)


@st.composite
def _histories(draw: st.DrawFn) -> list[MadeCommit]:
    commits: list[MadeCommit] = []
    present: list[set[bytes]] = []
    for index in range(draw(st.integers(1, 8))):
        earlier = st.sampled_from(range(index)) if index else st.nothing()
        parents = draw(st.lists(earlier, min_size=min(index, 1), max_size=3, unique=True)) if index else []
        there = set(present[parents[0]]) if parents else set()
        files = {
            path: content
            for path, content in draw(st.dictionaries(_PATHS, _CONTENTS, max_size=5)).items()
            if content is not None or path in there
        }
        for path, content in files.items():
            (there.discard if content is None else there.add)(path)
        present.append(there)
        commits.append(MadeCommit(files, parents, draw(st.text(max_size=9)).replace("\0", "").encode()))
    return commits


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_histories())
def test_records_of_any_history_agree_with_git(
    tmp_path_factory: pytest.TempPathFactory, history: list[MadeCommit]
) -> None:
    made = make_clone(tmp_path_factory.mktemp("history") / "shop", history)
    records, problems = records_of(made.path)
    with_parent = {commit for commit, each in zip(made.commits, history, strict=True) if each.parents}
    assert set(records) == with_parent
    assert Counter(problem.kind for problem in problems) == {
        CommitProblemKind.ROOT: len(set(made.commits) - with_parent)
    }
    for record in records.values():
        assert_counts(made, record)


def _git(*args: str) -> None:
    subprocess.run(["git", *args], check=True, env=ENVIRONMENT, capture_output=True)
