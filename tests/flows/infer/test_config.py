"""Faults of agents and tracks are reported before anything starts; trials are planned as configured."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from codetaste.benchmark.benchmark import open_benchmark
from codetaste.run.config import read_config
from codetaste.run.plan import plan_flows
from support.flows.tiny_benchmark import CommandResult, TinyBenchmark, Workspace
from support.flows.trial_runs import ALL, agent_table, make_trial_workspace, model_table, track_table

pytestmark = pytest.mark.heavy


def config_faults(result: CommandResult) -> list[str]:
    assert result.code == 2, result.out + result.err
    assert result.out == ""
    return [line.partition("config.toml: ")[2] for line in result.err.splitlines() if "config.toml: " in line]


@pytest.mark.parametrize(
    ("provider", "hint"), [('provider = "scripted"', ", scripted"), ('provider = "anthropic"', "")]
)
def test_trials_of_scripted_models_only_are_shown_as_scripted(
    tmp_path: Path, alpha: TinyBenchmark, provider: str, hint: str
) -> None:
    more = model_table("unscripted", "coder").replace('provider = "scripted"', provider)
    tables = more + agent_table("b", "unscripted") + track_table("open/plan", 'agents = ["b"]')
    config = read_config(make_trial_workspace(tmp_path, alpha, more=tables).config)
    plan = plan_flows(config, open_benchmark(alpha.bench.root).select(), ["*/b/*"])
    assert {step.title.partition(" by ")[2] for step in plan.steps} == {f"b{hint}"}


def test_config_faults_are_all_reported_one_line_each(tmp_path: Path, alpha: TinyBenchmark) -> None:
    more = "\n".join(
        [
            agent_table("a", "m"),
            agent_table("b", "mm"),
            track_table("open/plan", 'agents = ["c"]\n'),
            track_table("open/direct"),
            '[[tracks]]\ntrack = "open"\nmode = "multiplan"\njudge = "juge"\n',
        ]
    )
    workspace = make_trial_workspace(tmp_path, alpha, more=more)
    assert config_faults(workspace.run()) == [
        "agents[a].id: used twice",
        "agents[b].model: no [[models]] has the id 'mm' (did you mean 'm'?)",
        "tracks[1].agents: no [[agents]] has the id 'c' (known: a, b)",
        "tracks[3].judge: no [[models]] has the id 'juge' (known: m)",
        "tracks[2]: tracks[0] already has open/direct for the agent 'a'; to run more trials set attempts",
        "tracks[2]: tracks[0] already has open/direct for the agent 'b'; to run more trials set attempts",
    ]
    assert not workspace.out.exists()


SINGLE_FAULTS = {
    "no variables for the own loop": (
        '[[agents]]\nid = "b"\nharness = "codetaste"\nmodel = "m"\nenv = { A = "b" }',
        'agents[b]: env is not for harness "codetaste"',
    ),
    "budgets are of a trial or of a step": (
        '[[tracks]]\ntrack = "open"\nmode = "plan"\nbudgets = "steps"',
        "tracks[1].budgets: Input should be 'trial' or 'step'",
    ),
    "multiplan needs a judge": (
        '[[tracks]]\ntrack = "open"\nmode = "multiplan"',
        'tracks[1]: the mode "multiplan" needs a judge',
    ),
    "only multiplan has a judge": (
        '[[tracks]]\ntrack = "open"\nmode = "plan"\njudge = "m"',
        'tracks[1]: only the mode "multiplan" has a judge',
    ),
    "unknown track": (
        '[[tracks]]\ntrack = "closed"',
        "tracks[1].track: Input should be 'instructed' or 'open'",
    ),
    "unknown mode": (
        '[[tracks]]\ntrack = "open"\nmode = "both"',
        "tracks[1].mode: Input should be 'direct', 'plan' or 'multiplan'",
    ),
    "no attempt": (
        '[[tracks]]\ntrack = "open"\nmode = "plan"\nattempts = 0',
        "tracks[1].attempts: Input should be greater than or equal to 1",
    ),
    "too many attempts": (
        '[[tracks]]\ntrack = "open"\nmode = "plan"\nplan_attempts = 4',
        "tracks[1].plan_attempts: Input should be less than or equal to 3",
    ),
    "no agents": (
        '[[tracks]]\ntrack = "open"\nmode = "plan"\nagents = []',
        "tracks[1].agents: the list should have at least 1 item",
    ),
    "no duration": (
        '[[tracks]]\ntrack = "open"\nmode = "plan"\nplan_time_limit = "soon"',
        "tracks[1].plan_time_limit: 'soon' is not a duration",
    ),
    "a slash in an id": (
        '[[agents]]\nid = "a/b"\nharness = "codetaste"\nmodel = "m"',
        "agents[a/b].id: String should match pattern",
    ),
    "unknown key": (
        '[[agents]]\nid = "b"\nharness = "codetaste"\nmodel = "m"\nbudget = 3',
        "agents[b].budget: unknown key (did you mean 'budget_usd'?)",
    ),
    "a version of our own loop": (
        '[[agents]]\nid = "b"\nharness = "codetaste"\nmodel = "m"\nversion = "1"',
        'agents[b]: version is not for harness "codetaste"',
    ),
    "turns of a CLI agent": (
        '[[agents]]\nid = "b"\nharness = "codex"\nmodel = "m"\nmax_turns = 3',
        'agents[b]: max_turns is for harness "codetaste"',
    ),
    "negative budget": (
        '[[agents]]\nid = "b"\nharness = "codetaste"\nmodel = "m"\nbudget_usd = -1',
        "agents[b].budget_usd: -1 is not an amount of US dollars",
    ),
    "no harness": ('[[agents]]\nid = "b"\nmodel = "m"', "agents[b].harness: missing"),
    "unknown harness": (
        '[[agents]]\nid = "b"\nharness = "claude-cod"\nmodel = "m"',
        "agents[b].harness 'claude-cod': neither an agent that comes with codetaste nor a folder",
    ),
    "unknown release": (
        '[[agents]]\nid = "b"\nharness = "codex"\nmodel = "m"\nversion = "../1"',
        "agents[b].version '../1': codex has no such release; tested releases: 0.77.0, 0.169.0",
    ),
    "unknown option": (
        '[[agents]]\nid = "b"\nharness = "codex"\nmodel = "m"\noptions = { effort = "medium" }',
        "agents[b].options.effort: unknown option",
    ),
}


@pytest.mark.parametrize("name", SINGLE_FAULTS)
def test_single_config_fault_names_key(tmp_path: Path, alpha: TinyBenchmark, name: str) -> None:
    table, message = SINGLE_FAULTS[name]
    workspace = make_trial_workspace(tmp_path, alpha, more=table)
    [fault] = config_faults(workspace.run("--dry-run"))
    assert fault.startswith(message), fault


REMOTE = '[[models]]\nid = "r"\nprovider = "{}"\nmodel = "some-model"\nbase_url = "http://127.0.0.1:9"\n{}\n'


def test_cli_agent_needs_model_with_its_protocol(tmp_path: Path, alpha: TinyBenchmark) -> None:
    price = "price = { input = 1.0, output = 1.0 }"
    more = REMOTE.format("anthropic", price) + agent_table("b", "r", harness="codex")
    [fault] = config_faults(make_trial_workspace(tmp_path, alpha, more=more).run("--dry-run"))
    assert fault == (
        "agents[b].model: codex speaks the protocol of provider 'openai', "
        "but the model 'r' has the provider 'anthropic'"
    )
    more = REMOTE.format("anthropic", price) + agent_table("b", "r", harness="claude-code")
    assert make_trial_workspace(tmp_path, alpha, more=more).run("--dry-run").code == 0


def test_model_without_price_cannot_enforce_trial_budget(tmp_path: Path, alpha: TinyBenchmark) -> None:
    more = (
        REMOTE.format("openai-chat", "")
        + agent_table("b", "r")
        + track_table("open/multiplan").replace('"judge"', '"r"')
    )
    [fault] = config_faults(make_trial_workspace(tmp_path, alpha, more=more).run("--dry-run"))
    assert fault.startswith("models[r].price: not known, so no budget in US dollars can hold")


def test_unused_agent_needs_nothing(tmp_path: Path, alpha: TinyBenchmark) -> None:
    more = REMOTE.format("openai-chat", "") + agent_table("b", "r", harness="nowhere")
    workspace = make_trial_workspace(tmp_path, alpha, track='agents = ["a"]', more=more)
    assert workspace.run("--dry-run").code == 0


@pytest.fixture
def descriptions(alpha: TinyBenchmark) -> Iterator[dict[str, Path]]:
    """The paths of the tiny benchmark's descriptions, which are restored at the end."""
    folder = alpha.bench.root / "assets/descriptions" / alpha.row.path
    files = {name: folder / name for name in ("description.md", "open_description.md")}
    texts = {path: path.read_text() for path in files.values()}
    yield files
    for path, text in texts.items():
        path.write_text(text)


