"""A prompt and its answer: files, or a named problem; asked again as often as the strategy says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codetaste.errors import ConversationTooLong
from codetaste.llm.messages import Message, Reply, StopReason, TextBlock, Usage
from codetaste.orchestration.job import Outcome, Status
from support.swe_refactor.answer_runs import Script, run_answer
from support.swe_refactor.shop import CART, KINDS, LABELS, answer

pytestmark = pytest.mark.anyio
EXTRACT, MOVE = "Extract Method", "Move Method"


def value(outcome: Outcome) -> Any:
    assert outcome.status is Status.DONE, outcome.error
    return outcome.value


def stopped(text: str, stop: StopReason) -> Reply:
    return Reply(Message("assistant", (TextBlock(text),)), stop, Usage(1, 1), "m")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_right_answer_gives_files(tmp_path: Path, kind: str) -> None:
    script = Script([answer(kind)])
    found = value(await run_answer(tmp_path, kind, script))
    assert found["problem"] is None
    assert found["files"]
    assert (found["turns"], found["details"].keys()) == (1, {"prompt"})


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("", "empty"),
        ("I would extract a method.", "no_parts"),
        ("#####\n<html></html>\n#####", "html"),
        (stopped("No.", StopReason.REFUSAL), "refused"),
        (stopped("#####\npublic int total(int tax) {", StopReason.LENGTH), "cut_off"),
    ],
)
async def test_an_unusable_answer_is_named(tmp_path: Path, reply: Any, expected: str) -> None:
    script = Script([reply])
    found = value(await run_answer(tmp_path, EXTRACT, script))
    assert (found["files"], found["problem"]["kind"], found["turns"]) == ({}, expected, 1)


async def test_a_cut_off_reply_with_a_whole_answer_is_used(tmp_path: Path) -> None:
    found = value(await run_answer(tmp_path, EXTRACT, Script([stopped(answer(EXTRACT), StopReason.LENGTH)])))
    assert found["problem"] is None


async def test_a_strategy_with_tries_tells_what_is_wrong(tmp_path: Path) -> None:
    script = Script(["Prose.", "#####\nx\n#####", answer(MOVE), "never"])
    found = value(await run_answer(tmp_path, MOVE, script, tries=3))
    assert found["turns"] == 3
    assert set(found["files"]) == {CART, LABELS}
    last = script.requests[2].messages
    assert [message.role for message in last] == ["user", "assistant"] * 2 + ["user"]
    assert "no line of number signs" in last[2].text
    assert "it must have 3 parts" in last[4].text


async def test_the_last_try_counts(tmp_path: Path) -> None:
    found = value(await run_answer(tmp_path, MOVE, Script(["Prose."] * 2), tries=2))
    assert (found["problem"]["kind"], found["turns"]) == ("no_parts", 2)


async def test_a_prompt_that_the_model_cannot_take(tmp_path: Path) -> None:
    def refuse(_request: object) -> Reply:
        raise ConversationTooLong("the prompt has 9 tokens, at most 8 are possible")

    found = value(await run_answer(tmp_path, EXTRACT, Script([refuse]), tries=3))
    assert (found["problem"]["kind"], found["turns"]) == ("prompt_too_long", 1)


async def test_a_budget_ends_it_without_an_answer(tmp_path: Path) -> None:
    outcome = await run_answer(tmp_path, EXTRACT, Script([answer(EXTRACT)]), usd="0.000001")
    assert (outcome.status, outcome.value) == (Status.BUDGET_EXCEEDED, None)
