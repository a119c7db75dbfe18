"""Runs with failing models beside good ones: the run finishes and names each failing model and its cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import CommandResult, TinyBenchmark, Workspace
from support.llm.provider import server as provider

pytestmark = pytest.mark.heavy

KEY = "sk-ant-not-a-real-key-0123456789"


def anthropic_table(url: str) -> str:
    return (
        f'provider = "anthropic"\nmodel = "some-model"\nbase_url = "{url}"\n'
        f'api_key_env = "FAKE_KEY"\nprice = {tiny_benchmark.PRICE}\n'
    )


@dataclass(frozen=True)
class FailingModelsRun:
    workspace: Workspace
    result: CommandResult
    requests: dict[str, int]


@pytest.fixture(scope="module")
def both_runs(
    tmp_path_factory: pytest.TempPathFactory, alpha: TinyBenchmark
) -> Iterator[tuple[FailingModelsRun, FailingModelsRun]]:
    """Two concurrent runs.

    The first has one good model and four that fail in different ways, the second a good model and one whose
    provider always sends Retry-After.
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
            "failing": anthropic_table(failing.url),
            "refusing": anthropic_table(refusing.url),
        }
        first = alpha.make_workspace(tmp_path_factory.mktemp("side"), models, run="budget_usd = 20.0")
        second = alpha.make_workspace(
            tmp_path_factory.mktemp("busy"),
            {"good": "quick", "busy": anthropic_table(busy.url)},
            run='time_limit = "9s"\nbudget_usd = 2.0',
        )
        for workspace in (first, second):
            workspace.env["FAKE_KEY"] = KEY
        processes = [workspace.start("--json") for workspace in (first, second)]
        results = [tiny_benchmark.wait_for_result(process, 200) for process in processes]
        requests = {"failing": len(failing.bodies), "refusing": len(refusing.bodies)}
        yield (
            FailingModelsRun(first, results[0], requests),
            FailingModelsRun(second, results[1], {"busy": len(busy.bodies)}),
        )


@pytest.fixture
def failing_run(both_runs: tuple[FailingModelsRun, FailingModelsRun]) -> FailingModelsRun:
    return both_runs[0]


@pytest.mark.timeout(300)
def test_run_with_failing_model_exits_1_and_writes_other_rules(
    failing_run: FailingModelsRun, uninterrupted_run: tuple[Workspace, CommandResult]
) -> None:
    result, uninterrupted = failing_run.result, uninterrupted_run[0]
    assert result.code == 1
    assert {name.removeprefix("good/"): text for name, text in failing_run.workspace.rules().items()} == {
        name.removeprefix("m/"): text for name, text in uninterrupted.rules().items()
    }


def test_each_failing_model_is_named_with_its_cause(
    failing_run: FailingModelsRun, alpha: TinyBenchmark
) -> None:
    jobs = failing_run.result.jobs
    causes = {}
    for model in ("good", "down", "broken", "failing", "refusing"):
        pair: list[dict[str, Any]] = [jobs[alpha.key(model, side)] for side in ("additive", "reductive")]
        assert pair[0]["cause"] == pair[1]["cause"]
        causes[model] = (pair[0]["status"], pair[0]["cause"])
    assert causes == {
        "good": ("done", None),
        "down": ("failed", "unavailable"),
        "broken": ("failed", "setup"),
        "failing": ("failed", "unavailable"),
        "refusing": ("failed", "setup"),
    }
    assert "the scripted provider is down" in jobs[alpha.key("down", "additive")]["error"]
    assert "discovery_models.py" in jobs[alpha.key("broken", "additive")]["error"]


def test_retries_are_bounded_and_do_not_multiply(failing_run: FailingModelsRun, alpha: TinyBenchmark) -> None:
    """A call is tried five times in each pass, and the job is not retried for the same reason."""
    assert failing_run.requests["failing"] == 2 * 5
    assert failing_run.requests["refusing"] <= 2
    jobs = failing_run.result.jobs
    assert {job["attempts"] for job in jobs.values()} == {1}


def test_unbilled_failures_are_not_charged(failing_run: FailingModelsRun, alpha: TinyBenchmark) -> None:
    for model in ("down", "broken", "failing", "refusing"):
        money = failing_run.result.jobs[alpha.key(model, "additive")]["money"]
        assert (money["settled_usd"], money["unknown_usd"]) == ("0", "0")
    tiny_benchmark.fold_journal(failing_run.workspace.journal(), {(): Decimal("20.0")})


def test_escapes_and_keys_of_failing_provider_are_not_printed(
    failing_run: FailingModelsRun,
) -> None:
    for text in (failing_run.result.out, failing_run.result.err):
        assert "\x1b" not in text
        assert KEY not in text
    for path in failing_run.workspace.out.rglob("*"):
        if path.is_file():
            assert KEY not in path.read_text(errors="replace"), path


def test_same_command_retries_only_failed_model(failing_run: FailingModelsRun, alpha: TinyBenchmark) -> None:
    workspace = failing_run.workspace
    again = workspace.run("--json", "--only", "discover/good/*", "--only", "discover/broken/*")
    assert again.code == 1
    assert {key for key, job in again.jobs.items() if job["resumed"]} == {
        alpha.key("good", "additive"),
        alpha.key("good", "reductive"),
    }
    assert again.jobs[alpha.key("broken", "additive")]["attempts"] == 2


def test_endless_retry_after_is_ended_by_run_time_limit(
    both_runs: tuple[FailingModelsRun, FailingModelsRun], alpha: TinyBenchmark
) -> None:
    """Waiting for a provider is no working time, so only the time limit of the run ends it."""
    workspace, result = both_runs[1].workspace, both_runs[1].result
    assert 2 <= both_runs[1].requests["busy"] <= 12
    assert result.jobs[alpha.key("good", "additive")]["status"] == "done"
    busy = result.jobs[alpha.key("busy", "additive")]
    assert busy["status"] == "timeout"
    assert "trying again in" in result.err
    assert "busy" in workspace.cli("status", "r").out


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_endless_retry_after_is_given_up_after_eight_tries(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"good": "quick", "busy": "limited"})
    result = workspace.run("--json", timeout_s=800)
    assert result.code == 1
    busy = result.jobs[alpha.key("busy", "additive")]
    assert (busy["status"], busy["cause"], busy["attempts"]) == ("failed", "rate_limit", 1)
