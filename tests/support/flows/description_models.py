"""Scripted models that write descriptions: each derives its reply from the conversation alone."""

from __future__ import annotations

import sys
from pathlib import Path

from codetaste.errors import ConversationTooLong
from codetaste.llm.messages import Request, Usage
from codetaste.llm.providers.scripted import ScriptedReply

INSTRUCTED = """\
# Title

Rename the fetch function of the store

# Summary

`fetch_old` becomes `fetch_new` and takes `strict`.

# Why

- Its name says what it does.

# Changes

- Rename `fetch_old` to `fetch_new` in `pack/store.py`.
- Pass `strict` wherever it is called.
"""
OPEN = "Modernize how the store is read"
LEAKING = "Rename to fetch_new everywhere"


def is_open(request: Request) -> bool:
    return "<description>" in request.messages[0].text


def turn(request: Request) -> int:
    return sum(message.role == "assistant" for message in request.messages)


def good(request: Request) -> str:
    return OPEN if is_open(request) else INSTRUCTED


def slowly(request: Request) -> ScriptedReply:
    """The same after two unusable replies, with latency between bill and reply."""
    text = good(request) if turn(request) >= 2 else "Here you are:\n\nall of it."
    return ScriptedReply(text, latency_s=0.08)


def expensive(request: Request) -> ScriptedReply:
    """The same at a cent and a half a reply."""
    return ScriptedReply(slowly(request).content, usage=Usage(output=1000))


def leaky_once(request: Request) -> str:
    """Names a symbol of the golden patch at first."""
    return LEAKING if is_open(request) and turn(request) == 0 else good(request)


def leaky(request: Request) -> str:
    """Always names a symbol of the golden patch."""
    return LEAKING if is_open(request) else good(request)


def learning(request: Request) -> str:
    """Writes what the comments of reviewers ask for."""
    if is_open(request) and "mention reading" in request.messages[0].text:
        return "Improve reading from the store"
    return good(request)


def with_rules(request: Request) -> object:
    """Describes, and discovers rules of what was described."""
    sys.path.append(str(Path(__file__).parents[2]))  # loaded by path, as a user's file is
    from support.flows import discovery_models

    return discovery_models.quick(request) if request.tools else good(request)


def narrow(request: Request) -> str:
    """Refuses prompts of more than 9,000 characters, as a provider with a small window does."""
    if len(request.messages[0].text) > 9000:
        raise ConversationTooLong("the scripted model takes 9,000 characters")
    return good(request)
