"""Error responses in each protocol that make a CLI agent stop at once if a retry is useless.

The status and error codes at which Claude Code, Codex and Qwen Code stop or retry were measured for the
versions that ``agents/`` pins: Codex retries everything but a 400, Claude Code retries 401 and 429 for
minutes, and all of them retry 5xx. The codes are in the ``server`` module of each protocol.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.llm.wire.codecs import SERVERS
from codetaste.llm.wire.common.error_codes import TRANSIENT_ERRORS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.llm.wire.common.error_codes import ErrorKind
    from codetaste.llm.wire.protocols import ProtocolName


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An error response. In a stream that has begun, only ``body`` is used, as its last events."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def error_response(
    protocol: ProtocolName,
    kind: ErrorKind,
    message: str,
    *,
    retry: bool = True,
    stream_started: bool = False,
) -> ErrorResponse:
    """Return the error response to a request.

    Args:
        protocol: of the request.
        kind: of the error.
        message: for the agent; one line.
        retry: whether the agent may retry at all after a transient error.
        stream_started: whether the beginning of a reply has been sent, so that no status can follow.
    """
    server = SERVERS[protocol]
    error = server.ERROR_CODES[kind]
    if stream_started:
        return ErrorResponse(200, server.error_events(error, message))
    may_retry = retry and kind in TRANSIENT_ERRORS
    headers = {"content-type": "application/json", "x-should-retry": "true" if may_retry else "false"}
    return ErrorResponse(error.status, json.dumps(server.error_body(error, message)).encode(), headers)
