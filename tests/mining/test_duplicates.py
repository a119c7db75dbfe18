import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.mining.clones.commit_diff import DiffReader
from codetaste.mining.commit import CommitRecord, PullRequest
from codetaste.mining.duplicates import change_id, find_duplicates
from codetaste.mining.prefilter.diff import CommitDiff, make_commit_diff
from support.mining.clones import MadeClone, MadeCommit, make_clone

START = datetime(2024, 1, 1, tzinfo=UTC)
OLD, NEW = b"a\nb\nc\nd\ne\n", b"a\nB\nc\nd\ne\nf\n"


def diff_of(made: MadeClone, commit: str, base: str | None = None, **record: object) -> CommitDiff:
    fields = {"repository": "acme/shop", "golden": commit} | record
    base = base or made.first_parent(commit)
    return DiffReader(made.path).read(CommitRecord(**fields), base, commit)  # type: ignore[arg-type]


def made_diff(text: bytes, golden: str, days: int = 0, message: str = "", **record: object) -> CommitDiff:
    fields = {"repository": "acme/shop", "golden": golden, "message": message} | record
    fields.setdefault("date", START + timedelta(days=days))
    return make_commit_diff(CommitRecord(**fields), "0" * 40, golden, (), text)  # type: ignore[arg-type]


def hunk(*lines: str, path: str = "a.py") -> bytes:
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n"
    return (head + "".join(line + "\n" for line in lines)).encode()


def test_a_first_line_of_any_length_is_compared_by_its_beginning() -> None:
    lines = ("Revert " + '"' * 200_000 + "x", "a" + " " * 200_000 + "x", "Rework " + "y" * 200_000)
    diffs = [made_diff(hunk(f"+{n}"), f"{n}" * 40, n, line) for n, line in enumerate(lines)]
    assert find_duplicates(diffs).unique == tuple(diffs)


def test_a_cherry_pick_elsewhere_in_a_file_is_the_same_change(tmp_path: Path) -> None:
    made = make_clone(
        tmp_path / "shop",
        [
            MadeCommit({b"a.py": OLD}),
            MadeCommit({b"a.py": NEW}, [0], b"Rework"),
            MadeCommit({b"a.py": b"1\n2\n3\n4\n5\n" + OLD}, [0]),
            MadeCommit({b"a.py": b"1\n2\n3\n4\n5\n" + NEW}, [2], b"Rework"),
            MadeCommit({b"a.py": OLD}, [1], b"No"),
        ],
    )
    original, _, picked, reverted = (diff_of(made, commit) for commit in made.commits[1:])
    assert change_id(original.context_free_diff) == change_id(picked.context_free_diff)
    identity = change_id(reverted.context_free_diff)
    assert (identity.backward, identity.forward) == change_id(original.context_free_diff)
    found = find_duplicates([reverted, picked, original])
    assert len(found.unique) == 1
    assert {each.reason for each in found.duplicates} == {
        "the same lines are changed",
        "it reverts the same lines",
    }


def test_a_moved_file_is_a_change_and_has_a_reversal(tmp_path: Path) -> None:
    made = make_clone(
        tmp_path / "shop",
        [
            MadeCommit({b"a.py": OLD}),
            MadeCommit({b"a.py": None, b"b.py": OLD}, [0]),
            MadeCommit({b"b.py": None, b"a.py": OLD}, [1]),
            MadeCommit({b"a.py": None, b"c.py": OLD}, [2]),
        ],
    )
    there, back, elsewhere = (change_id(diff_of(made, each).context_free_diff) for each in made.commits[1:])
    assert (there.forward, there.backward) == (back.backward, back.forward)
    assert len({there.forward, back.forward, elsewhere.forward}) == 3


def test_changes_without_lines_have_no_identity() -> None:
    binary = b"diff --git a/p b/p\nBinary files a/p and b/p differ\n"
    assert change_id(b"") == change_id(binary) == ("", "")
    assert len(find_duplicates([made_diff(b"", "a" * 40), made_diff(binary, "b" * 40)]).unique) == 2


def test_forks_leave_the_repository_with_most_stars() -> None:
    text = hunk("-a", "+b")
    forks = [
        made_diff(text, "a" * 40, repository="fork/shop", stars=3),
        made_diff(text, "a" * 40, repository="acme/shop", stars=900),
    ]
    found = find_duplicates(forks)
    assert [each.record.repository for each in found.unique] == ["acme/shop"]
    (duplicate,) = found.duplicates
    assert duplicate.reason == "the same commit in a fork"
    assert duplicate.original.repository == "acme/shop"
    assert (duplicate.result.passed, duplicate.result.value) == (False, "acme/shop@aaaaaaaaaa")


