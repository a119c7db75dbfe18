"""What is kept of a stream."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.sandbox.output import Kept


@given(st.lists(st.binary(max_size=300), max_size=20), st.integers(0, 500))
@settings(max_examples=200)
def test_a_stream_is_whole_or_its_beginning_and_end_with_a_note(chunks: list[bytes], limit: int) -> None:
    kept, whole = Kept(limit), b"".join(chunks)
    for chunk in chunks:
        kept.add(chunk)
    content = kept.content()
    assert kept.truncated == (len(whole) > limit)
    if not kept.truncated:
        assert content == whole
        return
    head, note, tail = content.partition(b"\n[... ")
    left_out, _, rest = tail.partition(b" of %d bytes left out ...]\n" % len(whole))
    assert note
    assert whole.startswith(head)
    assert whole.endswith(rest)
    assert len(head) + len(rest) + int(left_out) == len(whole)
    assert len(content) <= max(limit, 60)


@given(st.integers(1, 100), st.integers(1, 3000))
@settings(max_examples=50)
def test_no_more_than_a_few_times_the_limit_is_ever_held(limit: int, times: int) -> None:
    kept = Kept(limit)
    for _ in range(times):
        kept.add(b"0123456789")
    assert len(kept._first) + len(kept._last) <= 3 * limit + 10
