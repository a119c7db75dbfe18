"""Budgets bite, raising them goes on, and only what decides a result makes a job run again."""

from __future__ import annotations

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
from support.flows.tiny_benchmark import MODELS, Bench, Ended, Place, Tiny, place


def billed(where: Place, model: str = "m") -> Fraction:
    return sum((Fraction(line["cost_usd"]) for line in where.ledger(model)), Fraction(0))


def test_pass_ended_by_budget_writes_rules_and_resumes_with_more(
    tmp_path: Path, alpha: Tiny, undisturbed: tuple[Place, Ended]
) -> None:
    where = alpha.place(tmp_path, {"m": "reply"}, discover="budget_usd = 0.036")
    additive = alpha.key("m", "additive")
    done = where.run("--json", "--only", "*/additive")
    assert done.code == 0
    job = done.jobs[additive]
    assert job["status"] == "budget_exceeded"
    assert job["value"]["finish_reason"] == "budget_exceeded"
    assert job["value"]["rules"] > 0
    ((path, text),) = where.rules().items()
    assert len(YAML(typ="safe").load(text)["rules"]) == job["value"]["rules"]
    assert billed(where) <= Fraction("0.036")
    node = ("discover", f"m/{alpha.row.id}")
    tiny_benchmark.folded(where.journal(), {(): Decimal("0.036"), node: Decimal("0.036")})
    bought = where.ledger("m")

    same = where.run("--json", "--only", "*/additive")
    assert same.jobs[additive]["resumed"] is True
    assert same.jobs[additive]["status"] == "budget_exceeded"
    assert where.ledger("m") == bought

    more = where.run("--json", "--only", "*/additive", "--set", "discover.budget_usd=1.0")
    assert more.code == 0
    assert more.jobs[additive]["status"] == "done"
    assert where.ledger("m")[: len(bought)] == bought
    tiny_benchmark.assert_nothing_bought_twice(where.ledger("m"))
    assert len(where.ledger("m")) == 6
    assert where.rules()[path] == undisturbed[0].rules()[path]


def test_budget_below_one_call_buys_nothing_and_reports_shortfall(tmp_path: Path, alpha: Tiny) -> None:
    where = alpha.place(tmp_path, {"m": "reply"}, discover="budget_usd = 0.001")
    done = where.run("--json")
    assert {job["status"] for job in done.json["jobs"]} == {"budget_exceeded"}
    assert where.ledger("m") == []
    assert "$" in done.err


def test_the_budget_of_the_run_bites_before_those_of_its_sections(tmp_path: Path, alpha: Tiny) -> None:
    where = alpha.place(tmp_path, {"m": "endless", "n": "endless"}, run="budget_usd = 0.2")
    done = where.run("--json")
    assert done.code == 0
    assert "budget_exceeded" in {job["status"] for job in done.json["jobs"]}
    assert billed(where) + billed(where, "n") <= Fraction("0.2")
    tiny_benchmark.folded(where.journal(), {(): Decimal("0.2")})
    assert Fraction(done.json["money"]["settled_usd"]) == billed(where) + billed(where, "n")


TURNS = 250


@pytest.mark.heavy
def test_pass_ended_by_time_limit_keeps_rules_and_resumes(tmp_path: Path, alpha: Tiny) -> None:
    where = alpha.place(
        tmp_path, {"m": "endless"}, discover='time_limit = "5s"\nbudget_usd = 500.0', run="budget_usd = 900.0"
    )
    where.config.write_text(where.config.read_text().replace("max_turns = 30", f"max_turns = {TURNS}"))
    done = where.run("--json", "--only", "*/additive")
    assert done.code == 0
    (job,) = done.json["jobs"]
    assert (job["status"], job["value"]["finish_reason"]) == ("timeout", "timeout")
    assert job["value"]["rules"] == 2
    assert len(where.rules()) == 1
    bought = where.ledger("m")
    assert 2 < len(bought) < TURNS

    more = where.run("--json", "--only", "*/additive", "--set", 'discover.time_limit="10m"')
    (job,) = more.json["jobs"]
    assert (job["status"], job["value"]["finish_reason"]) == ("done", "max_turns")
    assert where.ledger("m")[: len(bought)] == bought
    tiny_benchmark.assert_nothing_bought_twice(where.ledger("m"))
    assert len(where.ledger("m")) == TURNS


def test_a_model_without_a_price_refuses_to_start_under_a_budget(tmp_path: Path, alpha: Tiny) -> None:
    where = alpha.place(tmp_path, {"m": f'provider = "scripted"\nmodel = "{MODELS}:reply"\n'})
    done = where.run()
    assert done.code == 2
    assert "models[m]" in done.err
    assert "price" in done.err
    assert not where.out.exists()


