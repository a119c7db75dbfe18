"""A developer answers, tools and a reviewer judge, and the developer corrects: rounds, ends and records."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.errors import ConversationTooLong
from codetaste.llm.messages import Message, Reply, Request, StopReason, TextBlock, ToolCall, Usage
from codetaste.llm.providers.scripted import ScriptedReply
from codetaste.orchestration.job import Outcome, Status
from codetaste.swe_refactor.trials.conversation import AppliedAnswer
from codetaste.swe_refactor.trials.pair.evidence import Evidence
from support.swe_refactor.pair_runs import (
    ACCEPT,
    MISSPELT,
    RIGHT,
    UNEXTRACTED,
    WRONG_SUM,
    PairRun,
    improve,
    numbered,
    read_evidence,
)
from support.swe_refactor.shop import CART, KINDS, answer

pytestmark = pytest.mark.anyio
LOOK = ToolCall("c", "class_body", {"name": "Cart"})


def value(outcome: Outcome) -> Any:
    assert outcome.status is Status.DONE, outcome.error
    return outcome.value


def ask_again(_request: Request) -> ToolCall:
    return improve("Make it better.")


def accept(_request: Request) -> ToolCall:
    return ACCEPT


def verdicts(found: Any) -> list[Any]:
    """Whether the reviewer accepted, by round."""
    rounds = found["details"]["rounds"]
    return [each["review"]["accepted"] if each["review"] else None for each in rounds]


async def test_a_good_answer_that_is_accepted_ends_the_work(tmp_path: Path) -> None:
    run = PairRun(tmp_path, numbered(LOOK, RIGHT), accept)
    found = value(await run.session())
    assert (found["problem"], [*found["files"]], found["turns"]) == (None, [CART], 3)
    details = found["details"]
    assert (details["ended"], details["reviewer"], details["answer_of_round"]) == ("accepted", "rev", 1)
    assert verdicts(found) == [True]
    assert "public int total(int tax)" in run.requests["dev"][1].messages[2].content[0].content  # type: ignore[union-attr]


async def test_the_developer_corrects_what_does_not_compile_fails_tests_or_is_another_refactoring(
    tmp_path: Path,
) -> None:
    def reviewer(request: Request) -> Any:
        return improve(next(comments)) if "rejects it" in request.messages[0].text else ACCEPT

    replies = ["Prose.", MISSPELT, WRONG_SUM, UNEXTRACTED, RIGHT]
    comments = iter(["Use the format.", "Write sum.", "Add, do not subtract.", "Extract a method."])
    run = PairRun(tmp_path, numbered(*replies), reviewer, {"rounds": 6})
    found = value(await run.session())
    assert (found["details"]["ended"], found["details"]["answer_of_round"]) == ("accepted", 5)
    assert (found["turns"], verdicts(found)) == (10, [False] * 4 + [True])
    conversation = run.requests["dev"][-1].messages
    assert [each.role for each in conversation] == ["user", "assistant"] * 4 + ["user"]
    assert "- Write sum.\n" in conversation[4].text
    assert "build rejects it:\nNo summ." in conversation[4].text
    assert "1 part between lines of #####" in conversation[4].text
    last_review = run.requests["rev"][-1].messages[0].text
    assert "(answer 5)" in last_review
    assert "- Add, do not subtract.\n" in last_review
    assert conversation[0].text in last_review, "the reviewer knows the task"


async def test_tools_that_reject_an_answer_are_not_overruled_by_the_reviewer(tmp_path: Path) -> None:
    run = PairRun(tmp_path, numbered(WRONG_SUM, RIGHT), accept)
    found = value(await run.session())
    assert (found["details"]["ended"], found["details"]["answer_of_round"]) == ("accepted", 2)
    assert "accepts your answer, but tools reject it" in run.requests["dev"][1].messages[2].text


async def test_a_reviewer_that_never_accepts_is_heard_until_no_round_is_left(tmp_path: Path) -> None:
    run = PairRun(tmp_path, numbered(RIGHT, RIGHT, RIGHT), ask_again, {"rounds": 3})
    found = value(await run.session())
    assert found["details"]["ended"] == "rounds"
    assert verdicts(found) == [False, False, None], "the last answer is not reviewed"
    assert (len(run.requests["rev"]), run.gathered, found["turns"]) == (2, 2, 5)


async def test_one_round_needs_no_reviewer(tmp_path: Path) -> None:
    run = PairRun(tmp_path, numbered(RIGHT), accept, {"rounds": 1})
    found = value(await run.session())
    assert (found["details"]["ended"], run.requests["rev"], run.gathered) == ("rounds", [], 0)


async def test_a_developer_that_loops_on_a_tool_is_stopped(tmp_path: Path) -> None:
    run = PairRun(tmp_path, lambda _: LOOK, accept, {"max_turns": 5})
    outcome = await run.session()
    found = value(outcome)
    assert (found["problem"]["kind"], found["turns"], found["files"]) == ("no_answer", 5, {})
    assert outcome.shortfall is not None
    assert (outcome.shortfall.name, outcome.shortfall.by_limit) == ("max_turns", True)


async def test_the_last_usable_answer_is_the_result(tmp_path: Path) -> None:
    run = PairRun(tmp_path, numbered(RIGHT, "Prose.", *[LOOK] * 9), ask_again, {"rounds": 5, "max_turns": 3})
    found = value(await run.session())
    assert (found["problem"], found["text"] != "", found["details"]["answer_of_round"]) == (None, True, 1)
    assert found["details"]["ended"] == "max_turns"
    assert [each["problem"] for each in found["details"]["rounds"]] == [None, "no_parts"]


@pytest.mark.parametrize(
    "reply", ["", "{}", [ToolCall("r", "review", {"verdict": "maybe"})], [ToolCall("r", "other", {})]]
)
async def test_a_reviewer_without_a_review_leaves_the_decision_to_the_tools(
    tmp_path: Path, reply: Any
) -> None:
    if reply == "{}":
        reply = ScriptedReply("No.", stop=StopReason.REFUSAL)
    run = PairRun(tmp_path, numbered(MISSPELT, RIGHT), lambda _: reply)
    found = value(await run.session())
    assert (found["details"]["ended"], verdicts(found)) == ("accepted", [None, None])
    assert "No summ." in run.requests["dev"][1].messages[2].text


@pytest.mark.parametrize("share", ["0.5", "0.9"])
async def test_a_budget_ends_it_with_the_last_answer(tmp_path: Path, share: str) -> None:
    (tmp_path / "whole").mkdir()
    script, settings = numbered(*[RIGHT] * 8), {"max_output_tokens": 256, "rounds": 8}
    whole = PairRun(tmp_path / "whole", script, ask_again, settings)
    assert value(await whole.session())["details"]["ended"] == "rounds"
    usd = whole.spent.settled.usd * Decimal(share)
    (tmp_path / "cheap").mkdir()
    cheap = PairRun(tmp_path / "cheap", script, ask_again, settings)
    outcome = await cheap.session(usd=str(usd))
    found: Any = outcome.value
    assert (outcome.status, found["details"]["ended"]) == (Status.BUDGET_EXCEEDED, "budget_exceeded")
    assert (found["problem"], [*found["files"]]) == (None, [CART])
    assert cheap.spent.settled.usd <= usd


async def test_a_budget_too_small_for_any_answer(tmp_path: Path) -> None:
    outcome = await PairRun(tmp_path, numbered(RIGHT), accept).session(usd="0.000001")
    found: Any = outcome.value
    assert (outcome.status, found["problem"]["kind"]) == (Status.BUDGET_EXCEEDED, "no_answer")


@pytest.mark.heavy
async def test_a_time_limit_ends_it_with_the_last_answer_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    async def developer(request: Request) -> Any:
        if len(request.messages) > 1 and waits:
            await anyio.sleep_forever()
        return RIGHT

    waits, reviews = [True], iter([improve("Again."), ACCEPT])
    run = PairRun(tmp_path, developer, lambda _: next(reviews))
    outcome = await run.session(working_s=10)
    found: Any = outcome.value
    assert (outcome.status, found["details"]["ended"]) == (Status.TIMEOUT, "timeout")
    assert (found["problem"], found["details"]["answer_of_round"]) == (None, 1)
    assert run.transcript("developer")[-1]["role"] == "user"
    waits.clear()
    found = value(await run.session(working_s=1000))
    assert (found["details"]["ended"], found["details"]["answer_of_round"]) == ("accepted", 2)
    assert (len(run.requests["dev"]), len(run.requests["rev"])) == (3, 2), "one reply was cancelled"


async def test_a_developer_that_refuses_or_cannot_take_the_prompt(tmp_path: Path) -> None:
    def too_long(_request: object) -> Reply:
        raise ConversationTooLong("the prompt has 9 tokens, at most 8 are possible")

    refusal = Reply(Message("assistant", (TextBlock("No."),)), StopReason.REFUSAL, Usage(1, 1), "m")
    for name, script, kind in (
        ("one", lambda _: refusal, "refused"),
        ("two", too_long, "prompt_too_long"),
    ):
        (tmp_path / name).mkdir()
        found = value(await PairRun(tmp_path / name, script, accept).session())
        assert found["problem"]["kind"] == kind


@pytest.mark.parametrize("kind", KINDS)
async def test_each_type_has_its_prompt_and_format(tmp_path: Path, kind: str) -> None:
    def read(applied: AppliedAnswer) -> Evidence:
        return read_evidence(applied) if applied.problem else Evidence(())

    run = PairRun(tmp_path, numbered("Prose.", answer(kind)), accept, kind=kind, gather=read)
    assert value(await run.session())["problem"] is None


async def test_transcripts_have_the_whole_conversations(tmp_path: Path) -> None:
    def reviewer(request: Request) -> Any:
        return improve("Write sum.") if "rejects it" in request.messages[0].text else ACCEPT

    run = PairRun(tmp_path, numbered(LOOK, MISSPELT, RIGHT), reviewer)
    value(await run.session())
    developer = run.transcript("developer")
    assert developer[0]["model"] == "Dev"
    assert [each["role"] for each in developer[1:]] == ["user", "assistant"] * 3
    first, second = run.transcript("review-1"), run.transcript("review-2")
    assert first[0]["model"] == "rev"
    assert first[0]["tools"] == ["review"]
    assert "Write sum." in str(first[2])
    assert [each["role"] for each in second[1:]] == ["user", "assistant", "user"]
