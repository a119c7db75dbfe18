"""Models side by side, some of which fail all the time: the run finishes and says which and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import Ended, Place, Tiny
from support.llm.provider import server as provider

pytestmark = pytest.mark.heavy

KEY = "sk-ant-not-a-real-key-0123456789"


def loopback(url: str) -> str:
    return (
        f'provider = "anthropic"\nmodel = "some-model"\nbase_url = "{url}"\n'
        f'api_key_env = "FAKE_KEY"\nprice = {tiny_benchmark.PRICE}\n'
    )


@dataclass(frozen=True)
class SideBySide:
    where: Place
    done: Ended
    requests: dict[str, int]


@pytest.fixture(scope="module")
def both_runs(
    tmp_path_factory: pytest.TempPathFactory, alpha: Tiny
) -> Iterator[tuple[SideBySide, SideBySide]]:
    """Two runs at once, which mostly wait.

    Five models side by side: one works, four fail in their own ways. And two, one of which is asked to wait
    for ever.
    """
    hostile = {"type": "error", "error": {"type": "api_error", "message": f"\x1b[31mdown\nkey {KEY} [bold]x"}}
    with provider.serving() as failing, provider.serving() as refusing, provider.serving() as busy:
        failing.default = provider.status(500, hostile)
        refusing.default = provider.status(401)
        busy.default = provider.status(429, retry_after="1")
        models = {
            "good": "reply",
            "down": "down",
            "broken": "broken",
            "failing": loopback(failing.url),
            "refusing": loopback(refusing.url),
        }
        first = alpha.place(tmp_path_factory.mktemp("side"), models, run="budget_usd = 20.0")
        second = alpha.place(
            tmp_path_factory.mktemp("busy"),
            {"good": "quick", "busy": loopback(busy.url)},
            run='time_limit = "9s"\nbudget_usd = 2.0',
        )
        for where in (first, second):
            where.env["FAKE_KEY"] = KEY
        processes = [where.start("--json") for where in (first, second)]
        ends = [tiny_benchmark.finished(process, 100) for process in processes]
        asked = {"failing": len(failing.bodies), "refusing": len(refusing.bodies)}
        yield SideBySide(first, ends[0], asked), SideBySide(second, ends[1], {"busy": len(busy.bodies)})


@pytest.fixture
def side_by_side(both_runs: tuple[SideBySide, SideBySide]) -> SideBySide:
    return both_runs[0]


@pytest.mark.timeout(150)
def test_run_with_failing_model_exits_1_and_writes_other_rules(
    side_by_side: SideBySide, undisturbed: tuple[Place, Ended]
) -> None:
    done, other = side_by_side.done, undisturbed[0]
    assert done.code == 1
    assert {name.removeprefix("good/"): text for name, text in side_by_side.where.rules().items()} == {
        name.removeprefix("m/"): text for name, text in other.rules().items()
    }


def test_each_failing_model_is_named_with_its_cause(side_by_side: SideBySide, alpha: Tiny) -> None:
    jobs = side_by_side.done.jobs
    causes = {}
    for model in ("good", "down", "broken", "failing", "refusing"):
        pair: list[dict[str, Any]] = [jobs[alpha.key(model, side)] for side in ("additive", "reductive")]
        assert pair[0]["cause"] == pair[1]["cause"]
        causes[model] = (pair[0]["status"], pair[0]["cause"])
    assert causes == {
        "good": ("done", None),
        "down": ("failed", "unavailable"),
        "broken": ("failed", "refused"),
        "failing": ("failed", "unavailable"),
        "refusing": ("failed", "refused"),
    }
    assert "the scripted provider is down" in jobs[alpha.key("down", "additive")]["error"]
    assert "discovery_models.py" in jobs[alpha.key("broken", "additive")]["error"]


def test_retries_are_bounded_and_do_not_multiply(side_by_side: SideBySide, alpha: Tiny) -> None:
    """Five tries of a call of either pass, and the job is not tried again for the same reason."""
    assert side_by_side.requests == {"failing": 2 * 5, "refusing": 2}
    jobs = side_by_side.done.jobs
    assert {job["attempts"] for job in jobs.values()} == {1}


def test_what_failed_is_not_charged_where_it_was_certainly_not_billed(
    side_by_side: SideBySide, alpha: Tiny
) -> None:
    for model in ("down", "broken", "refusing"):
        money = side_by_side.done.jobs[alpha.key(model, "additive")]["money"]
        assert (money["settled_usd"], money["unknown_usd"]) == ("0", "0")
    tiny_benchmark.folded(side_by_side.where.journal(), {(): Decimal("20.0")})


def test_no_terminal_escape_and_no_key_of_a_failing_provider_gets_through(side_by_side: SideBySide) -> None:
    for text in (side_by_side.done.out, side_by_side.done.err):
        assert "\x1b" not in text
        assert KEY not in text
    for path in side_by_side.where.out.rglob("*"):
        if path.is_file():
            assert KEY not in path.read_text(errors="replace"), path


def test_the_same_command_tries_again_only_what_failed(side_by_side: SideBySide, alpha: Tiny) -> None:
    where = side_by_side.where
    again = where.run("--json", "--only", "discover/good/*", "--only", "discover/broken/*")
    assert again.code == 1
    assert {key for key, job in again.jobs.items() if job["resumed"]} == {
        alpha.key("good", "additive"),
        alpha.key("good", "reductive"),
    }
    assert again.jobs[alpha.key("broken", "additive")]["attempts"] == 2


def test_endless_retry_after_is_ended_by_run_time_limit(
    both_runs: tuple[SideBySide, SideBySide], alpha: Tiny
) -> None:
    """Waiting for a provider is no working time, so only the wall clock can end it."""
    where, done = both_runs[1].where, both_runs[1].done
    assert 2 <= both_runs[1].requests["busy"] <= 12
    assert done.jobs[alpha.key("good", "additive")]["status"] == "done"
    busy = done.jobs[alpha.key("busy", "additive")]
    assert busy["status"] == "timeout"
    assert "trying again in" in done.err
    assert "busy" in where.cli("status", "r").out


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_endless_retry_after_is_given_up_after_eight_tries(tmp_path: Path, alpha: Tiny) -> None:
    where = alpha.place(tmp_path, {"good": "quick", "busy": "limited"})
    done = where.run("--json", timeout_s=800)
    assert done.code == 1
    busy = done.jobs[alpha.key("busy", "additive")]
    assert (busy["status"], busy["cause"], busy["attempts"]) == ("failed", "rate_limit", 1)