@pytest.fixture
def finished(tmp_path: Path, undisturbed: tuple[Place, Ended], alpha: Tiny) -> Place:
    """A copy of the finished run, with a benchmark and a model of its own that may be changed."""
    other, _ = undisturbed
    bench = Bench(tmp_path / "moved", list(alpha.bench.rows))
    shutil.copytree(alpha.bench.root, bench.root)
    shutil.copytree(other.out, tmp_path / "runs" / "r")
    script = tmp_path / "scripts.py"
    shutil.copyfile(MODELS, script)
    # The clones are not there any more: the cached trees are enough.
    bench.repos.mkdir()
    model = f'provider = "scripted"\nmodel = "{script}:slowly"\nprice = {tiny_benchmark.PRICE}\n'
    return place(tmp_path, bench, alpha.cache, {"m": model})


def resumed(done: Ended) -> set[bool]:
    assert done.code == 0, done.err
    return {job["resumed"] for job in done.json["jobs"]}


def test_places_ports_prices_and_limits_do_not_make_anything_run_again(finished: Place) -> None:
    """The config, the benchmark and the model's file lie elsewhere than in the run that is gone on with."""
    before = finished.ledger("m")
    other = ["discover.budget_usd=0.7", "run.budget_usd=8", "run.concurrency=3", 'discover.time_limit="7m"']
    models = [
        "models.m.price.input=1.0",
        "models.m.max_concurrency=2",
        "models.0.timeout=77",
        "sandbox.max=1",
    ]
    settings = [part for setting in (*other, *models) for part in ("--set", setting)]
    rules = finished.rules()
    assert resumed(finished.run("--json", *settings)) == {True}
    assert finished.ledger("m") == before
    assert finished.rules() == rules


def test_missing_rule_file_is_rewritten_without_new_calls(finished: Place) -> None:
    before, rules = finished.ledger("m"), finished.rules()
    shutil.rmtree(finished.out / "discover")
    assert resumed(finished.run("--json")) == {True}
    assert finished.rules() == rules
    assert finished.ledger("m") == before


def test_rerun_buys_again_and_adds_to_what_was_spent(finished: Place) -> None:
    before = billed(finished)
    done = finished.run("--json", "--rerun", "--only", "*/additive")
    assert resumed(done) == {False}
    assert len(finished.ledger("m")) == 12 + 6
    assert Fraction(done.json["money"]["settled_usd"]) == billed(finished) > before
    assert resumed(finished.run("--json")) == {True}


def test_a_changed_description_runs_again(finished: Place) -> None:
    (text,) = (finished.folder / "moved").rglob("description.md")
    text.write_text("Something else.\n")
    assert resumed(finished.run("--json")) == {False}
    assert len(finished.ledger("m")) == 24


def test_a_changed_open_description_does_not(finished: Place) -> None:
    (text,) = (finished.folder / "moved").rglob("open_description.md")
    text.write_text("Something else.\n")
    assert resumed(finished.run("--json")) == {True}


@pytest.mark.parametrize("setting", ["discover.max_turns=29", "models.m.options.temperature=0.5"])
def test_changed_settings_that_decide_replies_run_again(finished: Place, setting: str) -> None:
    assert resumed(finished.run("--json", "--set", setting)) == {False}


def test_a_changed_script_of_a_model_runs_again(finished: Place) -> None:
    script = finished.folder / "scripts.py"
    script.write_text(script.read_text() + "\nMORE = 1\n")
    assert resumed(finished.run("--json", "--only", "*/additive")) == {False}


TOOL = '''
from codetaste.agent.tool import tool

@tool
async def look(context) -> str:
    """Look."""
    return "nothing"
'''


def test_a_changed_tool_runs_again(finished: Place) -> None:
    tool = finished.folder / "mine.py"
    tool.write_text(TOOL)
    own = ["bash_explore", "register", "finish"]
    tools = ", ".join(
        f'"{one}"' for one in (*(f"codetaste.agent.rule_tools:{name}" for name in own), "mine.py:look")
    )
    command = ("--json", "--only", "*/additive", "--set", f"discover.tools=[{tools}]")
    assert resumed(finished.run(*command)) == {False}
    assert resumed(finished.run(*command)) == {True}
    tool.write_text(TOOL.replace("nothing", "something"))
    assert resumed(finished.run(*command)) == {False}


def test_a_changed_prompt_runs_again(finished: Place) -> None:
    """An installation whose prompts/ was edited: a copy of it, found in place of the real one."""
    from codetaste.core.paths import resource_dir

    edited = finished.folder / "prompts"
    shutil.copytree(resource_dir("prompts"), edited)
    program = (
        "import sys; from pathlib import Path; import codetaste.llm.prompts as prompts; "
        f"prompts.resource_dir = lambda name: Path({str(edited)!r}); "
        "from codetaste.run.__main__ import app; sys.exit(app(sys.argv[1:]))"
    )

    def run() -> Ended:
        command = [sys.executable, "-W", "error", "-c", program, str(finished.config), "--json"]
        done = subprocess.run(
            [*command, "--only", "*/additive"],
            cwd=finished.folder,
            env={**os.environ, "XDG_CACHE_HOME": str(finished.cache)},
            capture_output=True,
            text=True,
            check=False,
        )
        return tiny_benchmark.ended(done.returncode, done.stdout, done.stderr)

    assert resumed(run()) == {True}
    task = edited / "discover_task.md"
    task.write_text(task.read_text() + "\nTake your time.\n")
    assert resumed(run()) == {False}
