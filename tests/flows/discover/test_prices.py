"""Prices of models and their sources: in the dry run, in the journal and in the result."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import TinyBenchmark

TABLE = f"genai-prices {version('genai-prices')}"
SONNET = 'provider = "anthropic"\nmodel = "claude-sonnet-4-5-20250929"\n'
SCRIPTED = (
    f'provider = "scripted"\nmodel = "{tiny_benchmark.MODELS}:quick"\n'
    'price_as = "anthropic/claude-sonnet-4-5"\n'
)


def test_a_dry_run_shows_each_price_and_its_source(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick", "sonnet": SONNET})
    result = workspace.run("--dry-run")
    assert result.code == 0
    lines = result.out.splitlines()
    (own,) = [line for line in lines if line.startswith("  m: ")]
    assert "input $3" in own
    assert own.endswith("by config")
    (known,) = [line for line in lines if line.startswith("  sonnet: ")]
    assert "above 200000 prompt tokens input $6" in known
    assert known.endswith(f"by {TABLE} anthropic/claude-sonnet-4-5")
    prices = workspace.run("--dry-run", "--json").json["prices"]
    assert prices["m"]["source"] == "config"
    assert prices["m"]["price"]["cache_write"] == "3.75"
    assert prices["sonnet"]["price"]["above"][0]["tokens"] == 200_000


def test_retired_model_and_other_price_are_named(tmp_path: Path, alpha: TinyBenchmark) -> None:
    price = "price = { input = 1.0, output = 5.0, cache_read = 0.1 }\n"
    old = f'provider = "anthropic"\nmodel = "claude-opus-4-1"\n{price}'
    workspace = alpha.make_workspace(tmp_path, {"m": "quick", "old": old})
    retired = "models[old].model: claude-opus-4-1 retired on 2026-08-05; current: claude-"
    cheap = (
        "models[old].price: input 1.0 instead of 15, output 5.0 instead of 75, cache_read 0.1 instead of 1.5"
    )
    for found in (workspace.run("--dry-run").out, workspace.cli("config", "check", "config.toml").err):
        assert retired in found
        assert cheap in found
    notes = workspace.run("--dry-run", "--json").json["notes"]
    assert [note.startswith(wanted) for note, wanted in zip(notes, (retired, cheap), strict=True)] == [
        True,
        True,
    ]


def test_model_without_price_rejects_dollar_budget(tmp_path: Path, alpha: TinyBenchmark) -> None:
    typo = 'provider = "anthropic"\nmodel = "claude-sonet-4-5"\n'
    for limits in ({"discover": ""}, {"run": ""}):
        result = alpha.make_workspace(tmp_path, {"m": typo, "sonnet": SONNET}, **limits).run("--dry-run")
        assert result.code == 2
        (message,) = result.err.splitlines()
        assert "models[m].price: not known" in message
        assert "did you mean 'claude-sonnet-4-5'?" in message
        assert "write price = {" in message
    free = alpha.make_workspace(tmp_path, {"m": typo}, run="", discover="").run("--dry-run")
    assert free.code == 0
    assert f"m: no price: {TABLE} has no 'claude-sonet-4-5'" in free.out
    assert free.out.splitlines()[-1].endswith("no budget limits what they cost")


@pytest.mark.heavy
def test_session_journals_prices_and_price_change_buys_nothing(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": SCRIPTED})
    result = workspace.run("--json")
    assert result.code == 0
    source = f"{TABLE} anthropic/claude-sonnet-4-5"
    assert result.json["prices"]["m"]["source"] == source
    (priced,) = [line for line in workspace.journal() if line["event"] == "price"]
    assert (priced["model"], priced["source"]) == ("m", source)
    assert priced["price"]["output"] == "15"
    settled = tiny_benchmark.count_steps(workspace.journal())
    billed = sum(1 for _ in workspace.ledger("m"))
    again = workspace.run("--set", "models.m.price={ input = 9, output = 9 }", "--json")
    assert again.code == 2  # price and price_as exclude each other
    workspace.config.write_text(
        workspace.config.read_text().replace(SCRIPTED.splitlines()[2], "price = { input = 9, output = 9 }")
    )
    again = workspace.run("--json")
    assert again.code == 0
    sources = [line["source"] for line in workspace.journal() if line["event"] == "price"]
    assert sources == [source, "config"]
    assert tiny_benchmark.count_steps(workspace.journal()) == settled
    assert len(workspace.ledger("m")) == billed
    assert again.json["money"]["settled_usd"] == result.json["money"]["settled_usd"]
