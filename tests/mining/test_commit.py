"""A record of the relation survives a file of JSON lines, whatever its texts are."""

from __future__ import annotations

import json
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from codetaste.mining.commit import CommitRecord, PullRequest, record_from_json

COUNTS = st.none() | st.integers(0, 10**9)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
RECORDS = st.builds(
    CommitRecord,
    repository=st.just("acme/anvil"),
    golden=st.just("a" * 40),
    base=st.none() | st.just("b" * 40),
    message=TEXTS,
    pull_request=st.none() | st.builds(PullRequest, st.integers(1, 9), TEXTS, TEXTS),
    stars=COUNTS,
    files=COUNTS,
    additions=COUNTS,
    deletions=COUNTS,
    date=st.none() | st.datetimes(timezones=st.just(UTC)),
    licence=st.none() | st.just("MIT"),
    source=TEXTS,
)


@given(RECORDS)
def test_record_survives_json(record: CommitRecord) -> None:
    assert record_from_json(json.loads(json.dumps(record.to_json()))) == record


def test_text_of_a_pull_request_is_its_title_and_body() -> None:
    record = CommitRecord(
        "acme/anvil", "a" * 40, message="Merge", pull_request=PullRequest(1, "Title", "Body")
    )
    assert record.text == "Title\n\nBody"
    assert CommitRecord("acme/anvil", "a" * 40, message="Split it").text == "Split it"


@pytest.mark.parametrize(
    "data",
    [{}, [], {"repository": "a/b", "golden": 3}, {"repository": "a/b", "golden": "c", "files": "many"}],
)
def test_other_json_is_refused(data: object) -> None:
    with pytest.raises(ValidationError):
        record_from_json(data)
