"""Eighty turns with full answers under a window of 200,000 tokens, also killed: nothing found is lost.

A provider on the loopback counts tokens by itself and refuses a prompt beyond its window, as real ones do.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import PRICE, Bench, CommandResult, Row, TinyBenchmark, Workspace
from support.llm.provider import server as provider

pytestmark = pytest.mark.heavy

TURNS = 80
WINDOW = 200_000
RULES = 12
KILLS = 4
BIG = "data/big.txt"
NAMES = [f"part_{number}" for number in range(RULES)]
BASE = {
    **{f"pack/{name}.py": f"def {name}_old(x):\n    return x\n\n\n{name}_old(1)\n" for name in NAMES},
    BIG: "".join(f"{number:05d} this is a line of a file that fills an answer\n" for number in range(4000)),
}
GOLDEN = {path: text.replace("_old(", "_new(") for path, text in BASE.items()}


def rule(name: str, side: str) -> dict[str, Any]:
    return {
        "id": f"calls-{name}-{side}",
        "message": "m",
        "severity": "INFO",
        "languages": ["python"],
        "pattern": f"{name}_{side}(...)",
    }


def rules_text(side: str) -> str:
    """A rules file in the published layout, with the counts of both trees."""
    counts = {"nr_refactored_patterns": int(side == "new"), "nr_legacy_patterns": int(side == "old")}
    return json.dumps({"rules": [{**rule(name, side), "metadata": counts} for name in NAMES]})


def discovery_steps(side: str) -> list[tuple[str, dict[str, Any]]]:
    """A rule every sixth turn; all other turns but the last fill their answers."""
    steps = []
    for turn in range(TURNS - 1):
        number, rest = divmod(turn, 6)
        if rest == 0 and number < RULES:
            steps.append(("register", {"rules": json.dumps({"rules": [rule(NAMES[number], side)]})}))
        else:
            steps.append(("bash_explore", {"command": f"tail -n +{turn + 1} {BIG}"}))
    return [*steps, ("finish", {})]


def coding_steps() -> list[tuple[str, dict[str, Any]]]:
    """An edit every sixth turn; all other turns but the last fill their answers."""
    steps = []
    for turn in range(TURNS - 1):
        number, rest = divmod(turn, 6)
        if rest == 0 and number < RULES:
            command = f"sed -i s/_old/_new/g pack/{NAMES[number]}.py; cat {BIG}"
        else:
            command = f"tail -n +{turn + 1} {BIG}"
        steps.append(("bash", {"command": command}))
    return steps


def last_turn(messages: list[dict[str, Any]]) -> int:
    """The turn whose answers end the conversation, by the id of its call; -1 before the first one."""
    content = messages[-1]["content"]
    ids = [block["tool_use_id"] for block in content if isinstance(block, dict) and "tool_use_id" in block]
    return int(ids[-1].rpartition("_")[2]) if ids else -1


@dataclass
class Played:
    """What the provider saw: the largest prompt that it took, and how often it refused one."""

    largest: int = 0
    refused: int = 0
    answered: Counter[str] = field(default_factory=Counter)

    async def handle(self, exchange: provider.Exchange) -> None:
        body = exchange.body
        system = json.dumps(body.get("system", ""))
        job = "reductive" if "**reductive**" in system else "additive" if "**additive**" in system else "code"
        turn = last_turn(body["messages"]) + 1
        prompt = provider.count_usage(body, [])["input_tokens"]
        if prompt + body["max_tokens"] > WINDOW:
            self.refused += 1
            text = f"prompt is too long: {prompt} tokens > {WINDOW} maximum"
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
            await provider.status(400, error)(exchange)
            return
        self.largest = max(self.largest, prompt)
        self.answered[f"{job} {turn}"] += 1
        steps = (
            discovery_steps({"additive": "new", "reductive": "old"}[job]) if job != "code" else coding_steps()
        )
        if turn == len(steps):
            await provider.send_reply(exchange, provider.text("All parts are renamed."))
            return
        name, arguments = steps[turn]
        call = {"type": "tool_use", "id": f"toolu_{turn}", "name": name, "input": arguments}
        await provider.send_reply(exchange, call, stop="tool_use")


def model_table(url: str, window: int | None) -> str:
    known = f"context_window = {window}\n" if window else ""
    return (
        f'provider = "anthropic"\nmodel = "long-model"\nbase_url = "{url}"\n'
        f'api_key_env = "LONG_KEY"\nprice = {PRICE}\n{known}'
    )


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory, alpha: TinyBenchmark) -> TinyBenchmark:
    """An instance with twelve files to change, a file that fills answers, and a rule for each change."""
    bench = Bench(tmp_path_factory.mktemp("parts"))
    row = bench.add("parts", BASE, GOLDEN)
    folder = bench.root / "assets/rules" / row.path
    folder.mkdir(parents=True)
    (folder / "rules_positive.yml").write_text(rules_text("new"))
    (folder / "rules_negative.yml").write_text(rules_text("old"))
    return TinyBenchmark(bench, alpha.cache)


def make_workspace(folder: Path, bench: Bench, model: str, sections: str) -> Workspace:
    folder.mkdir()
    config = folder / "config.toml"
    config.write_text(
        f'[run]\nname = "r"\nbudget_usd = 90\n[benchmark]\npath = "{bench.root}"\nrepos = "{bench.repos}"\n'
        f'[sandbox]\nengine = "bubblewrap"\n[[models]]\nid = "m"\n{model}\n{sections}\n'
    )
    return Workspace(folder, bench.folder / "cache", config, env={"LONG_KEY": "sk-none"})


DISCOVERY = '[discover]\nmodels = ["m"]\nbudget_usd = 80'
CODING = (
    '[[agents]]\nid = "a"\nharness = "codetaste"\nmodel = "m"\nbudget_usd = 80\n'
    '[[tracks]]\ntrack = "open"\nmode = "direct"\n[evaluate]'
)


def run_killed(workspace: Workspace, steps: int, kills: int) -> CommandResult:
    """Kill the run some times, spread over its steps, and let it finish."""
    rng = random.Random(7)
    for number in range(kills):
        process = workspace.start("--json")
        tiny_benchmark.wait_for_progress(process, workspace.out, steps * (number + rng.random()) / kills)
        tiny_benchmark.kill(process)
    return workspace.run("--json")


def play(
    folder: Path, parts: TinyBenchmark, sections: str, window: int | None, kills: int
) -> Mapping[str, Any]:
    """Run both passes, or the trial, against the provider; return what came out."""
    played = Played()
    with provider.serving() as server:
        server.default = played.handle
        workspace = make_workspace(folder, parts.bench, model_table(server.url, window), sections)
        jobs = 2 if sections == DISCOVERY else 1
        result = run_killed(workspace, 2 * TURNS * jobs, kills) if kills else workspace.run("--json")
        with server.lock:
            billed = sum(
                (Fraction(3 * one.prompt + 15 * one.output, 10**6) for one in server.bill), Fraction(0)
            )
    assert result.code == 0, result.err
    money = result.json["money"]
    assert (
        Fraction(money["settled_usd"])
        <= billed
        <= Fraction(money["settled_usd"]) + Fraction(money["unknown_usd"])
    )
    tiny_benchmark.assert_no_finished_job_ran_twice(workspace.journal())
    notes = [line["text"] for line in workspace.journal() if line["event"] == "note"]
    # Only the calls that a kill interrupted were answered twice.
    twice = sum(count - 1 for count in played.answered.values())
    assert twice <= kills * jobs
    return {
        "workspace": workspace,
        "result": result,
        "played": played,
        "shortened": sum("is shortened" in note for note in notes),
    }


def rule_ids(workspace: Workspace, row: Row, side: str) -> list[str]:
    path = workspace.out / "discover/m/assets/rules" / row.path / f"rules_{side}.yml"
    return [
        line.split(": ")[1]
        for line in path.read_text().splitlines()
        if line.startswith(("- id: ", "  - id: "))
    ]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("window", "kills"), [(WINDOW, KILLS), (None, 0)])
def test_all_rules_of_eighty_full_turns_are_published(
    tmp_path: Path, parts: TinyBenchmark, window: int | None, kills: int
) -> None:
    run = play(tmp_path / "run", parts, DISCOVERY, window, kills)
    workspace, played = run["workspace"], run["played"]
    for job in run["result"].json["jobs"]:
        assert (job["value"]["finish_reason"], job["value"]["turns"]) == ("finished", TURNS)
        assert job["value"]["rules"] == RULES
    assert rule_ids(workspace, parts.row, "positive") == [f"calls-{name}-new" for name in NAMES]
    assert rule_ids(workspace, parts.row, "negative") == [f"calls-{name}-old" for name in NAMES]
    assert run["shortened"] >= 4
    assert WINDOW // 2 < played.largest <= WINDOW
    assert (played.refused > 0) is (window is None)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("window", "kills"), [(WINDOW, KILLS), (None, 0)])
def test_patch_of_eighty_full_turns_is_scored(
    tmp_path: Path, parts: TinyBenchmark, window: int | None, kills: int
) -> None:
    run = play(tmp_path / "run", parts, CODING, window, kills)
    workspace = run["workspace"]
    folder = workspace.out / "outputs/open/direct" / parts.row.path / "a"
    metadata = json.loads((folder / "inference_metadata.json").read_text())
    assert (metadata["finish_reason"], metadata["additional"]["turns"]) == ("success", TURNS)
    changed = [
        line for line in (folder / "prediction.diff").read_text().splitlines() if line.startswith("+++ ")
    ]
    assert changed == [f"+++ b/pack/{name}.py" for name in sorted(NAMES)]
    scores = json.loads((folder / "evaluation/scores.json").read_text())
    assert (scores["status"], scores["ifr"]) == ("scored", 1.0)
    assert run["shortened"] >= 2
    assert (run["played"].refused > 0) is (window is None)


@dataclass
class Shrinking(Played):
    """A provider that from one turn on finds any prompt too long, as after a change of the model."""

    until: int = 14

    async def handle(self, exchange: provider.Exchange) -> None:
        if last_turn(exchange.body["messages"]) + 1 < self.until:
            await super().handle(exchange)
            return
        self.refused += 1
        text = "prompt is too long: 1000 tokens > 10 maximum"
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
        await provider.status(400, error)(exchange)


@pytest.mark.parametrize("sections", [DISCOVERY, CODING], ids=["discovery", "coding"])
def test_full_window_keeps_what_was_found_and_more_turns_buy_nothing(
    tmp_path: Path, parts: TinyBenchmark, sections: str
) -> None:
    played = Shrinking()
    with provider.serving() as server:
        server.default = played.handle
        workspace = make_workspace(tmp_path / "run", parts.bench, model_table(server.url, WINDOW), sections)
        result = workspace.run("--json")
        refused_before = played.refused
        key = "discover.max_turns" if sections == DISCOVERY else "agents.a.max_turns"
        again = workspace.run("--json", "--set", f"{key}=300")
    assert (result.code, again.code) == (1, 1), result.err
    assert played.refused == refused_before, "no request is sent again"
    paid = [job for job in again.json["jobs"] if job["model"]]
    assert {(job["ending"], job["resumed"]) for job in paid} == {("context full", True)}
    if sections == DISCOVERY:
        assert rule_ids(workspace, parts.row, "positive") == [f"calls-{name}-new" for name in NAMES[:3]]
        assert rule_ids(workspace, parts.row, "negative") == [f"calls-{name}-old" for name in NAMES[:3]]
    else:
        folder = workspace.out / "outputs/open/direct" / parts.row.path / "a"
        scores = json.loads((folder / "evaluation/scores.json").read_text())
        assert (scores["status"], scores["ifr"]) == ("scored", 3 / RULES)
