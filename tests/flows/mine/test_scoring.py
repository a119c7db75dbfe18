"""Messages are scored, then the diffs of the best, with scripted models."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from codetaste.errors import ConversationTooLong, ModelRefused, ModelUnavailable
from codetaste.llm.messages import Request, StopReason
from codetaste.llm.providers.scripted import ScriptedReply
from codetaste.mining.commit import CommitRecord, PullRequest
from codetaste.mining.funnel import funnel_from_json
from codetaste.mining.prefilter.diff import CommitDiff, make_commit_diff
from codetaste.orchestration.job import Status
from support.mining.scoring_replies import MESSAGE, answer
from support.mining.scoring_run import (
    BY_MESSAGE,
    BY_TOTAL,
    ScoringRun,
    good_reply,
    is_about_diff,
    load_made_diff,
    lost_diff,
    make_records,
    number_of,
)

pytestmark = pytest.mark.anyio


def message_key(number: int) -> str:
    return f"mine/2024/message/owner/repo{number}@{number:040x}"


def diff_key(number: int) -> str:
    return f"mine/2024/diff/owner/repo{number}@{number:040x}"


async def test_best_messages_are_scored_by_diff_and_the_best_of_them_are_candidates(tmp_path: Path) -> None:
    run = ScoringRun(tmp_path)
    outcomes = await run.session()
    assert {outcome.status for outcome in outcomes.values()} == {Status.DONE}
    # The messages of 7, 6, 5 and 4 have the highest scores; of these the diffs of 4 and 5.
    assert [key for key in outcomes if "/diff/" in key] == [diff_key(number) for number in (7, 6, 5, 4)]
    first, second = run.candidates()
    assert (first["repo"], second["repo"]) == ("repo4", "repo5")
    assert first["commit_hash"] == f"{5:040x}"
    assert first["golden_commit_hash"] == f"{4:040x}"
    assert (first["category"], first["language"], first["stars"]) == ("structural", "go", "104")
    # The first is 0.308 + 0.45 * 0.004 + 0.144 - 0.064, the second 0.8 * 0.996 + 0.17 - 0.31275.
    assert float(first["message_score"]) == pytest.approx(0.3898)
    assert float(first["diff_score"]) == pytest.approx(0.65405)
    assert float(first["combined_score"]) == pytest.approx((0.3898 + 3 * 0.65405) / 4)
    value: Any = outcomes[BY_TOTAL].value
    assert [each["repository"] for each in value["candidates"]] == ["owner/repo4", "owner/repo5"]
    assert value["candidates"][0]["facts"]["base"] == f"{5:040x}"
    assert len(run.bill()) == 12
    rows = funnel_from_json(value["funnel"])
    assert [(row.filter, row.entered, row.passed) for row in rows] == [
        ("message scores", 8, 8),
        ("message rank", 8, 4),
        ("diff scores", 4, 4),
        ("total rank", 4, 2),
    ]
    assert sum(row.cost_usd for row in rows) == run.spent.settled.usd
    assert rows[0].cost_usd > rows[2].cost_usd > 0


async def test_every_score_is_recorded_with_its_reasoning(tmp_path: Path) -> None:
    run = ScoringRun(tmp_path)
    await run.session()
    scores = run.scores()
    assert len(scores) == 8
    assert scores["owner/repo4"]["candidate"] is True
    assert scores["owner/repo4"]["message"]["reply"]["reasoning"] == "Message 4 moves code."
    assert scores["owner/repo4"]["diff"]["reply"]["reasoning"] == "Diff 4 moves code."
    assert scores["owner/repo4"]["diff"]["reply"]["scores"]["complexity"] == 0.85
    assert scores["owner/repo7"]["candidate"] is False
    assert scores["owner/repo0"]["diff"] is None
    assert scores["owner/repo0"]["message_score"] == pytest.approx(0.388)


async def test_model_sees_the_message_alone_and_then_the_diff(tmp_path: Path) -> None:
    record = CommitRecord(
        "o/r", "a" * 40, message="merge", pull_request=PullRequest(7, "Move module 1", "All.")
    )
    run = ScoringRun(tmp_path, records=[record])
    await run.session()
    message, diff = run.requests
    assert message.messages[0].text == "Move module 1\n\nAll."
    assert diff.messages[0].text.startswith("diff --git a/src/module_")


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        ("I think that it is a refactoring.", "no <classification>"),
        (answer(MESSAGE, uncertainty="high"), "uncertainty is 'high', not a number"),
        (answer(MESSAGE) + answer(MESSAGE), "2 answers in place of one"),
        (answer(MESSAGE, uncertainty=None), "without a value: uncertainty"),
        (ScriptedReply("", stop=StopReason.REFUSAL), "the model refuses to answer"),
        (ScriptedReply("", stop=StopReason.END), "no <classification>"),
    ],
)
async def test_unusable_reply_is_repeated(tmp_path: Path, first: Any, problem: str) -> None:
    def script(request: Request) -> Any:
        again = problem in request.messages[-1].text
        return good_reply(request) if is_about_diff(request) or again else first

    run = ScoringRun(tmp_path, script, make_records(2))
    outcomes = await run.session()
    assert {outcome.status for outcome in outcomes.values()} == {Status.DONE}
    assert len(run.candidates()) == 2
    assert len(run.bill()) == 2 + 2 + 2
    repeated = [request for request in run.requests if problem in request.messages[-1].text]
    assert {len(request.messages) for request in repeated} <= {1, 3}
    assert all("module" in request.messages[0].text for request in repeated)


@pytest.mark.parametrize("enough", [4 * 8192, 5 * 8192])
async def test_cut_reply_is_repeated_with_a_larger_cap_once(tmp_path: Path, enough: int) -> None:
    """The model thinks until its cap; no two requests are alike."""

    def script(request: Request) -> Any:
        if is_about_diff(request) or request.max_output_tokens >= enough:
            return good_reply(request)
        return ScriptedReply("", stop=StopReason.LENGTH)

    run = ScoringRun(tmp_path, script, make_records(1))
    await run.session()
    caps = [request.max_output_tokens for request in run.requests if not is_about_diff(request)]
    assert caps == [8192, 4 * 8192]
    assert len(run.candidates()) == (enough == 4 * 8192)
    if not run.candidates():
        (scores,) = run.scores().values()
        assert "raise mine.scoring.max_output_tokens" in scores["message"]["problem"]


async def test_score_of_7_is_clamped_and_noted(tmp_path: Path) -> None:
    run = ScoringRun(tmp_path, lambda request: good_reply(request, uncertainty="7"), make_records(1))
    await run.session()
    (line,) = run.scores().values()
    assert line["message"]["reply"]["scores"]["uncertainty"] == 1.0
    assert line["message"]["reply"]["clamped"] == ["uncertainty: 7 taken as 1"]
    assert line["diff"]["reply"]["clamped"] == ["uncertainty: 7 taken as 1"]


async def test_commit_without_usable_replies_is_dropped_with_its_reason(tmp_path: Path) -> None:
    def script(request: Request) -> str:
        bad = {6: not is_about_diff(request), 4: is_about_diff(request)}
        return "no" if bad.get(number_of(request)) else good_reply(request)

    run = ScoringRun(tmp_path, script)
    outcomes = await run.session()
    assert {outcome.status for outcome in outcomes.values()} == {Status.DONE}
    assert [each["repo"] for each in run.candidates()] == ["repo3", "repo5"]
    scores = run.scores()
    reason = "no usable reply of 3; the last one: no <classification>"
    assert scores["owner/repo6"]["message"]["problem"] == reason
    assert scores["owner/repo4"]["diff"]["problem"] == reason
    assert len(run.bill()) == 7 + 3 + 3 + 3

    await run.session()
    assert len(run.bill()) == 16, "a commit that was dropped for good is not paid again"
    run.config["tries"], run.script = 4, good_reply
    await run.session()
    assert scores["owner/repo6"]["message"]["problem"]
    assert run.scores()["owner/repo6"]["message"]["problem"] == ""
    assert run.billed_effects().count(f"{message_key(6)}/message-4/reply") == 1


async def test_empty_message_costs_nothing(tmp_path: Path) -> None:
    records = [*make_records(2), CommitRecord("o/empty", "e" * 40, message=" \n")]
    run = ScoringRun(tmp_path, records=records)
    await run.session()
    assert len(run.bill()) == 4
    assert run.scores()["o/empty"]["message"]["problem"] == "the message is empty"


async def test_same_commit_twice_and_dirty_text_are_taken(tmp_path: Path) -> None:
    dirty = CommitRecord("o/r", "d" * 40, message="refactor: module 1 \udcff\x00 \u2028")
    run = ScoringRun(tmp_path, records=[*make_records(1), dirty, *make_records(1)])
    outcomes = await run.session()
    assert {outcome.status for outcome in outcomes.values()} == {Status.DONE}
    assert len(run.candidates()) == 2


async def test_no_commits_give_empty_files(tmp_path: Path) -> None:
    run = ScoringRun(tmp_path, records=[])
    outcomes = await run.session()
    value: Any = outcomes[BY_TOTAL].value
    assert value["candidates"] == value["funnel"]["rows"] == []
    assert run.candidates() == []


async def test_without_a_category_in_the_reply_the_message_names_it(tmp_path: Path) -> None:
    run = ScoringRun(tmp_path, lambda request: good_reply(request, category="renaming"), make_records(1))
    await run.session()
    (line,) = run.scores().values()
    assert line["facts"]["category"] == "structural"
    assert line["facts"]["category_by"] == "words"


async def load_long_diff(record: CommitRecord) -> CommitDiff:
    made = await load_made_diff(record)
    text = made.context_free_diff.decode() + "@@ -99 +99 @@\n" + "+more\n" * 30_000
    return make_commit_diff(record, made.base, made.golden, made.files, text.encode())


async def test_diff_is_cut_until_the_model_can_take_it(tmp_path: Path) -> None:
    def script(request: Request) -> str:
        if is_about_diff(request) and len(request.messages[0].text) > 20_000:
            raise ConversationTooLong("too many tokens")
        return good_reply(request)

    run = ScoringRun(tmp_path, script, make_records(1), load_diff=load_long_diff)
    await run.session()
    sizes = [len(request.messages[0].text) for request in run.requests if is_about_diff(request)]
    assert sizes == sorted(sizes, reverse=True)
    assert [size // 7500 for size in sizes] == [7, 3, 1]
    assert len(run.candidates()) == 1

    def narrow(request: Request) -> str:
        if is_about_diff(request):
            raise ConversationTooLong("too many tokens")
        return good_reply(request)

    blind = ScoringRun(tmp_path / "blind", narrow, make_records(1), load_diff=load_long_diff)
    outcomes = await blind.session()
    assert blind.scores()["owner/repo0"]["diff"]["problem"] == "too many tokens"
    assert outcomes[diff_key(0)].status is Status.DONE


async def test_budget_runs_out_and_more_money_continues(tmp_path: Path) -> None:
    whole = ScoringRun(tmp_path / "whole")
    await whole.session()
    cost = sum(Fraction(line["cost_usd"]) for line in whole.bill())

    run = ScoringRun(tmp_path / "run")
    small = Decimal("0.016")
    outcomes = await run.session(usd=str(small))
    assert {outcome.status for outcome in outcomes.values()} > {Status.BUDGET_EXCEEDED}
    assert outcomes[BY_MESSAGE].status in {Status.SKIPPED, Status.DONE}
    assert BY_TOTAL not in outcomes or outcomes[BY_TOTAL].status is Status.SKIPPED
    assert run.spent.spent.usd <= small
    bought = len(run.bill())
    assert 0 < bought < 12

    outcomes = await run.session(usd="1")
    assert {outcome.status for outcome in outcomes.values()} == {Status.DONE}
    assert len(run.billed_effects()) == len(set(run.billed_effects())) == 12
    assert run.candidates() == whole.candidates()
    assert Fraction(run.spent.settled.usd) == cost


async def test_limit_of_the_section_holds(tmp_path: Path) -> None:
    run = ScoringRun(tmp_path, config={"top_by_message": 4, "top": 2, "budget_usd": "0.016"})
    outcomes = await run.session()
    assert run.spent.spent.usd <= Decimal("0.016")
    assert Status.BUDGET_EXCEEDED in {outcome.status for outcome in outcomes.values()}
    run.config["budget_usd"] = "1"
    outcomes = await run.session()
    assert {outcome.status for outcome in outcomes.values()} == {Status.DONE}


async def test_second_session_pays_nothing_and_writes_the_files_again(tmp_path: Path) -> None:
    run = ScoringRun(tmp_path)
    await run.session()
    before, bill = run.candidates(), run.bill()
    for path in (tmp_path / "mining/2024").iterdir():
        path.unlink()
    outcomes = await run.session()
    assert run.bill() == bill
    assert run.candidates() == before
    assert all(outcome.resumed for key, outcome in outcomes.items() if "select" not in key)


async def test_more_diffs_can_be_scored_later(tmp_path: Path) -> None:
    run = ScoringRun(tmp_path)
    await run.session()
    run.config = {"top_by_message": 6, "top": 3}
    await run.session()
    assert [each["repo"] for each in run.candidates()] == ["repo2", "repo3", "repo4"]
    assert len(run.bill()) == 8 + 6


async def test_changed_prompt_scores_diffs_again_but_not_messages(tmp_path: Path) -> None:
    run = ScoringRun(tmp_path)
    await run.session()
    run.config |= {"diff_chars": 50_000}
    await run.session()
    assert len(run.bill()) == 8 + 4 + 4


async def test_refused_commit_is_dropped_in_this_session_and_tried_in_the_next(tmp_path: Path) -> None:
    def script(request: Request) -> str:
        if number_of(request) == 7:
            raise ModelRefused("not this text")
        return good_reply(request)

    run = ScoringRun(tmp_path, script)
    outcomes = await run.session()
    assert run.scores()["owner/repo7"]["message"]["problem"] == "not this text"
    shortfall = outcomes[message_key(7)].shortfall
    assert shortfall is not None
    assert (shortfall.name, shortfall.text) == ("refused", "not this text")
    assert [key for key in outcomes if "/diff/" in key] == [diff_key(number) for number in (6, 5, 4, 3)]
    run.script = good_reply
    outcomes = await run.session()
    assert run.scores()["owner/repo7"]["message"]["problem"] == ""
    assert len(run.billed_effects()) == len(set(run.billed_effects())) == 7 + 4 + 1 + 1


async def test_diff_that_is_gone_is_dropped(tmp_path: Path) -> None:
    run = ScoringRun(tmp_path, load_diff=lost_diff(4))
    await run.session()
    assert [each["repo"] for each in run.candidates()] == ["repo5", "repo6"]
    assert "is gone" in run.scores()["owner/repo4"]["diff"]["problem"]


async def test_model_that_refuses_all_chooses_nothing(tmp_path: Path) -> None:
    def script(_request: Request) -> str:
        raise ModelRefused("invalid key")

    run = ScoringRun(tmp_path, script)
    outcomes = await run.session()
    assert outcomes[BY_MESSAGE].status is Status.FAILED
    assert outcomes[BY_MESSAGE].error == (
        "8 commits of 8 could not be scored, so none is chosen; the first: invalid key; "
        "run again to score them"
    )
    assert not (tmp_path / "mining").exists()
    run.script = good_reply
    await run.session()
    assert len(run.candidates()) == 2


async def test_unreachable_provider_fails_the_job_until_the_next_session(tmp_path: Path) -> None:
    def script(request: Request) -> str:
        if number_of(request) == 2 and not is_about_diff(request):
            raise ModelUnavailable("down", unbilled=True)
        return good_reply(request)

    run = ScoringRun(tmp_path, script)
    outcomes = await run.session()
    assert outcomes[message_key(2)].status is Status.FAILED
    assert outcomes[BY_MESSAGE].status is Status.SKIPPED
    run.script = good_reply
    await run.session()
    assert len(run.candidates()) == 2
    assert len(run.billed_effects()) == len(set(run.billed_effects())) == 12
