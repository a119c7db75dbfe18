"""What is kept of a stream."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.sandbox.output import BoundedOutput


@given(st.lists(st.binary(max_size=300), max_size=20), st.integers(0, 500))
@settings(max_examples=200)
def test_a_stream_is_whole_or_its_beginning_and_end_with_a_note(chunks: list[bytes], limit: int) -> None:
    kept, whole = BoundedOutput(limit), b"".join(chunks)
    for chunk in chunks:
        kept.add(chunk)
    content = kept.content()
    assert kept.truncated == (len(whole) > limit)
    if not kept.truncated:
        assert content == whole
        return
    # Found by its number: what was written may look like the beginning of a note.
    note = re.search(rb"\n\[\.\.\. (\d+) of %d bytes left out \.\.\.\]\n" % len(whole), content)
    assert note
    head, left_out, rest = content[: note.start()], note[1], content[note.end() :]
    assert whole.startswith(head)
    assert whole.endswith(rest)
    assert len(head) + len(rest) + int(left_out) == len(whole)
    assert len(content) <= max(limit, 60)


@given(st.integers(1, 100), st.integers(1, 3000))
@settings(max_examples=50)
def test_output_buffer_never_exceeds_few_times_its_limit(limit: int, times: int) -> None:
    kept = BoundedOutput(limit)
    for _ in range(times):
        kept.add(b"0123456789")
    assert len(kept._first) + len(kept._last) <= 3 * limit + 10
