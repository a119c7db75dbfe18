"""Decisions of reviewers hold in later runs: rejected descriptions are made anew, edited ones stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.flows.description_models import INSTRUCTED, OPEN
from support.flows.description_runs import (
    describe_workspace,
    description,
    prompts_of,
    undescribed_bench,
    write_texts,
)
from support.flows.tiny_benchmark import Bench, CommandResult, Row, Workspace

pytestmark = pytest.mark.heavy


@pytest.fixture
def bench(tmp_path: Path, tools: None) -> tuple[Bench, Row]:
    return undescribed_bench(tmp_path)


def decide(workspace: Workspace, folder: Path, answers: str) -> CommandResult:
    """Review the benchmark ``folder`` with one answer a line."""
    path = workspace.folder / "answers"
    path.write_text(answers)
    program = "import sys; sys.stdin = open('answers'); from codetaste.cli.app import main; main()"
    command = ["python", "-c", program, "review", str(folder), "--all", "--by", "ann"]
    return workspace.program(*command)


def test_rejected_description_of_a_run_is_made_anew_with_the_reviewers_comment(
    bench: tuple[Bench, Row], tmp_path: Path
) -> None:
    opened, row = bench
    workspace = describe_workspace(tmp_path / "work", opened, tmp_path / "cache", "learning")
    product, key = workspace.out / "describe", f"describe/{row.id}/open"
    assert workspace.run("--json").code == 0
    assert description(product, row) == f"{OPEN}\n"
    decide(workspace, product, "a\nr\nplease mention reading\n")
    refused = workspace.run()
    assert refused.code == 2
    assert "1 finished job, which cost" in refused.err
    assert "changed since: reviews (1 job)" in refused.err
    again = workspace.run("--json", "--yes")
    assert again.code == 0, again.err
    assert description(product, row) == "Improve reading from the store\n"
    assert "please mention reading" in prompts_of(workspace, key)[0]
    assert again.jobs[f"describe/{row.id}/instructed"]["resumed"]
    assert len(workspace.ledger("m")) == 3


def test_edited_description_of_a_run_stays_and_is_used(bench: tuple[Bench, Row], tmp_path: Path) -> None:
    opened, row = bench
    workspace = describe_workspace(tmp_path / "work", opened, tmp_path / "cache")
    product = workspace.out / "describe"
    assert workspace.run("--json").code == 0
    workspace.env["EDITOR"] = "sed -i s/becomes/is-called/"
    decide(workspace, product, "e\ns\n")
    edited = INSTRUCTED.replace("becomes", "is-called")
    assert description(product, row, "description.md") == edited
    again = workspace.run("--json", "--yes")
    assert again.code == 0, again.err
    assert list(again.jobs) == [f"describe/{row.id}/open"]
    assert "is-called" in prompts_of(workspace, f"describe/{row.id}/open")[0]
    assert description(product, row, "description.md") == edited
    assert len(workspace.ledger("m")) == 3


def test_rejected_description_of_the_benchmark_is_used_by_no_run(
    bench: tuple[Bench, Row], tmp_path: Path
) -> None:
    opened, row = bench
    write_texts(opened, row, instructed="Rename it.\n", open="Improve it\n")
    discover = '[discover]\nmodels = ["m"]\nbudget_usd = 1.0\n'
    workspace = describe_workspace(tmp_path / "work", opened, tmp_path / "cache", more=discover)
    decide(workspace, opened.root, "r\nvague\ns\n")
    config = workspace.config.read_text()
    workspace.config.write_text(config.replace('[describe]\nmodel = "m"\nbudget_usd = 1.0\n', ""))
    refused = workspace.run("--dry-run")
    assert refused.code == 2
    assert f"the instructed description of {row.id} was rejected by ann: let [describe] make" in refused.err
    workspace.config.write_text(config)
    dry = workspace.run("--dry-run", "--json")
    assert f"describe/{row.id}/instructed" in {job["key"] for job in dry.json["jobs"]}
    assert f"describe/{row.id}/open" not in {job["key"] for job in dry.json["jobs"]}
    decide(workspace, opened.root, "a\na\n")
    accepted = workspace.run("--dry-run", "--json", "--set", "describe.all=true")
    assert not [job["key"] for job in accepted.json["jobs"] if job["key"].startswith("describe")]
