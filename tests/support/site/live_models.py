"""A scripted model for runs that are watched: it takes its time."""

from __future__ import annotations

from codetaste.llm.messages import Request
from codetaste.llm.providers.scripted import ScriptedReply
from support.flows.trial_models import coder as quick_coder


def coder(request: Request) -> ScriptedReply:
    """Changes the code, with some seconds between a request and its reply."""
    return ScriptedReply(quick_coder(request).content, latency_s=1.5)
