"""A scripted model for runs that are watched: it waits in the middle."""

from __future__ import annotations

import os
from pathlib import Path

import anyio

from codetaste.llm.messages import Message, Request
from support.flows.trial_models import coder as quick_coder
from support.flows.trial_models import turn

GATE = "CODETASTE_TEST_GATE"
"""The variable that names a file: until it is there, the model does not answer after its second turn."""
_POLL_S = 0.05


async def coder(request: Request) -> Message:
    """Changes the code."""
    while turn(request) > 1 and not Path(os.environ[GATE]).exists():  # noqa: ASYNC110, ASYNC240 - a file
        await anyio.sleep(_POLL_S)
    return quick_coder(request)
