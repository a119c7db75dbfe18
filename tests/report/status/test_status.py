"""The status of a run, read from its journal, live or ended."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.errors import ConfigError, JournalError
from codetaste.orchestration.budget.cost import BudgetLimits, Cost
from codetaste.orchestration.job import JobContext
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.journal.run_lock import lock_directory
from codetaste.orchestration.session import open_session
from codetaste.orchestration.wait import Wait, WaitReason
from codetaste.report.status.job_detail import job_details
from codetaste.report.status.json import job_details_to_json, status_to_json
from codetaste.report.status.model import RunStatus
from codetaste.report.status.status import RunWatcher, find_run
from codetaste.report.status.text import render_job_details, render_status
from support.orchestration.closure_jobs import closure_job

HEADER = {"event": "journal", "format": 2}
SESSION = {"event": "session", "pid": 7, "host": "here", "limits": ["2.0", None, 60.0, None]}


def write(folder: Path, lines: Iterable[dict[str, Any]], *, at: float | None = None) -> Path:
    """Write a journal whose lines are one second apart."""
    began = time.time() - 1000 if at is None else at
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(
        json.dumps({**line, "t": began + number}) + "\n" for number, line in enumerate([HEADER, *lines])
    )
    (folder / "journal.jsonl").write_text(text)
    return folder


def job(key: str, *needs: str, lane: str = "") -> dict[str, Any]:
    return {"event": "job", "key": key, "title": key, "lane": lane, "needs": list(needs), "path": [key]}


def reserved(key: str, effect: str, usd: str, note: Any = None) -> dict[str, Any]:
    line = {"event": "reserved", "call": f"{key}/{effect}#1", "key": key, "fingerprint": "f"}
    return {**line, "effect": effect, "path": [key], "usd": usd, "tokens": 900, "note": note}


def settled(key: str, effect: str, usd: str, value: Any = None) -> dict[str, Any]:
    line = {"event": "settled", "call": f"{key}/{effect}#1", "usd": usd, "tokens": 90}
    return line if value is None else {**line, "value": value}


def ended(key: str, status: str, **more: Any) -> dict[str, Any]:
    return {"event": "ended", "key": key, "fingerprint": "f", "status": status, **more}


def poll_once(folder: Path) -> RunStatus:
    return RunWatcher(folder).poll()


def has_running_job(status: RunStatus) -> bool:
    return bool(status.jobs) and status.jobs[0].state == "running"


def has_waiting_job(status: RunStatus) -> bool:
    return has_running_job(status) and bool(status.jobs[0].waits)


async def poll_until(folder: Path, ready: Callable[[RunStatus], bool]) -> RunStatus:
    """Poll until the journal is ``ready``."""
    with anyio.fail_after(200):
        while not ready(status := await anyio.to_thread.run_sync(poll_once, folder)):  # noqa: ASYNC110
            await anyio.sleep(0.05)
    return status


@pytest.mark.anyio
async def test_status_of_live_run_has_waits_with_reason_and_start(tmp_path: Path) -> None:
    seen: list[RunStatus] = []
    began = time.time()

    async def first(ctx: JobContext) -> Json:
        async with await ctx.start_call(
            "turn-1/reply", await ctx.hold(Cost(Decimal("0.5"), 100)), note={"model": "m"}
        ) as paid:
            with ctx.waiting(Wait(WaitReason.PERMIT, "m")):
                seen.append(await poll_until(tmp_path, has_waiting_job))
            await paid.settle(Cost(Decimal("0.1"), 50), {"usage": {"input": 40, "output": 10}})
        return 1

    async def nothing(_ctx: JobContext) -> Json:
        return 2

    limits = BudgetLimits(usd=Decimal(2), wall_s=60)
    async with open_session(tmp_path, limits, capacities={"jobs": 1}) as session:
        await session.run(
            [
                closure_job(session, "first", first, session.budget, "f", lane="m"),
                closure_job(session, "second", nothing, session.budget, "f", needs=("first",)),
                closure_job(session, "third", nothing, session.budget, "f"),
            ]
        )
    (status,) = seen
    assert status.owner
    jobs = {each.key: each for each in status.jobs}
    assert {key: each.state for key, each in jobs.items()} == {
        "first": "running",
        "second": "queued",
        "third": "queued",
    }
    assert [str(each.wait) for each in jobs["first"].waits] == ["a permit of m"]
    assert began - 1 <= jobs["first"].waits[0].since <= status.at + 1
    assert [str(each.wait) for each in jobs["second"].waits] == ["first"]
    assert jobs["second"].needs == ("first",)
    assert [str(each.wait) for each in jobs["third"].waits] == ["a job permit"]
    assert (status.spend.reserved_usd, status.spend.settled_usd) == (Decimal("0.5"), Decimal(0))
    text = render_status(status)
    assert "waits for a permit of m (" in text
    assert "of $2.00, $1.50 left" in text
    after = poll_once(tmp_path)
    assert after.owner == ""
    assert after.spend.settled_usd == Decimal("0.1")
    assert all(not each.waits for each in after.jobs)
    (model,) = after.models
    assert (model.id, model.tokens["input"], model.tokens["output"]) == ("m", 40, 10)


@pytest.mark.anyio
async def test_queued_job_shows_the_resource_it_waits_for(tmp_path: Path) -> None:
    seen: list[RunStatus] = []

    async def first(_ctx: JobContext) -> Json:
        seen.append(await poll_until(tmp_path, has_running_job))
        return 1

    async def nothing(_ctx: JobContext) -> Json:
        return 2

    async with open_session(
        tmp_path, BudgetLimits(), capacities={"jobs": 3, "sandbox": 1, "cpu": 2}
    ) as session:
        # In a real run, the limits in force are journalled first.
        session.record.note({"event": "limits_applied", "limits": {"run.concurrency": 3, "sandbox.max": 1}})
        await session.run(
            [
                closure_job(session, "first", first, session.budget, "f", resources={"sandbox": 1}),
                closure_job(session, "second", nothing, session.budget, "f", resources={"sandbox": 1}),
            ]
        )
    (status,) = seen
    assert [str(each.wait) for each in status.jobs[1].waits] == ["a sandbox"]
    at_once = {each.resource: (each.in_use, each.waiting) for each in status.capacities}
    assert at_once == {"jobs": (1, 0), "sandbox": (1, 1)}


def test_status_groups_calls_by_model_id_or_job_lane(tmp_path: Path) -> None:
    lines = [
        SESSION,
        job("new", lane="m, scripted"),
        job("old", lane="o"),
        reserved("new", "a", "0.5", {"model": "m"}),
        settled("new", "a", "0.2", {"usage": {"input": 7, "cache_read": 5, "reasoning": 1}}),
        reserved("new", "b", "0.5", {"model": "n"}),
        reserved("old", "a", "0.25"),
        settled("old", "a", "0.125", {"reply": {"usage": {"input": 3, "output": 2}}, "call": "old/a#1"}),
        {"event": "price", "model": "m", "price": {}, "source": "config"},
    ]
    status = poll_once(write(tmp_path, lines))
    assert "n: $0.00 + $0.50 unknown · 1 call (1 of unknown cost)" in render_status(status)
    models = {model.id: model for model in status.models}
    assert models.keys() == {"m", "n", "o"}
    assert models["m"].spend.settled_usd == Decimal("0.2")
    assert models["m"].tokens == {"total": 90, "input": 7, "cache_read": 5, "reasoning": 1}
    assert models["m"].price_source == "config"
    assert models["n"].spend.unknown_usd == Decimal("0.5")
    assert (models["o"].tokens["input"], models["o"].tokens["output"]) == (3, 2)


def test_retries_are_counted_by_cause_for_jobs_models_and_in_all(tmp_path: Path) -> None:
    def call_retry(key: str, model: str, cause: str) -> dict[str, Any]:
        return {
            "event": "call_retry",
            "key": key,
            "model": model,
            "cause": cause,
            "error": "e",
            "delay_s": 1.0,
        }

    retry = {"event": "retry", "key": "a", "attempt": 1, "cause": "sandbox", "error": "e", "delay_s": 1.0}
    lines = [
        SESSION,
        job("a", lane="m"),
        job("b", lane="n"),
        *[call_retry("a", "m", "rate_limit")] * 3,
        call_retry("b", "n", "unavailable"),
        call_retry("b", "n", "rate_limit"),
        retry,
    ]
    status = poll_once(write(tmp_path, lines))
    assert status.retries == {"rate_limit": 4, "unavailable": 1, "sandbox": 1}
    assert {each.key: each.retries for each in status.jobs} == {
        "a": {"rate_limit": 3, "sandbox": 1},
        "b": {"unavailable": 1, "rate_limit": 1},
    }
    assert {model.id: dict(model.retries) for model in status.models} == {
        "m": {"rate_limit": 3},
        "n": {"unavailable": 1, "rate_limit": 1},
    }
    assert "retries     4 × rate limit, 1 × sandbox, 1 × unavailable" in render_status(status)


def test_status_of_thousand_jobs_fits_screen_and_lists_all_on_request(tmp_path: Path) -> None:
    keys = [f"discover/m/instance-{number}/additive" for number in range(1000)]
    lines = [SESSION, *(job(key, lane="m") for key in keys)]
    lines += [ended(key, "done") for key in keys[:900]]
    lines += [ended(key, "failed", cause="refused", error="a bad key") for key in keys[900:930]]
    status = poll_once(write(tmp_path, lines))
    listing = render_status(status).splitlines()
    assert len(listing) <= 24
    assert any(line.startswith("jobs        1000: 30 failed, 70 interrupted, 900 done") for line in listing)
    assert sum(" failed " in line and "refused: a bad key" in line for line in listing) == 6
    assert "… and 24 more (--all lists them)" in "\n".join(listing)
    assert len(render_status(status, all_jobs=True).splitlines()) > 1000
    assert len(status_to_json(status)["jobs"]) == 1000


def test_failed_jobs_are_listed_first_with_cause(tmp_path: Path) -> None:
    lines = [SESSION, job("a"), job("b"), job("c"), ended("a", "done")]
    lines += [ended("c", "failed", cause="source", error="no clone")]
    listing = render_status(poll_once(write(tmp_path, lines))).splitlines()
    listed = [line[:23] for line in listing if line.startswith("  ")]
    assert listed == ["  --  failed          c", "      interrupted     b", "  ok  done            a"]
    assert any("source: no clone" in line for line in listing)


@pytest.mark.parametrize("count", [5, 500])
def test_status_fits_the_columns_and_has_the_colours_of_endings(tmp_path: Path, count: int) -> None:
    keys = [f"infer/agent/open/plan/instance-{number}/execute" for number in range(count)]
    lines = [SESSION, *(job(key, lane="m") for key in keys)]
    shortfall = {"name": "execution_error", "text": f"exit code 1: {'word ' * 30}", "by_limit": False}
    lines += [ended(key, "done", value=1, shortfall=shortfall) for key in keys[1:]]
    lines.append(ended(keys[0], "done", value=1))
    watcher = RunWatcher(write(tmp_path / "a" / "b", lines))
    status = watcher.poll()
    text = render_status(status, 80, coloured=True)
    plain = re.sub(r"\x1b\[\d*m", "", text)
    assert plain == render_status(status, 80)
    assert max(map(len, plain.splitlines()[2:])) <= 80
    assert "\x1b[31mbad execution error\x1b[0m infer/agent/open/plan/instance-1/execute" in text
    assert ("\x1b[32mok  done           \x1b[0m infer/agent/open/plan/instance-0/" in text) is (count == 5)
    details = render_job_details(job_details(watcher, status, keys[1]), status.at, 80, coloured=True)
    assert details.startswith("\x1b[31mbad execution error\x1b[0m infer/agent/open/plan/instance-1/execute")
    assert all(len(line) <= 80 + len("\x1b[31m\x1b[0m") for line in details.splitlines())


def test_untrusted_text_is_printable_and_stays_in_its_line(tmp_path: Path) -> None:
    nasty = "\x1b[31mred\x9b2J\nnext\r\x07"
    lines = [
        {**SESSION, "host": nasty},
        job(nasty, lane=nasty),
        {"event": "wait_started", "key": nasty, "reason": "permit", "detail": nasty, "delay_s": None},
        {"event": "note", "key": nasty, "text": nasty},
        reserved(nasty, nasty, "0.1", {"model": nasty}),
        {"event": "call_retry", "key": nasty, "model": nasty, "cause": nasty, "error": nasty, "delay_s": 1.0},
        {"event": "limits_applied", "limits": {f"models.{nasty}.max_concurrency": 3, "run.concurrency": 4}},
        {"event": "price", "model": nasty, "price": {}, "source": nasty},
        ended(nasty, "failed", cause=nasty, error=nasty),
    ]
    watcher = RunWatcher(write(tmp_path, lines))
    status = watcher.poll()
    text = render_status(status) + "\n" + render_job_details(job_details(watcher, status, "*"), status.at)
    assert all(line.isprintable() for line in text.split("\n"))
    json.dumps(status_to_json(status) | job_details_to_json(job_details(watcher, status, "*")))


def test_damaged_journal_is_one_error_with_the_line(tmp_path: Path) -> None:
    write(tmp_path, [SESSION, job("a")])
    path = tmp_path / "journal.jsonl"
    path.write_text(path.read_text() + "{nonsense\n" + json.dumps({**job("b"), "t": 1.0}) + "\n")
    with pytest.raises(JournalError, match=r"journal\.jsonl, line 4: not a journal line"):
        poll_once(tmp_path)
    for bad in ({"event": "started"}, {"event": "settled", "call": "x"}, {"event": "wait_ended", "key": "a"}):
        cure = "(repair or remove it|restore the journal, or .*)"
        with pytest.raises(JournalError, match=rf"journal\.jsonl[:,] .*; {cure}$"):
            poll_once(write(tmp_path, [SESSION, bad]))


def test_emptied_journal_of_a_run_with_products_shows_no_costs(tmp_path: Path) -> None:
    write(tmp_path, [])
    assert poll_once(tmp_path).jobs == ()
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "prediction.diff").touch()
    with pytest.raises(JournalError, match="no job has started in it, but the run has outputs"):
        poll_once(tmp_path)
    (tmp_path / "journal.jsonl").write_text("")
    with pytest.raises(JournalError, match="first line is missing or damaged, but the run has outputs"):
        poll_once(tmp_path)


def test_run_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(ConfigError, match=rf"^{tmp_path}: you may not read this folder$"):
        find_run(tmp_path)


def test_time_beyond_the_calendar_is_left_out(tmp_path: Path) -> None:
    status = poll_once(write(tmp_path, [{**SESSION, "t": 1e300}, job("a")]))
    assert "session" in render_status(status)
    assert status_to_json(status)["sessions"]


def test_incomplete_last_line_is_read_at_the_next_poll(tmp_path: Path) -> None:
    write(tmp_path, [SESSION, job("a")])
    path = tmp_path / "journal.jsonl"
    line = json.dumps({**job("b"), "t": 2000.0}) + "\n"
    watcher = RunWatcher(tmp_path)
    assert len(watcher.poll().jobs) == 1
    with path.open("a") as file:
        for piece in (line[:10], line[10:]):
            assert len(watcher.poll().jobs) == 1
            file.write(piece)
            file.flush()
    assert [each.key for each in watcher.poll().jobs] == ["a", "b"]


def test_status_of_replaced_run_is_read_from_start(tmp_path: Path) -> None:
    watcher = RunWatcher(write(tmp_path, [SESSION, job("a"), job("b")]))
    assert len(watcher.poll().jobs) == 2
    write(tmp_path, [SESSION, job("c")])
    assert [each.key for each in watcher.poll().jobs] == ["c"]


def test_job_details_have_calls_waits_notes_and_files(tmp_path: Path) -> None:
    lines = [
        SESSION,
        job("a/b", lane="m"),
        {"event": "started", "key": "a/b", "attempt": 1},
        reserved("a/b", "turn-1", "0.5", {"model": "m"}),
        {"event": "wait_started", "key": "a/b", "reason": "rate_limit", "detail": "m", "delay_s": None},
        {"event": "wait_ended", "key": "a/b", "reason": "rate_limit", "detail": "m", "waited_s": 12.5},
        {"event": "wait_started", "key": "a/b", "reason": "rate_limit", "detail": "m", "delay_s": 7},
        {"event": "wait_ended", "key": "a/b", "reason": "rate_limit", "detail": "m", "waited_s": 7.5},
        settled("a/b", "turn-1", "0.2", {"usage": {"input": 7, "output": 1}}),
        {"event": "note", "key": "a/b", "text": "looks around"},
    ]
    watcher = RunWatcher(write(tmp_path, lines))
    status = watcher.poll()
    for file in ("logs/a/b.jsonl", "transcripts/a/b.jsonl"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text("{}\n")
    (each,) = job_details_to_json(job_details(watcher, status, "a/*"))["jobs"]
    (call,) = each["calls"]
    assert (call["state"], call["usd"], call["tokens"]) == ("settled", "0.2", {"input": 7, "output": 1})
    assert call["duration_s"] == 5.0
    assert each["waited_s"] == {"m: rate limit (429)": 20.0}
    assert each["notes"] == ["looks around"]
    assert each["files"] == [str(tmp_path / "logs/a/b.jsonl"), str(tmp_path / "transcripts/a/b.jsonl")]
    with pytest.raises(ConfigError, match="matches no job of this run"):
        job_details(watcher, status, "b*")


def test_jobs_show_how_long_they_took_and_running_ones_no_earlier_failure(tmp_path: Path) -> None:
    lines = [
        SESSION,
        *(job(key) for key in "abcd"),
        *({"event": "started", "key": key, "attempt": 1} for key in "abcd"),
        ended("a", "done"),
        ended("b", "failed", cause="unavailable", error="an old outage"),
        ended("c", "failed", cause="unavailable", error="an old outage"),
        # The process ends while job d runs, and the next session begins.
        *(SESSION, {"event": "resumed", "key": "a", "status": "done"}, job("b"), job("c"), job("d")),
        {"event": "started", "key": "b", "attempt": 2},
        {"event": "started", "key": "d", "attempt": 2},
        ended("d", "failed", cause="sandbox", error="a new fault"),
    ]
    lock = lock_directory(write(tmp_path, lines))
    try:
        status = poll_once(tmp_path)
    finally:
        os.close(lock)
    jobs = {each["key"]: each for each in status_to_json(status)["jobs"]}
    assert [
        (key, each["state"], each["cause"], each["error"], each["took_s"]) for key, each in jobs.items()
    ] == [
        ("a", "done", None, None, 4.0),
        ("b", "running", None, None, None),
        ("c", "queued", None, None, None),
        # Three seconds until the last line of the first session, and one of the second.
        ("d", "failed", "sandbox", "a new fault", 4.0),
    ]
    text = render_status(status)
    assert "an old outage" not in text
    assert "d · took 4s · sandbox: a new fault" in text
    assert "a · took 4s" in text
    assert re.search(r"running +b · 16m", text), "since its last start"
