"""The requests of scoring jobs, and the inputs that decide their results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.agent.tool import truncate
from codetaste.core.hashing import canonical_json
from codetaste.flows.inputs import CODETASTE
from codetaste.llm.messages import Message, Request, TextBlock

if TYPE_CHECKING:
    from codetaste.flows.inputs import Inputs
    from codetaste.flows.mine.scoring.context import ScoringContext
    from codetaste.mining.commit import CommitRecord

VERSION = 1
"""Increment it when a change of this flow changes the scores with the same prompts and model."""
MESSAGE_PROMPT, DIFF_PROMPT, AGAIN_PROMPT = "mine_message", "mine_diff", "mine_again"


def message_request(record: CommitRecord, context: ScoringContext) -> Request:
    """Return the request for the scores of a message."""
    return _request(MESSAGE_PROMPT, truncate(record.text.strip(), context.config.message_chars), context)


def diff_request(diff: str, context: ScoringContext) -> Request:
    """Return the request for the scores of a diff that is short enough."""
    return _request(DIFF_PROMPT, diff, context)


def message_inputs(record: CommitRecord, context: ScoringContext) -> Inputs:
    """Return the inputs of the scores of a message."""
    limit = {"mine.scoring.message_chars": str(context.config.message_chars)}
    return {**limit, **_inputs(MESSAGE_PROMPT, [record.text], context)}


def diff_inputs(record: CommitRecord, context: ScoringContext) -> Inputs:
    """Return the inputs of the scores of a diff; the hashes of its commits stand for the diff."""
    limit = {"mine.scoring.diff_chars": str(context.config.diff_chars)}
    return {**limit, **_inputs(DIFF_PROMPT, [record.base, record.golden, record.text], context)}


def _inputs(prompt: str, commit: list[str | None], context: ScoringContext) -> Inputs:
    config = context.config
    return {
        CODETASTE: str(VERSION),
        "mine.commit": canonical_json(commit),
        "mine.scoring.max_output_tokens": str(config.max_output_tokens),
        f"models.{config.model}": context.models.fingerprints[config.model],
        **{f"prompts/{name}.md": context.prompts.load(name).text for name in (prompt, AGAIN_PROMPT)},
    }


def _request(prompt: str, text: str, context: ScoringContext) -> Request:
    # No provider takes lone surrogates, which texts of other encodings have.
    sendable = text.encode("utf-8", "replace").decode()
    return Request(
        context.prompts.load(prompt).render(),
        (Message("user", (TextBlock(sendable),)),),
        max_output_tokens=context.config.max_output_tokens,
    )