SAYS = "its message says that it "
NAMES = 'its message names "Move shops to one street"'
ORIGINAL = made_diff(hunk("-a", "+b"), "abcdef0123" + "0" * 30, 0, "Move shops to one street (#12)\n\nwhy")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            "x\n\n(cherry picked from commit abcdef0123)",
            SAYS + "was cherry-picked from abcdef0123",
        ),
        (f"x\n\nThis reverts commit {ORIGINAL.golden}.", SAYS + "reverts abcdef0123"),
        ("x\n\nThis relands commit abcdef01230.", SAYS + "makes again abcdef0123"),
        (
            'Revert "Move shops to one street (#12)" (#13)',
            NAMES,
        ),
        ('Reland "Move shops to one street"', NAMES),
        ('Reapply "Move shops to one street"', NAMES),
        (
            'Revert "Revert "Move shops to one street""',
            NAMES,
        ),
    ],
)
def test_messages_say_what_is_reverted_or_made_again(message: str, reason: str) -> None:
    later = made_diff(hunk("-x", "+y"), "e" * 40, 1, message)
    found = find_duplicates([later, ORIGINAL])
    assert [each.golden for each in found.unique] == [ORIGINAL.golden]
    assert [each.reason for each in found.duplicates] == [reason]


@pytest.mark.parametrize(
    "message",
    [
        "Move shops to one street",
        'Revert "Move"',
        "This reverts commit 1234567.",
        'Revert "Move shops to two streets"',
        "",
    ],
)
def test_other_messages_are_no_duplicates(message: str) -> None:
    later = made_diff(hunk("-x", "+y"), "e" * 40, 1, message)
    assert len(find_duplicates([later, ORIGINAL]).unique) == 2


def test_the_same_subject_in_another_repository_is_no_duplicate() -> None:
    other = made_diff(
        hunk("-x", "+y"), "e" * 40, 1, f'Revert "{ORIGINAL.record.message}"', repository="zoo/app"
    )
    assert len(find_duplicates([other, ORIGINAL]).unique) == 2


def test_titles_of_pull_requests_are_read_too() -> None:
    title = PullRequest(13, 'Revert "Move shops to one street"', "")
    later = made_diff(hunk("-x", "+y"), "e" * 40, 1, "Merge pull request #13", pull_request=title)
    assert len(find_duplicates([ORIGINAL, later]).unique) == 1


_LINES = st.lists(st.sampled_from(["-a", "-b", "+a", "+b", "+ a"]), min_size=1, max_size=2).map(sorted)


@given(st.lists(st.tuples(_LINES, st.none() | st.integers(0, 3)), max_size=9), st.randoms())
def test_one_of_each_group_stays_in_any_order(
    items: list[tuple[list[str], int | None]], order: random.Random
) -> None:
    diffs = [
        made_diff(hunk(*lines), f"{index:040x}", date=None if days is None else START + timedelta(days=days))
        for index, (lines, days) in enumerate(items)
    ]
    found = find_duplicates(diffs)
    expected, groups = [], []
    for index in sorted(range(len(items)), key=lambda at: (items[at][1] is None, items[at][1], at)):
        old, new = (Counter(line[1:].strip() for line in items[index][0] if line[0] == sign) for sign in "-+")
        change = (old - new, new - old)
        if change not in groups or old == new:
            groups += [change, change[::-1]]
            expected.append(f"{index:040x}")
    assert {each.golden for each in found.unique} == set(expected)
    assert {each.original.golden for each in found.duplicates} <= set(expected)
    assert len(found.unique) + len(found.duplicates) == len(items)
    order.shuffle(diffs)
    assert {each.golden for each in find_duplicates(diffs).unique} == set(expected)


_CONTENTS = st.lists(st.sampled_from([b"a", b"b", b"c d", b"cd", b"", b"-- x", b"++ y"]), max_size=8).map(
    lambda lines: b"".join(line + b"\n" for line in lines)
)
_TREES = st.fixed_dictionaries({b"a.py": _CONTENTS, b"b.py": _CONTENTS, b"c": _CONTENTS})


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.tuples(_TREES, _TREES, _TREES))
def test_identities_of_changes_agree_with_brute_force(
    tmp_path_factory: pytest.TempPathFactory, trees: tuple[dict[bytes, bytes], ...]
) -> None:
    history = [MadeCommit(tree, [index - 1] if index else []) for index, tree in enumerate(trees)]
    made = make_clone(tmp_path_factory.mktemp("change") / "shop", history)
    pairs = [(0, 1), (1, 0), (1, 2), (2, 0)]
    diffs = [diff_of(made, made.commits[new], made.commits[old]) for old, new in pairs]
    found = [change_id(diff.context_free_diff) for diff in diffs]
    expected = [_net_lines(trees[old], trees[new]) for old, new in pairs]
    for one, one_lines in zip(found, expected, strict=True):
        assert bool(one.forward) is bool(one_lines)
        reversal = {path: (added, removed) for path, (removed, added) in one_lines.items()}
        for other, other_lines in zip(found, expected, strict=True):
            assert (one.forward == other.forward) is (one_lines == other_lines)
            assert (one.backward == other.forward) is (reversal == other_lines)


def _net_lines(
    before: dict[bytes, bytes], after: dict[bytes, bytes]
) -> dict[bytes, tuple[Counter[bytes], Counter[bytes]]]:
    """Return, of each file, the lines that it has no longer and those that are new; blank ones left out."""
    found = {}
    for path in before:
        old, new = (
            Counter(bare for line in tree[path].splitlines() if (bare := b"".join(line.split())))
            for tree in (before, after)
        )
        if old != new:
            found[path] = (old - new, new - old)
    return found
