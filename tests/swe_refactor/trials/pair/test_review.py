"""Reviews in plain replies: JSON, prose, and anything else that a model writes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.swe_refactor.trials.pair.review import AnswerReview, read_review


@pytest.mark.parametrize(
    ("text", "accepted", "comments"),
    [
        ('{"verdict": "accept", "comments": []}', True, ()),
        (
            'Here it is:\n```json\n{"verdict": "improve", "comments": ["Rename b.", ""]}\n```',
            False,
            ("Rename b.",),
        ),
        ('{"verdict": "improve", "comments": "Rename b."}', False, ("Rename b.",)),
        ('{"verdict": "Accepted."}', True, ()),
        ("**Accept**: all is well.", True, ()),
        (
            "I cannot accept this: `void f() { }` is empty.",
            False,
            ("I cannot accept this: `void f() { }` is empty.",),
        ),
        ('{"verdict": 1}', False, ('{"verdict": 1}',)),
        ("[1]", False, ("[1]",)),
    ],
)
def test_a_plain_reply_is_read(text: str, accepted: bool, comments: tuple[str, ...]) -> None:
    assert read_review(text) == AnswerReview(accepted, comments)


@given(
    st.text()
    | st.recursive(st.none() | st.text(), lambda each: st.dictionaries(st.text(), each)).map(json.dumps)
)
def test_any_text_is_a_review_that_can_be_stored(text: str) -> None:
    found = read_review(text)
    assert AnswerReview.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert len(found.comments) <= 20
    assert all(len(each) <= 2000 for each in found.comments)
