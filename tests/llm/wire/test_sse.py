from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.errors import MalformedReply
from codetaste.llm.wire.common.sse import SseParser

# One line of text: any characters except line ends.
lines = st.text(st.characters(exclude_characters="\r\n", exclude_categories=("Cs",)), max_size=12)
datas = st.lists(lines, min_size=1, max_size=3).map("\n".join).filter(bool)
noise = st.sampled_from([": ping", "event: x", "id: 7", "retry: 10", "nonsense", ":", "id"])
ends = st.sampled_from(["\n", "\r", "\r\n"])


@st.composite
def bodies(draw: st.DrawFn) -> tuple[list[str], list[bytes]]:
    """Draw events, and a stream of them cut into pieces at any places."""
    events = draw(st.lists(datas, max_size=4))
    text = draw(st.sampled_from(["", "\ufeff"]))
    for data in events:
        for line in data.split("\n"):
            text += "".join(each + draw(ends) for each in draw(st.lists(noise, max_size=2)))
            text += draw(st.sampled_from(["data: ", "data:"] if line[:1] != " " else ["data: "])) + line
            text += draw(ends)
        # CR LF is one line end, so a lone CR must not be followed by a lone LF here.
        text += "\r\n" if text.endswith("\r\n") else text[-1]
    written = text.encode()
    cuts = sorted(draw(st.lists(st.integers(0, len(written)), max_size=6)))
    edges = [0, *cuts, len(written)]
    return events, [written[start:end] for start, end in pairwise(edges)]


@given(bodies())
@settings(max_examples=300, deadline=None)
def test_sse_events_are_independent_of_chunk_boundaries(
    case: tuple[list[str], list[bytes]],
) -> None:
    events, pieces = case
    parser = SseParser()
    assert [data for piece in pieces for data in parser.feed(piece)] == events


def test_incomplete_event_is_not_yielded() -> None:
    parser = SseParser()
    assert list(parser.feed(b"data: one\n\ndata: two\n")) == ["one"]
    assert list(parser.feed(b"\n")) == ["two"]


def test_invalid_utf_8_and_endless_event_are_reported() -> None:
    with pytest.raises(MalformedReply, match="not UTF-8"):
        list(SseParser().feed(b"data: \xff\n\n"))
    parser = SseParser(max_bytes=1000)
    for _ in range(10):
        assert list(parser.feed(b"x" * 100)) == []
    with pytest.raises(MalformedReply, match="does not come to an end"):
        list(parser.feed(b"x"))
