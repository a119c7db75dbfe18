"""A run with ``[describe]`` writes the descriptions that a benchmark lacks, in the published layout."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from support.flows import description_models, tiny_benchmark, trial_runs
from support.flows.description_models import INSTRUCTED, LEAKING, OPEN
from support.flows.description_runs import (
    describe_workspace,
    description,
    prompts_of,
    undescribed_bench,
    write_texts,
)
from support.flows.tiny_benchmark import Bench, Row, Workspace


@pytest.fixture
def bench(tmp_path: Path, tools: None) -> tuple[Bench, Row]:
    return undescribed_bench(tmp_path)


def workspace_of(bench: Bench, tmp_path: Path, script: str = "good", **more: str) -> Workspace:
    return describe_workspace(tmp_path / "work", bench, tmp_path / "cache", script, **more)


def test_instance_without_descriptions_gets_both_and_the_product_is_a_benchmark(
    bench: tuple[Bench, Row], tmp_path: Path
) -> None:
    opened, row = bench
    workspace = workspace_of(opened, tmp_path)
    result = workspace.run("--json")
    assert result.code == 0, result.err
    product = workspace.out / "describe"
    assert description(product, row, "description.md") == INSTRUCTED
    assert description(product, row) == f"{OPEN}\n"
    assert set(result.jobs) == {f"describe/{row.id}/instructed", f"describe/{row.id}/open"}
    assert result.jobs[f"describe/{row.id}/open"]["result"] == f"{len(OPEN)} characters (1 reply)"
    shown = workspace.cli("benchmark", "show", row.id, "--benchmark", str(product), "--json")
    assert shown.json["descriptions"] == {"instructed": INSTRUCTED.strip(), "open": OPEN}
    assert not (opened.root / "assets").exists()
    again = workspace.run("--json")
    assert [job["resumed"] for job in again.json["jobs"]] == [True, True]
    assert len(workspace.ledger("m")) == 2


def test_prompt_has_what_people_wrote_and_the_golden_patch(bench: tuple[Bench, Row], tmp_path: Path) -> None:
    opened, row = bench
    change = {
        "pull_requests": [{"number": 7, "title": "Strict fetching", "body": "It closes #3."}],
        "issues": [{"number": 3, "title": "Lax fetching", "body": "Too lax for us."}],
    }
    write_texts(opened, row, change=json.dumps(change))
    workspace = workspace_of(opened, tmp_path)
    assert workspace.run("--json").code == 0
    (prompt,) = prompts_of(workspace, f"describe/{row.id}/instructed")
    for text in ("Rename fetch", "Strict fetching", "It closes #3.", "Too lax for us.", "+def fetch_new(key"):
        assert text in prompt
    (open_prompt,) = prompts_of(workspace, f"describe/{row.id}/open")
    assert "+def fetch_new" not in open_prompt


@pytest.mark.heavy
@pytest.mark.parametrize("by_config", [True, False])
def test_long_patch_is_cut_for_config_or_model_and_every_file_stays_visible(
    tmp_path: Path, tools: None, by_config: bool
) -> None:
    opened, row = undescribed_bench(tmp_path, "gamma")
    clone = opened.repos / "tiny" / "gamma"
    lines = "".join(f"VALUE_{number} = {list(range(60))}\n" for number in range(10))
    files = {f"many/file_{number}.py": lines for number in range(12)}
    golden = tiny_benchmark.commit(clone, files)
    opened.rows[0] = Row("gamma", row.base, golden)
    opened.write()
    script = "good" if by_config else "narrow"
    limits = "budget_usd = 1.0\n" + ("diff_chars = 4000" if by_config else "diff_chars = 20000")
    workspace = workspace_of(opened, tmp_path, script, describe=limits)
    result = workspace.run("--json")
    assert result.code == 0, result.err
    (prompt,) = prompts_of(workspace, f"describe/{row.id}/instructed")
    assert all(name in prompt for name in files)
    assert len(prompt) < 10_000
    effects = [line["name"] for line in workspace.journal() if line["event"] == "effect"]
    assert effects == ([] if by_config else ["cut-1", "cut-2"])
    assert len(workspace.ledger("m")) == 2


def test_leaking_sentence_is_answered_with_the_findings(bench: tuple[Bench, Row], tmp_path: Path) -> None:
    opened, row = bench
    workspace = workspace_of(opened, tmp_path, "leaky_once")
    assert workspace.run("--json").code == 0
    assert description(workspace.out / "describe", row) == f"{OPEN}\n"
    _, again = prompts_of(workspace, f"describe/{row.id}/open")
    assert 'it gives away symbol \\"fetch_new\\" (pack/' in again
    assert "it gives away decision" in again


@pytest.mark.heavy
def test_instance_whose_sentences_all_leak_is_named_as_failed_and_keeps_its_instructed_one(
    bench: tuple[Bench, Row], tmp_path: Path
) -> None:
    opened, row = bench
    workspace = workspace_of(opened, tmp_path, "leaky", describe="budget_usd = 1.0\ntries = 2")
    result = workspace.run("--json")
    assert result.code == 1
    failed = result.jobs[f"describe/{row.id}/open"]
    assert (failed["status"], failed["cause"]) == ("failed", "malformed")
    assert "no usable open description in 2 replies; the last one: it gives away symbol" in failed["error"]
    assert LEAKING not in str(list((workspace.out / "describe").rglob("*.md")))
    assert description(workspace.out / "describe", row, "description.md") == INSTRUCTED
    assert not (workspace.out / "describe/assets/descriptions" / row.path / "open_description.md").exists()
    assert len(workspace.ledger("m")) == 3
    again = workspace.run("--json")
    assert again.jobs[f"describe/{row.id}/open"]["status"] == "failed"
    assert len(workspace.ledger("m")) == 3
    more = workspace.run("--json", "--set", "describe.tries=3")
    assert more.code == 1
    assert len(workspace.ledger("m")) == 4


@pytest.mark.heavy
def test_existing_descriptions_stay_unless_all_are_made_anew(
    bench: tuple[Bench, Row], tmp_path: Path
) -> None:
    opened, row = bench
    write_texts(opened, row, instructed="Rename fetch_old to fetch_new.\n")
    workspace = workspace_of(opened, tmp_path)
    result = workspace.run("--json")
    assert list(result.jobs) == [f"describe/{row.id}/open"]
    product = workspace.out / "describe"
    assert description(product, row, "description.md") == "Rename fetch_old to fetch_new.\n"
    assert "Rename fetch_old" in prompts_of(workspace, f"describe/{row.id}/open")[0]
    write_texts(opened, row, open="Improve it\n")
    nothing = workspace.run("--set", 'run.name="s"')
    assert nothing.code == 2
    assert "nothing to do: all descriptions are there" in nothing.err
    every = workspace.run("--json", "--set", 'run.name="s"', "--set", "describe.all=true")
    assert set(every.jobs) == {f"describe/{row.id}/instructed", f"describe/{row.id}/open"}
    assert description(tmp_path / "work/runs/s/describe", row, "description.md") == INSTRUCTED


@pytest.mark.heavy
def test_budget_ends_a_description_and_a_larger_one_continues_it(
    bench: tuple[Bench, Row], tmp_path: Path
) -> None:
    opened, row = bench
    limits = "budget_usd = 0.032\nmax_output_tokens = 1024"
    workspace = workspace_of(opened, tmp_path, "expensive", describe=limits)
    result = workspace.run("--json")
    assert result.code == 1
    assert result.jobs[f"describe/{row.id}/instructed"]["status"] == "budget_exceeded"
    assert result.jobs[f"describe/{row.id}/open"]["status"] == "skipped"
    node = ("describe", row.id)
    tiny_benchmark.fold_journal(workspace.journal(), {node: Decimal("0.032")})
    assert len(workspace.ledger("m")) == 1
    more = workspace.run("--json", "--set", "describe.budget_usd=1.0")
    assert more.code == 0, more.err
    assert len(workspace.ledger("m")) == 6
    tiny_benchmark.assert_no_call_billed_twice(workspace.ledger("m"))


@pytest.mark.heavy
def test_unknown_model_and_missing_instructed_description_are_named(
    bench: tuple[Bench, Row], tmp_path: Path
) -> None:
    opened, row = bench
    workspace = workspace_of(opened, tmp_path)
    unknown = workspace.run("--set", 'describe.model="n"')
    assert unknown.code == 2
    assert "describe.model: no [[models]] has the id 'n'" in unknown.err
    alone = workspace.run("--set", 'describe.tracks=["open"]')
    assert alone.code == 2
    assert (
        f'{row.id} has no instructed description that the open one can be made of; add "instructed"'
        in alone.err
    )
    write_texts(opened, row, change='{"issues": [{"number": "many"}]}')
    broken = workspace.run()
    assert broken.code == 2
    assert "change.json: issues.0.number: " in broken.err


@pytest.mark.heavy
def test_rules_are_discovered_of_descriptions_of_the_same_run(
    bench: tuple[Bench, Row], tmp_path: Path
) -> None:
    opened, row = bench
    discover = '[discover]\nmodels = ["m"]\nbudget_usd = 1.0\nmax_turns = 5\n'
    workspace = workspace_of(opened, tmp_path, "with_rules", more=discover)
    dry = workspace.run("--dry-run", "--json")
    needs = {job["key"]: job["needs"] for job in dry.json["jobs"]}
    passed = f"discover/m/{row.id}/additive"
    assert f"describe/{row.id}/instructed" in needs[passed]
    assert f"describe/{row.id}/open" not in needs[passed]
    result = workspace.run("--json", "--only", "discover/*")
    assert result.code == 0, result.err
    assert set(result.jobs) == {f"describe/{row.id}/instructed", passed, f"discover/m/{row.id}/reductive"}
    assert "`fetch_old` becomes `fetch_new`" in prompts_of(workspace, passed)[0]
    product = workspace.out / "discover" / "m"
    assert description(product, row, "description.md") == INSTRUCTED
    again = workspace.run("--json")
    assert again.code == 0
    assert again.jobs[passed]["resumed"]
    assert description_models.OPEN in description(product, row)


@pytest.mark.heavy
def test_trials_of_both_tracks_get_the_descriptions_of_the_same_run(
    bench: tuple[Bench, Row], tmp_path: Path
) -> None:
    opened, row = bench
    tables = "\n".join(
        [
            '[sandbox]\nengine = "bubblewrap"\nmax = 2',
            trial_runs.model_table("coder", "coder"),
            trial_runs.model_table("judge", "judge"),
            trial_runs.agent_table("a", "coder", "budget_usd = 2.0\ntime_limit = '5m'"),
            *(trial_runs.track_table(name) for name in trial_runs.ALL),
        ]
    )
    workspace = workspace_of(opened, tmp_path, run="budget_usd = 20.0", more=tables)
    result = workspace.run("--json")
    assert result.code == 0, result.err
    folder = workspace.out / "transcripts/infer/a"
    texts = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.jsonl")}
    assert {name for name, text in texts.items() if "`fetch_old` becomes" in text} == {
        f"instructed/direct/{row.id}/execute.jsonl",
        f"open/multiplan/{row.id}/judge.jsonl",
    }
    assert {name for name, text in texts.items() if OPEN in text} == {
        f"open/direct/{row.id}/execute.jsonl",
        f"open/plan/{row.id}/plan.plan-attempt-1.jsonl",
        f"open/multiplan/{row.id}/plan.plan-attempt-1.jsonl",
    }
