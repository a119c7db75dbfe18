"""The last decision about a text holds; decisions about other texts do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.benchmark.instance import Instance
from codetaste.benchmark.layout import Track
from codetaste.errors import JournalError
from codetaste.flows.describe.reviews import (
    Reviews,
    Verdict,
    new_review,
    read_reviews,
    reviews_path,
    write_review,
)

ONE, TWO = Instance("a", "b", "1" * 40, "2" * 40), Instance("a", "c", "3" * 40, "4" * 40)
DECISION = st.tuples(
    st.sampled_from([ONE, TWO]),
    st.sampled_from(Track),
    st.sampled_from(Verdict),
    st.sampled_from(["first", "second", " first\n"]),
)


@given(st.lists(DECISION, max_size=12))
def test_decisions_agree_with_a_list_that_is_searched(
    decisions: list[tuple[Instance, Track, Verdict, str]],
) -> None:
    reviews = Reviews(new_review(*each, by="ann") for each in decisions)
    for instance in (ONE, TWO):
        for track in Track:
            mine = [each for each in decisions if each[:2] == (instance, track)]
            for text in ("first", "second"):
                found = reviews.of(instance, track, text)
                holds = bool(mine) and mine[-1][3].strip() == text
                assert (found is not None) == holds
                assert found is None or found.verdict is mine[-1][2]
                about = [each for each in mine if each[3].strip() == text]
                rejected = bool(about) and about[-1][2] is Verdict.REJECTED
                digest = new_review(instance, track, Verdict.ACCEPTED, text, "ann").digest
                assert (digest in {each.digest for each in reviews.rejections(instance, track)}) == rejected


@pytest.mark.anyio
async def test_decisions_of_two_folders_are_read_in_their_order_and_a_torn_line_is_skipped(
    tmp_path: Path,
) -> None:
    early = replace(
        new_review(ONE, Track.OPEN, Verdict.REJECTED, "x", "ann"), at="2026-01-01T00:00:00.000+00:00"
    )
    late = replace(early, verdict=Verdict.ACCEPTED, at="2026-01-02T00:00:00.000+00:00", comment="ü")
    first, second = tmp_path / "a", tmp_path / "b"
    await write_review(first, late)
    await write_review(second, early)
    with reviews_path(first).open("a") as file:
        file.write('{"instance": "a__b')
    reviews = await anyio.to_thread.run_sync(read_reviews, first, second)
    assert reviews.of(ONE, Track.OPEN, "x") == late
    assert reviews.last_verdict(ONE, Track.OPEN) is Verdict.ACCEPTED
    await write_review(first, early)
    assert len(reviews_path(first).read_text().splitlines()) == 3
    reviews_path(second).write_text('{"instance": "i", "track": "closed"}\n')
    with pytest.raises(JournalError, match=r"b/reviews\.jsonl, line 1"):
        await anyio.to_thread.run_sync(read_reviews, second)
