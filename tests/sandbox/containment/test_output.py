"""The stored part of a stream: all of it, or its beginning and end."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.sandbox.output import BoundedOutput


@given(st.lists(st.binary(max_size=300), max_size=20), st.integers(0, 500))
@settings(max_examples=200)
def test_stream_is_stored_whole_or_as_beginning_note_and_end(chunks: list[bytes], limit: int) -> None:
    output, whole = BoundedOutput(limit), b"".join(chunks)
    for chunk in chunks:
        output.add(chunk)
    content = output.content()
    assert output.truncated == (len(whole) > limit)
    if not output.truncated:
        assert content == whole
        return
    # The note is found by the total size, as the stream may contain similar text.
    note = re.search(rb"\n\[\.\.\. (\d+) of %d bytes left out \.\.\.\]\n" % len(whole), content)
    assert note
    head, omitted, tail = content[: note.start()], note[1], content[note.end() :]
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head) + len(tail) + int(omitted) == len(whole)
    assert len(content) <= max(limit, 60)


@given(st.integers(1, 100), st.integers(1, 3000))
@settings(max_examples=50)
def test_output_buffer_never_exceeds_three_times_its_limit(limit: int, times: int) -> None:
    output = BoundedOutput(limit)
    for _ in range(times):
        output.add(b"0123456789")
    assert len(output._first) + len(output._last) <= 3 * limit + 10
