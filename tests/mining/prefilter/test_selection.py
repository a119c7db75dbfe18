from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.mining.commit import CommitRecord
from codetaste.mining.prefilter.selection import Split, check_later, split_of

CUT_OFF = datetime(2025, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("date", "passed"),
    [
        (CUT_OFF, False),
        (CUT_OFF + timedelta(seconds=1), True),
        (datetime(2025, 3, 1, 0, 30, tzinfo=timezone(timedelta(hours=1))), False),
        (None, False),
    ],
)
def test_only_commits_later_than_a_date_pass(date: datetime | None, passed: bool) -> None:
    result = check_later(CommitRecord("a/b", "a" * 40, date=date), CUT_OFF)
    assert result.passed is passed
    assert bool(result.reason) is not passed


@given(st.text(max_size=30), st.floats(0, 1), st.text(max_size=5))
def test_a_split_depends_on_the_repository_alone(repository: str, share: float, salt: str) -> None:
    split = split_of(repository, share, salt)
    assert split is split_of(repository, share, salt)
    assert split_of(repository, 0, salt) is Split.TRAIN
    assert split_of(repository, 1, salt) is Split.TEST
    if split is Split.TEST:
        assert split_of(repository, min(1, share + 0.1), salt) is Split.TEST


def test_a_split_is_the_same_in_every_process_and_has_about_its_share() -> None:
    names = [f"owner{n}/repo" for n in range(2000)]
    tests = [name for name in names if split_of(name, 0.2) is Split.TEST]
    assert 340 < len(tests) < 460
    assert tests[:3] == ["owner7/repo", "owner9/repo", "owner18/repo"]
    assert {name for name in names if split_of(name, 0.2, "other") is Split.TEST} != set(tests)
    assert split_of("Owner1/REPO", 0.2) is split_of("owner1/repo", 0.2)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_beyond_one_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="is not from 0 to 1"):
        split_of("a/b", share)
