"""A change's texts are its pull requests and the issues that they close."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.mining.commit import CommitRecord, PullRequest
from codetaste.mining.github.answer import ApiOutcome, Issue
from codetaste.mining.github.linked_texts import LinkedTexts, linked_texts
from support.mining.github import world as made
from support.mining.github.client import github

pytestmark = pytest.mark.anyio


def world_with_issues() -> tuple[made.World, made.PullRequest]:
    world = made.World()
    world.add("made/other")
    pull = world.add("made/one").add_merged(3, title="Split", body="Closes #1")
    pull.issues = [
        made.Issue(1, "Too long", "It has 4,000 lines."),
        made.Issue(2, "Secret", visible=False),
        made.Issue(1, "Elsewhere", "x", repository="made/other"),
    ]
    return world, pull


ISSUES = (
    Issue(repository="made/one", number=1, title="Too long", body="It has 4,000 lines."),
    Issue(repository="made/other", number=1, title="Elsewhere", body="x"),
)
PULL = PullRequest(3, "Split", "Closes #1")


async def test_texts_come_from_the_pull_request_or_from_those_of_the_commit(tmp_path: Path) -> None:
    world, pull = world_with_issues()
    by_number = CommitRecord("made/one", "", pull_request=PullRequest(3, "", ""))
    by_hash = CommitRecord("made/one", pull.merged_by or "")
    async with github(world, tmp_path) as session:
        texts = await linked_texts([by_number, by_hash], session.client)
    assert texts == [LinkedTexts(ApiOutcome.FOUND, (PULL,), ISSUES)] * 2


async def test_without_an_answer_the_record_s_own_text_remains(tmp_path: Path) -> None:
    world, _ = world_with_issues()
    record = CommitRecord("made/one", "", pull_request=PULL)
    gone = CommitRecord("made/gone", "", pull_request=PULL)
    async with github(world, tmp_path) as session:
        [texts] = await linked_texts([gone], session.client)
        assert (texts.outcome, texts.pull_requests, texts.issues) == (ApiOutcome.DELETED, (PULL,), ())
    async with github(world, tmp_path / "other", token="") as session:
        [texts] = await linked_texts([record], session.client)
        assert (texts.outcome, texts.pull_requests, texts.issues) == (ApiOutcome.NO_TOKEN, (PULL,), ())
        assert session.hub.requests == []
