"""The rule sets of three published instances can be registered by one agent within the default limits.

The model plays the published rules, one or two a call, and fills its other turns with long answers, so that
each pass has eighty turns and fills its window several times.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from support.flows.tiny_benchmark import PRICE, Workspace
from support.llm.provider import server as provider

TURNS = 80
WINDOW = 200_000
PATHS = {
    "99designs__gqlgen-d5c9f896": "99designs/gqlgen/d5c9f896",
    "aws__aws-cli-20315462": "aws/aws-cli/20315462",
    "koajs__koa-ef467caa": "koajs/koa/ef467caa",
}
FILES = {"additive": "rules_positive.yml", "reductive": "rules_negative.yml"}
LOOK = (
    "find . -type f | sort | head -400; "
    "find . -type f | sort | xargs cat 2>/dev/null | tail -c +{} | head -c 40000"
)


def read_rules(path: Path) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = YAML(typ="safe").load(path.read_text())["rules"]
    return rules


def steps_of(rules: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """All rules in their order, as many a call as the turns ask for; the other turns look at much code."""
    each = -(-len(rules) // (TURNS - 20))
    calls = [
        (
            "register",
            {"rules": json.dumps({"rules": [without_counts(rule) for rule in rules[at : at + each]]})},
        )
        for at in range(0, len(rules), each)
    ]
    looks = TURNS - 1 - len(calls)
    steps: list[tuple[str, dict[str, Any]]] = []
    for number in range(max(looks, len(calls))):
        steps += [("bash_explore", {"command": LOOK.format(1 + 30_000 * number)})] if number < looks else []
        steps += calls[number : number + 1]
    return [*steps, ("finish", {})]


def without_counts(rule: dict[str, Any]) -> dict[str, Any]:
    """The rule as an agent submits it: the counts in the metadata are added when it is registered."""
    return {key: value for key, value in rule.items() if key != "metadata"}


@dataclass
class Player:
    """Answers as a model that finds the published rules."""

    descriptions: dict[str, str]
    steps: dict[tuple[str, str], list[tuple[str, dict[str, Any]]]]
    largest: int = 0
    answers: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    async def handle(self, exchange: provider.Exchange) -> None:
        body = exchange.body
        prompt = provider.count_usage(body, [])["input_tokens"]
        assert prompt + body["max_tokens"] <= WINDOW
        self.largest = max(self.largest, prompt)
        task = json.dumps(body["messages"][0]["content"])
        (instance,) = [name for name, text in self.descriptions.items() if text in task]
        system = json.dumps(body["system"])
        key = instance, "reductive" if "**reductive**" in system else "additive"
        last = body["messages"][-1]["content"]
        results = [block for block in last if isinstance(block, dict) and "tool_use_id" in block]
        turn = 1 + int(results[-1]["tool_use_id"].rpartition("_")[2]) if results else 0
        if results:
            self.answers.setdefault(key, []).append(json.dumps(results[-1]["content"]))
        name, arguments = self.steps[key][turn]
        call = {"type": "tool_use", "id": f"toolu_{turn}", "name": name, "input": arguments}
        await provider.send_reply(exchange, call, stop="tool_use")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_all_published_rules_are_registered_in_one_session(
    tmp_path: Path, published_data: Path, clones: Path, bubblewrap: Path
) -> None:
    rules = {
        (name, side): read_rules(published_data / "assets/rules" / path / file)
        for name, path in PATHS.items()
        for side, file in FILES.items()
    }
    assert sum(map(len, rules.values())) == 287
    descriptions = {
        name: json.dumps(
            (published_data / "assets/descriptions" / path / "description.md").read_text()[:300]
        )[1:-1]
        for name, path in PATHS.items()
    }
    player = Player(descriptions, {key: steps_of(each) for key, each in rules.items()})
    with provider.serving() as server:
        server.default = player.handle
        config = tmp_path / "config.toml"
        config.write_text(
            f'[run]\nname = "r"\n[benchmark]\npath = "{published_data}"\nrepos = "{clones}"\n'
            f"instances = {json.dumps(list(PATHS))}\n"
            f'[[models]]\nid = "m"\nprovider = "anthropic"\nmodel = "plays"\nbase_url = "{server.url}"\n'
            f'api_key_env = "PLAYER_KEY"\ncontext_window = {WINDOW}\nprice = {PRICE}\n'
            '[discover]\nmodels = ["m"]\n'
        )
        workspace = Workspace(tmp_path, tmp_path / "cache", config, env={"PLAYER_KEY": "sk-none"})
        result = workspace.run("--json", timeout_s=1700)
    assert result.code == 0, result.err[-3000:]
    notes = [line for line in workspace.journal() if line["event"] == "note"]
    rejected = [line["text"] for line in notes if ": rejected (" in line["text"]]
    shortened = sum("is shortened" in line["text"] for line in notes)
    turns = {job["key"]: job["value"]["turns"] for job in result.json["jobs"]}
    print(f"turns {turns}; largest prompt {player.largest}; shortened {shortened}; {result.json['wall_s']} s")  # noqa: T201
    print(*rejected, sep="\n")  # noqa: T201
    assert rejected == []
    for (name, side), wanted in rules.items():
        found = read_rules(workspace.out / "discover/m/assets/rules" / PATHS[name] / FILES[side])
        assert [rule["id"] for rule in found] == [rule["id"] for rule in wanted], (name, side)
        for ours, theirs in zip(found, wanted, strict=True):
            counts = ("nr_refactored_patterns", "nr_legacy_patterns")
            assert [ours["metadata"][one] for one in counts] == [theirs["metadata"][one] for one in counts], (
                ours
            )
    assert set(turns.values()) == {TURNS}
    assert shortened >= len(turns)
