"""Frames from inside are the same however the stream is cut, and what is no frame is refused."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.errors import SandboxError
from codetaste.sandbox.supervisor.protocol import Frame, FrameDecoder

KINDS = [b"H", b"P", b"C", b"X", b"N"]
said = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 2**32 - 1), st.binary(max_size=50)))


@given(said, st.lists(st.integers(1, 40)))
def test_a_stream_cut_anywhere_says_the_same(
    messages: list[tuple[bytes, int, bytes]], cuts: list[int]
) -> None:
    stream = b"".join(
        struct.pack(">I", len(payload)) + kind + struct.pack(">I", command) + payload
        for kind, command, payload in messages
    )
    frames, heard = FrameDecoder(), []
    for size in cuts:
        heard += frames.feed(stream[:size])
        stream = stream[size:]
    heard += frames.feed(stream)
    assert [tuple(frame) for frame in heard] == messages


@given(said)
def test_what_we_send_reads_the_same(messages: list[tuple[bytes, int, bytes]]) -> None:
    stream = b"".join(Frame(*message).to_bytes() for message in messages)
    assert [tuple(frame) for frame in FrameDecoder().feed(stream)] == messages


@given(st.binary(max_size=200))
def test_noise_is_refused_or_waited_on(noise: bytes) -> None:
    with suppress(SandboxError):
        for frame in FrameDecoder().feed(noise):
            assert frame.kind in KINDS


def test_a_frame_that_is_too_large_is_refused_before_it_comes() -> None:
    with pytest.raises(SandboxError, match="invalid frame"):
        list(FrameDecoder().feed(struct.pack(">I", 2**20) + b"X" + struct.pack(">I", 1)))
