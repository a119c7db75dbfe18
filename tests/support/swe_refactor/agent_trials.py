"""Runs in which agents refactor the small Java project: their configs, and what the trials came to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.flows.tiny_benchmark import PRICE, Workspace
from support.refactorings.java_tools import tools_in
from support.swe_refactor.documents import document
from support.swe_refactor.tested_project import AFTER, BEFORE, SHOP, History, method

MODELS = Path(__file__).parent / "agent_models.py"
_CONFIG = """\
[run]
name = "agents"
budget_usd = 50.0
[sandbox]
{sandbox}
max = 2
[swe_refactor]
instances = "instances.json"
repositories = ["{clone}"]
[swe_refactor.java]
compile_time_limit = "1h"
test_time_limit = "1h"
{java}
[swe_refactor.java.refactoring_miner]
time_limit = "1h"
[[swe_refactor.strategies]]
kind = "agent"
"""


@dataclass(frozen=True)
class AgentSetup:
    """An agent of a run: its harness, and the function of ``agent_models.py`` that is its model."""

    harness: str
    script: str
    more: str = ""
    model: str = ""


def extract_instance(commit: str, jdk: float) -> dict[str, Any]:
    """Return the instance of the commit that extracts a method of Shop, whose tests ran with ``jdk``."""
    before = method(BEFORE, "public int total(int[] prices)")
    after, extracted = method(AFTER, "public int total(int[]"), method(AFTER, "private int sum(int[]")
    places = [(before.start_line, before.end_line), (after.start_line, after.end_line)]
    places.append((extracted.start_line, extracted.end_line))

    def code(text: str, place: tuple[int, int]) -> str:
        return "\n".join(text.splitlines()[place[0] - 1 : place[1]])

    return document(
        description="Extract Method\tprivate sum(prices int[]) : int extracted from "
        "public total(prices int[]) : int in class org.example.Shop",
        diffLocations=[
            {"filePath": SHOP, "startLine": start, "endLine": end, "startColumn": 0, "endColumn": 0}
            for start, end in places
        ],
        sourceCodeBeforeRefactoring=code(BEFORE, places[0]),
        sourceCodeAfterRefactoring="\n".join(code(AFTER, place) for place in places[1:]),
        diffSourceCodeSet=[code(AFTER, places[2])],
        filePathBefore=SHOP,
        filePathAfter=SHOP,
        commitId=commit,
        uniqueId=f"{commit}_{jdk}",
        packageNameBefore="org.example",
        classNameBefore="org.example.Shop",
        methodNameBefore="org.example.Shop#total",
        invokedMethod="",
        invokedMethodSet=[],
        sourceCodeBeforeForWhole=BEFORE,
        sourceCodeAfterForWhole=AFTER,
        compileJDK=jdk,
    )


def make_agents_run(
    folder: Path,
    agents: Mapping[str, AgentSetup],
    agents_cache: Path,
    *,
    jdks: Sequence[float] = (17,),
    sandbox: str = 'engine = "bubblewrap"\nmemory = "3GiB"',
    java: str = "",
) -> Workspace:
    """Make a folder with a clone, an instance for each JDK, and a config in which ``agents`` work on them."""
    history = History(folder / "example" / "shop")
    commit = history.commit({SHOP: AFTER})
    cache = tools_in(folder / "cache" / "codetaste", "refactoring-miner-3.1.4")
    agents_cache.mkdir(parents=True, exist_ok=True)
    (agents_cache / "agents").mkdir(exist_ok=True)
    (cache / "agents").symlink_to(agents_cache / "agents")
    instances = [extract_instance(commit, jdk) for jdk in jdks]
    (folder / "instances.json").write_text(json.dumps(instances))
    text = _CONFIG.format(sandbox=sandbox, clone=history.folder, java=java)
    for name, agent in agents.items():
        model = agent.model or f"model-{name}"
        text += (
            f'[[models]]\nid = "{model}"\nprovider = "scripted"\nmodel = "{MODELS}:{agent.script}"\n'
            f'price = {PRICE}\n[[agents]]\nid = "{name}"\nharness = "{agent.harness}"\nmodel = "{model}"\n'
            f"{agent.more}\n"
        )
    config = folder / "config.toml"
    config.write_text(text)
    return Workspace(folder, cache.parent, config, name="agents")


def trial_rows(workspace: Workspace) -> dict[str, dict[str, Any]]:
    """Return the rows of the file of trials, by agent; of several instances by agent and JDK."""
    lines = (workspace.out / "swe_refactor" / "trials.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    several = len({row["instance"] for row in rows}) > 1
    return {row["model"] + (f" {row['instance'].partition('_')[2]}" if several else ""): row for row in rows}


def answers(workspace: Workspace) -> dict[str, dict[str, Any]]:
    """Return the values of the last answers, by the same names."""
    found = {}
    for line in workspace.journal():
        if line["event"] == "ended" and line["key"].startswith("answer/") and line.get("value"):
            _, _, agent, instance = line["key"].split("/")[:4]
            found[agent, instance] = line["value"]
    several = len({instance for _, instance in found}) > 1
    return {
        agent + (f" {instance.partition('_')[2]}" if several else ""): value
        for (agent, instance), value in found.items()
    }
