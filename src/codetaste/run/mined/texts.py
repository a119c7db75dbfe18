"""What people wrote about mined commits: their pull requests, and the issues that these close."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.benchmark.layout import change_path
from codetaste.console.streams import notify
from codetaste.flows.describe.change import ChangeTexts, Discussion
from codetaste.mining.github.answer import ApiOutcome, Issue
from codetaste.mining.github.client import open_github
from codetaste.mining.github.config import read_token
from codetaste.mining.github.linked_texts import LinkedTexts, linked_texts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codetaste.flows.mine.candidates import MinedCandidate
    from codetaste.flows.mine.context import MiningContext
    from codetaste.mining.commit import PullRequest

_ANSWERS = frozenset({ApiOutcome.FOUND, ApiOutcome.NOT_FOUND})


async def find_texts(
    root: Path, candidates: Sequence[MinedCandidate], context: MiningContext
) -> dict[str, ChangeTexts]:
    """Return the texts of those candidates that the benchmark in ``root`` has none of, by instance id.

    What is there stays, so that a description is made of the same texts in each session. GitHub is asked if
    the run asks it at all; without a token, or an answer, the texts are those that the source had.

    Raises:
        ConfigError: GitHub does not accept the token.
        SourceError: the cache of answers cannot be read or written.
        StorageFull: no space left for the cache.
    """
    new = await to_thread.run_sync(
        lambda: [each for each in candidates if not change_path(root, each.instance).is_file()]
    )
    if not new:
        return {}
    if context.asks_github() and read_token(context.config.github):
        async with open_github(context.config.github, context.answers, notify) as client:
            found = await linked_texts([each.record for each in new], client)
    else:
        found = [_own_texts(each) for each in new]
    for each, texts in zip(new, found, strict=True):
        if texts.outcome not in _ANSWERS:
            path = change_path(root, each.instance)
            notify(f"{each.instance.id}: no linked issues: {texts.detail}; to ask again remove {path}")
    return {
        each.instance.id: ChangeTexts(
            message=each.record.message or None,
            pull_requests=tuple(map(_discussion, texts.pull_requests)),
            issues=tuple(map(_discussion, texts.issues)),
        )
        for each, texts in zip(new, found, strict=True)
    }


def _own_texts(each: MinedCandidate) -> LinkedTexts:
    pull = each.record.pull_request
    return LinkedTexts(ApiOutcome.FOUND, () if pull is None else (pull,))


def _discussion(each: PullRequest | Issue) -> Discussion:
    return Discussion(number=each.number, title=each.title, body=each.body)