def test_missing_description_is_named_in_the_error(
    tmp_path: Path, alpha: TinyBenchmark, descriptions: dict[str, Path]
) -> None:
    descriptions["open_description.md"].unlink()
    assert make_trial_workspace(tmp_path / "1", alpha, ("instructed/direct",)).run("--dry-run").code == 0
    result = make_trial_workspace(tmp_path / "2", alpha, ("open/plan",)).run("--dry-run")
    assert result.code == 2
    assert f"the open description of {alpha.row.id} cannot be read" in result.err
    descriptions["description.md"].write_text(" \n")
    result = make_trial_workspace(tmp_path / "3", alpha, ("open/multiplan",)).run("--dry-run")
    assert f"the open description of {alpha.row.id} cannot be read" in result.err
    assert f"the instructed description of {alpha.row.id} is empty" in result.err


def test_trials_are_product_of_agents_tracks_instances_attempts(tmp_path: Path, alpha: TinyBenchmark) -> None:
    more = "\n".join(
        [
            model_table("n", "coder"),
            agent_table("b", "n", "budget_usd = 3.5\ntime_limit = '2h'"),
            '[[tracks]]\ntrack = "instructed"\nattempts = 2\nagents = ["b"]\n',
        ]
    )
    workspace = make_trial_workspace(tmp_path, alpha, ("open/multiplan",), more=more, run="")
    planned = workspace.run("--dry-run", "--json").json
    row = alpha.row.id
    assert [trial["key"] for trial in planned["trials"]] == [
        f"infer/a/open/multiplan/{row}",
        f"infer/b/open/multiplan/{row}",
        f"infer/b/instructed/direct/{row}",
        f"infer/b/instructed/direct/{row}/attempt-2",
    ]
    assert [trial["budget_usd"] for trial in planned["trials"]] == ["2.0", "3.5", "3.5", "3.5"]
    assert Decimal(planned["worst_case_usd"]) == Decimal("12.5")
    jobs = {job["key"]: job for job in planned["jobs"]}
    assert len(jobs) == 1 + 3 + 3 + 1 + 1
    assert jobs[f"infer/b/open/multiplan/{row}/judge"]["model"] == "judge"
    assert jobs[f"infer/b/open/multiplan/{row}/execute"]["model"] == "n"
    message = workspace.run("--dry-run").out
    assert "3 trials: $3.50 and 2h00m at most for each\n1 trial: $2.00 and 5m00s at most\n" in message
    assert "they can cost $12.50 at most; 4 trials work 6h05m at most, one after the other" in message


