"""Frames of the supervisor are decoded wherever the stream is split, and invalid frames are refused."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.errors import SandboxError
from codetaste.sandbox.supervisor.protocol import Frame, FrameDecoder

KINDS = [b"H", b"P", b"C", b"X", b"N"]
MESSAGES = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 2**32 - 1), st.binary(max_size=50)))


@given(MESSAGES, st.lists(st.integers(1, 40)))
def test_frames_are_decoded_wherever_the_stream_is_split(
    messages: list[tuple[bytes, int, bytes]], cuts: list[int]
) -> None:
    stream = b"".join(
        struct.pack(">I", len(payload)) + kind + struct.pack(">I", command) + payload
        for kind, command, payload in messages
    )
    decoder, decoded = FrameDecoder(), []
    for size in cuts:
        decoded += decoder.feed(stream[:size])
        stream = stream[size:]
    decoded += decoder.feed(stream)
    assert [tuple(frame) for frame in decoded] == messages


@given(MESSAGES)
def test_encoded_frames_decode_to_the_same_messages(messages: list[tuple[bytes, int, bytes]]) -> None:
    stream = b"".join(Frame(*message).to_bytes() for message in messages)
    assert [tuple(frame) for frame in FrameDecoder().feed(stream)] == messages


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_or_incomplete(noise: bytes) -> None:
    with suppress(SandboxError):
        for frame in FrameDecoder().feed(noise):
            assert frame.kind in KINDS


def test_too_large_frame_is_refused_by_its_header() -> None:
    with pytest.raises(SandboxError, match="invalid frame"):
        list(FrameDecoder().feed(struct.pack(">I", 2**20) + b"X" + struct.pack(">I", 1)))
