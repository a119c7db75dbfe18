"""Budgets end jobs, higher budgets resume them, and only changed inputs of a result run a job again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import (
    MODELS,
    Bench,
    CommandResult,
    TinyBenchmark,
    Workspace,
    make_workspace,
)

pytestmark = pytest.mark.heavy


def billed_usd(workspace: Workspace, model: str = "m") -> Fraction:
    return sum((Fraction(line["cost_usd"]) for line in workspace.ledger(model)), Fraction(0))


def test_pass_ended_by_budget_writes_rules_and_resumes_with_more(
    tmp_path: Path, alpha: TinyBenchmark, uninterrupted_run: tuple[Workspace, CommandResult]
) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "reply"}, discover="budget_usd = 0.12")
    additive = alpha.key("m", "additive")
    result = workspace.run("--json", "--only", "*/additive")
    assert result.code == 1
    job = result.jobs[additive]
    assert job["status"] == "budget_exceeded"
    assert job["value"]["finish_reason"] == "budget_exceeded"
    assert job["value"]["rules"] > 0
    ((path, text),) = workspace.rules().items()
    assert len(YAML(typ="safe").load(text)["rules"]) == job["value"]["rules"]
    assert billed_usd(workspace) <= Fraction("0.06")
    node = ("discover", f"m/{alpha.row.id}")
    tiny_benchmark.fold_journal(
        workspace.journal(), {(): Decimal(2), node: Decimal("0.12"), (*node, additive): Decimal("0.06")}
    )
    billed_calls = workspace.ledger("m")

    same = workspace.run("--json", "--only", "*/additive")
    assert same.jobs[additive]["resumed"] is True
    assert same.jobs[additive]["status"] == "budget_exceeded"
    assert workspace.ledger("m") == billed_calls

    more = workspace.run("--json", "--only", "*/additive", "--set", "discover.budget_usd=1.0")
    assert more.code == 0
    assert more.jobs[additive]["status"] == "done"
    assert workspace.ledger("m")[: len(billed_calls)] == billed_calls
    tiny_benchmark.assert_no_call_billed_twice(workspace.ledger("m"))
    assert len(workspace.ledger("m")) == 6
    assert workspace.rules()[path] == uninterrupted_run[0].rules()[path]


def test_budget_below_one_call_buys_nothing_and_reports_shortfall(
    tmp_path: Path, alpha: TinyBenchmark
) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "reply"}, discover="budget_usd = 0.001")
    result = workspace.run("--json")
    assert {job["status"] for job in result.json["jobs"]} == {"budget_exceeded"}
    assert workspace.ledger("m") == []
    assert "$" in result.err


def test_run_budget_limits_sections_with_larger_budgets(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "endless", "n": "endless"}, run="budget_usd = 0.2")
    result = workspace.run("--json")
    assert result.code == 1
    assert "budget_exceeded" in {job["status"] for job in result.json["jobs"]}
    assert billed_usd(workspace) + billed_usd(workspace, "n") <= Fraction("0.2")
    tiny_benchmark.fold_journal(workspace.journal(), {(): Decimal("0.2")})
    assert Fraction(result.json["money"]["settled_usd"]) == billed_usd(workspace) + billed_usd(workspace, "n")


TURNS = 250


def test_pass_ended_by_time_limit_keeps_rules_and_resumes(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(
        tmp_path, {"m": "endless"}, discover='time_limit = "5s"\nbudget_usd = 500.0', run="budget_usd = 900.0"
    )
    workspace.config.write_text(
        workspace.config.read_text().replace("max_turns = 30", f"max_turns = {TURNS}")
    )
    result = workspace.run("--json", "--only", "*/additive")
    assert result.code == 1
    (job,) = result.json["jobs"]
    assert (job["status"], job["value"]["finish_reason"]) == ("timeout", "timeout")
    assert job["value"]["rules"] == 2
    assert len(workspace.rules()) == 1
    billed_calls = workspace.ledger("m")
    assert 2 < len(billed_calls) < TURNS

    more = workspace.run("--json", "--only", "*/additive", "--set", 'discover.time_limit="10m"')
    (job,) = more.json["jobs"]
    assert (job["status"], job["value"]["finish_reason"]) == ("done", "max_turns")
    assert workspace.ledger("m")[: len(billed_calls)] == billed_calls
    tiny_benchmark.assert_no_call_billed_twice(workspace.ledger("m"))
    assert len(workspace.ledger("m")) == TURNS


def test_model_without_price_is_refused_with_budget(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": f'provider = "scripted"\nmodel = "{MODELS}:reply"\n'})
    result = workspace.run()
    assert result.code == 2
    assert "models[m]" in result.err
    assert "price" in result.err
    assert not workspace.out.exists()


@pytest.fixture
def finished_run(
    tmp_path: Path, uninterrupted_run: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> Workspace:
    """A copy of the uninterrupted run, with its own benchmark and model script."""
    other, _ = uninterrupted_run
    bench = Bench(tmp_path / "moved", list(alpha.bench.rows))
    shutil.copytree(alpha.bench.root, bench.root)
    shutil.copytree(other.out, tmp_path / "runs" / "r")
    script = tmp_path / "scripts.py"
    shutil.copyfile(MODELS, script)
    # No clones: the cached trees are enough.
    bench.repos.mkdir()
    model = f'provider = "scripted"\nmodel = "{script}:slowly"\nprice = {tiny_benchmark.PRICE}\n'
    return make_workspace(tmp_path, bench, alpha.cache, {"m": model})


def resumed_flags(result: CommandResult) -> set[bool]:
    assert result.code == 0, result.err
    return {job["resumed"] for job in result.json["jobs"]}


def test_changed_paths_prices_and_limits_run_nothing_again(finished_run: Workspace) -> None:
    """The config, the benchmark and the model script have other paths than in the original run."""
    before = finished_run.ledger("m")
    other = ["discover.budget_usd=0.7", "run.budget_usd=8", "run.concurrency=3", 'discover.time_limit="7m"']
    models = [
        "models.m.price.input=1.0",
        "models.m.max_concurrency=2",
        "models.0.timeout=77",
        "sandbox.max=1",
    ]
    settings = [part for setting in (*other, *models) for part in ("--set", setting)]
    rules = finished_run.rules()
    assert resumed_flags(finished_run.run("--json", *settings)) == {True}
    assert finished_run.ledger("m") == before
    assert finished_run.rules() == rules


def test_missing_rule_file_is_rewritten_without_new_calls(finished_run: Workspace) -> None:
    before, rules = finished_run.ledger("m"), finished_run.rules()
    shutil.rmtree(finished_run.out / "discover")
    assert resumed_flags(finished_run.run("--json", "--yes")) == {True}
    assert finished_run.rules() == rules
    assert finished_run.ledger("m") == before


def test_rerun_adds_new_calls_to_earlier_cost(finished_run: Workspace) -> None:
    before = billed_usd(finished_run)
    result = finished_run.run("--json", "--rerun", "--only", "*/additive")
    assert resumed_flags(result) == {False}
    assert len(finished_run.ledger("m")) == 12 + 6
    assert Fraction(result.json["money"]["settled_usd"]) == billed_usd(finished_run) > before
    assert resumed_flags(finished_run.run("--json", "--yes")) == {True}


def test_changed_description_runs_jobs_again(finished_run: Workspace) -> None:
    (text,) = (finished_run.folder / "moved").rglob("description.md")
    text.write_text("Something else.\n")
    assert resumed_flags(finished_run.run("--json", "--yes")) == {False}
    assert len(finished_run.ledger("m")) == 24


def test_changed_open_description_runs_nothing_again(finished_run: Workspace) -> None:
    (text,) = (finished_run.folder / "moved").rglob("open_description.md")
    text.write_text("Something else.\n")
    assert resumed_flags(finished_run.run("--json")) == {True}


def test_finished_work_is_not_bought_again_unasked(finished_run: Workspace) -> None:
    changed = ("--set", "discover.max_output_tokens=9999")
    refused = finished_run.run(*changed)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(
        "codetaste: runs/r: 2 finished jobs, which cost $0.10, would be done again; "
    )
    assert "changed since: discover.max_output_tokens (2 jobs); pass --yes to do so" in refused.err
    assert len(finished_run.ledger("m")) == 12
    dry = finished_run.run("--dry-run", "--json", *changed).json
    paid = [job for job in dry["jobs"] if job["model"]]
    assert [(job["work"], job["changed"]) for job in paid] == [("again", ["discover.max_output_tokens"])] * 2
    same = finished_run.run("--dry-run", "--json").json
    assert [job["work"] for job in same["jobs"] if job["model"]] == ["done", "done"]
    both = {job["key"]: Decimal(job["spent_usd"]) for job in same["jobs"]}
    settled = [line for line in finished_run.journal() if line["event"] == "settled"]
    assert sum(both.values()) == sum(Decimal(line["usd"]) for line in settled)
    # The earlier result is used again once the change is taken back.
    assert resumed_flags(finished_run.run("--json", "--yes", *changed)) == {False}
    assert resumed_flags(finished_run.run("--json")) == {True}


def test_new_rule_engine_does_not_buy_finished_passes_unasked(finished_run: Workspace) -> None:
    journal = finished_run.out / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for line in lines:
        if "inputs" in line:
            line["inputs"]["rules.opengrep"] = "0" * 16
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    refused = finished_run.run()
    assert (refused.code, refused.out) == (2, "")
    assert "changed since: rules.opengrep (2 jobs); pass --yes to do so" in refused.err


@pytest.mark.parametrize("setting", ["discover.max_output_tokens=9999", "models.m.options.temperature=0.5"])
def test_changed_settings_of_replies_run_jobs_again(finished_run: Workspace, setting: str) -> None:
    assert resumed_flags(finished_run.run("--json", "--yes", "--set", setting)) == {False}


@pytest.mark.parametrize("turns", [2, 500])
def test_changed_maximum_of_turns_repeats_no_pass_that_it_did_not_end(
    finished_run: Workspace, turns: int
) -> None:
    assert resumed_flags(finished_run.run("--json", "--set", f"discover.max_turns={turns}")) == {True}
    assert len(finished_run.ledger("m")) == 12


def test_pass_ended_by_maximum_of_turns_continues_with_more(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick"})
    only = ("--json", "--only", "*/reductive", "--set")
    counts = []
    for turns in (1, 1, 30):
        (job,) = workspace.run(*only, f"discover.max_turns={turns}").json["jobs"]
        counts.append((job["value"]["finish_reason"], job["value"]["turns"], len(workspace.ledger("m"))))
    assert counts[:2] == [("max_turns", 1, 1)] * 2
    whole = alpha.make_workspace(tmp_path / "whole", {"m": "quick"})
    (job,) = whole.run("--json", "--only", "*/reductive").json["jobs"]
    assert counts[2] == ("finished", job["value"]["turns"], len(whole.ledger("m")))
    tiny_benchmark.assert_no_call_billed_twice(workspace.ledger("m"))


def test_changed_model_script_runs_jobs_again(finished_run: Workspace) -> None:
    script = finished_run.folder / "scripts.py"
    script.write_text(script.read_text() + "\nMORE = 1\n")
    assert resumed_flags(finished_run.run("--json", "--yes", "--only", "*/additive")) == {False}


TOOL = '''
from codetaste.agent.tool import tool

@tool
async def look(context) -> str:
    """Look."""
    return "nothing"
'''


def test_changed_tool_runs_jobs_again(finished_run: Workspace) -> None:
    tool = finished_run.folder / "mine.py"
    tool.write_text(TOOL)
    own = ["bash_explore", "register", "finish"]
    tools = ", ".join(
        f'"{one}"' for one in (*(f"codetaste.agent.rule_tools:{name}" for name in own), "mine.py:look")
    )
    command = ("--json", "--yes", "--only", "*/additive", "--set", f"discover.tools=[{tools}]")
    assert resumed_flags(finished_run.run(*command)) == {False}
    assert resumed_flags(finished_run.run(*command)) == {True}
    tool.write_text(TOOL.replace("nothing", "something"))
    assert resumed_flags(finished_run.run(*command)) == {False}


def test_changed_prompt_runs_jobs_again(finished_run: Workspace) -> None:
    """The command finds an edited copy of prompts/ instead of the original."""
    from codetaste.core.paths import resource_dir

    edited = finished_run.folder / "prompts"
    shutil.copytree(resource_dir("prompts"), edited)
    program = (
        "import sys; from pathlib import Path; import codetaste.llm.prompts as prompts; "
        f"prompts.resource_dir = lambda name: Path({str(edited)!r}); "
        "from codetaste.run.__main__ import app; sys.exit(app(sys.argv[1:]))"
    )

    def run() -> CommandResult:
        command = [sys.executable, "-W", "error", "-c", program, str(finished_run.config), "--json"]
        result = subprocess.run(
            [*command, "--yes", "--only", "*/additive"],
            cwd=finished_run.folder,
            env={**os.environ, "XDG_CACHE_HOME": str(finished_run.cache)},
            capture_output=True,
            text=True,
            check=False,
        )
        return tiny_benchmark.check_output(result.returncode, result.stdout, result.stderr)

    assert resumed_flags(run()) == {True}
    task = edited / "discover_task.md"
    task.write_text(task.read_text() + "\nTake your time.\n")
    assert resumed_flags(run()) == {False}