def test_default_budget_and_time_limit_match_the_papers(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, ALL[:2], agent="")
    [one, _] = workspace.run("--dry-run", "--json").json["trials"]
    assert (Decimal(one["budget_usd"]), one["time_limit_s"]) == (Decimal(11), 5400.0)


@pytest.mark.parametrize("budgets", ["trial", "step"])
def test_limits_are_of_the_trial_or_of_each_step(tmp_path: Path, alpha: TinyBenchmark, budgets: str) -> None:
    tracks = ("instructed/direct", "instructed/plan", "open/multiplan")
    agent, track = "budget_usd = 2.0\ntime_limit = '20m'", f'budgets = "{budgets}"\nplan_time_limit = "5m"\n'
    config = read_config(make_trial_workspace(tmp_path, alpha, tracks, agent=agent, track=track).config)
    plan = plan_flows(config, open_benchmark(alpha.bench.root).select())
    trial_limits = [(trial.limits.usd, trial.limits.working_s) for trial in plan.trials]
    step_limits = {(step.kind, step.limits.usd, step.limits.working_s) for step in plan.steps}
    worst = [trial.worst_case for trial in plan.trials]
    if budgets == "trial":
        assert trial_limits == [(2, 1200)] * 3
        assert step_limits == {("plan", None, 300), ("judge", None, None), ("execute", None, None)}
        assert worst == [(2, 1200)] * 3
    else:
        assert trial_limits == [(None, None)] * 3
        assert step_limits == {("plan", 2, 300), ("judge", 2, 1200), ("execute", 2, 1200)}
        assert worst == [(2, 1200), (4, 2400), (6, 3600)]
    assert plan.worst_case_usd(config) == sum(usd for usd, _ in worst)


def test_only_selects_trial_steps_and_their_needs(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, ("open/direct", "open/multiplan"))
    keys = [job["key"] for job in dry_run_jobs(workspace, "*/judge")]
    trial = f"infer/a/open/multiplan/{alpha.row.id}"
    assert keys == [f"sources/{alpha.row.id}", f"{trial}/plan", f"{trial}/judge"]
    assert workspace.run("--only", f"{trial}/jugde").code == 2


def dry_run_jobs(workspace: Workspace, only: str) -> list[dict[str, str]]:
    jobs: list[dict[str, str]] = workspace.run("--dry-run", "--json", "--only", only).json["jobs"]
    return jobs
