"""A fault of a model's set-up has one cause in every flow and mode, one line in the summary, and no score."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codetaste.evaluation.trials.read import read_outputs
from codetaste.evaluation.trials.records import TrialStatus
from flows.test_evaluate import write_rules
from support.flows import tiny_benchmark
from support.flows.description_runs import describe_workspace, undescribed_bench
from support.flows.tiny_benchmark import Bench, TinyBenchmark
from support.flows.trial_runs import ALL, make_trial_workspace
from support.llm.provider import server as provider

KEY = "sk-not-a-real-key"
SCRIPT = "def reply(request):\n    return {}['no such step']\n"


@pytest.fixture
def refusing() -> Iterator[provider.Server]:
    with provider.serving() as server:
        server.default = provider.status(401)
        yield server


def remote_table(url: str) -> str:
    return (
        f'provider = "anthropic"\nmodel = "some-model"\nbase_url = "{url}"\n'
        f'api_key_env = "FAKE_KEY"\nprice = {tiny_benchmark.PRICE}\n'
    )


def replace_model(config: Path, name: str, table: str) -> None:
    """Give the scripted model ``name`` of a config another provider."""
    head, begin, rest = config.read_text().partition(f'[[models]]\nid = "{name}"\n')
    _, end, after = rest.partition(f"price = {tiny_benchmark.PRICE}\n")
    config.write_text(f"{head}{begin}{table}{after}")
    assert begin
    assert end


@pytest.mark.timeout(300)
def test_wrong_key_is_infrastructure_in_every_mode(
    tmp_path: Path, alpha: TinyBenchmark, bubblewrap: Path, refusing: provider.Server
) -> None:
    bench = Bench(tmp_path / "ruled")
    bench.add()
    write_rules(bench)
    ruled = TinyBenchmark(bench, alpha.cache)
    workspace = make_trial_workspace(
        tmp_path, ruled, ALL, more='[discover]\nmodels = ["m"]\nbudget_usd = 1.0\n[evaluate]'
    )
    replace_model(workspace.config, "m", remote_table(refusing.url))
    workspace.env["FAKE_KEY"] = KEY
    result = workspace.run("--json")
    assert result.code == 1
    failed = [job for job in result.json["jobs"] if job["key"].partition("/")[0] in {"discover", "infer"}]
    assert len(failed) == 6
    assert {(job["status"], job["cause"]) for job in failed} == {("failed", "setup")}
    [line] = {job["error"] for job in failed}
    assert line.startswith("models[m].api_key_env: ")
    assert "HTTP 401" in line
    assert len(refusing.bodies) <= 4, "further jobs of the model ask no more"
    trials = [each for each in read_outputs(workspace.out).records if not each.pseudo]
    assert {(each.scores.status, each.scores.ifr) for each in trials} == {(TrialStatus.INFRASTRUCTURE, None)}
    assert {each["mean"] for each in result.json["comparison"]["estimates"]} <= {None}
    text = workspace.run()
    assert text.code == 1
    assert [found for found in text.out.splitlines() if "models[m]" in found] == [f"  --  6 jobs: {line}"]


@pytest.mark.timeout(300)
def test_judge_with_wrong_key_leaves_no_score(
    tmp_path: Path, alpha: TinyBenchmark, bubblewrap: Path, refusing: provider.Server
) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, ["open/multiplan"])
    replace_model(workspace.config, "judge", remote_table(refusing.url))
    workspace.env["FAKE_KEY"] = KEY
    result = workspace.run("--json")
    assert result.code == 1
    [job] = result.json["jobs"]
    assert (job["status"], job["cause"]) == ("failed", "setup")
    assert job["error"].startswith("models[judge].api_key_env: ")
    [trial] = read_outputs(workspace.out).records
    assert trial.scores.status is TrialStatus.INFRASTRUCTURE


@pytest.mark.timeout(300)
def test_raising_script_is_named_and_mended_by_the_next_session(
    tmp_path: Path, alpha: TinyBenchmark, bubblewrap: Path
) -> None:
    bench, _ = undescribed_bench(tmp_path / "bench")
    workspace = describe_workspace(tmp_path, bench, alpha.cache)
    good = workspace.config.read_text()
    script = tmp_path / "broken.py"
    script.write_text(SCRIPT)
    replace_model(
        workspace.config,
        "m",
        f'provider = "scripted"\nmodel = "{script}:reply"\nprice = {tiny_benchmark.PRICE}\n',
    )
    failed = workspace.run()
    assert failed.code == 1
    line = f"failed: models[m].model: the script failed: KeyError: 'no such step' ({script}:2)"
    assert line in " ".join(failed.out.split())
    [ended] = [line for line in workspace.journal() if line.get("cause") == "setup" and "error" in line]
    assert ended["traceback"].startswith("Traceback")
    workspace.config.write_text(good)
    assert workspace.run().code == 0
