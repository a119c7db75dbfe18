"""A pair on a real Maven project: JDT for the developer; Maven, RefactoringMiner, Checkstyle for reviews."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codetaste.java.jdt.service import ARTIFACT_SET
from codetaste.llm.messages import Request, ToolCall, ToolResult
from codetaste.orchestration.job import Status
from support.refactorings.java_tools import tools_in
from support.swe_refactor.pair_runs import ACCEPT, improve, numbered
from support.swe_refactor.tested_project import History
from support.swe_refactor.trial_session import run_trials, shop_instance

pytestmark = [pytest.mark.anyio, pytest.mark.heavy, pytest.mark.timeout(1800)]
SUM = """\
private int sum(int[] prices) {
    int sum = 0;
    for (int price : prices) {
        sum += price;
    }
    return sum;
}"""
RIGHT = f"#####\npublic int total(int[] prices) {{\n    return sum(prices);\n}}\n\n{SUM}\n#####"
TYPO = RIGHT.replace("return sum(prices)", "return summ(prices)")
SUBTRACTS = RIGHT.replace("+= price", "-= price")
RENAMED = SUM.replace("private int sum(int[] prices)", "public int total(int[] all)").replace(
    ": prices", ": all"
)
NO_EXTRACTION = f"#####\n{RENAMED}\n\nprivate int none() {{\n    int unused = 0;\n    return 0;\n}}\n#####"
CALLERS = ToolCall("c1", "callers", {"class_name": "Shop", "method": "total"})
CLASS = ToolCall("c2", "class_body", {"name": "CornerShop"})
STRATEGY = {"kind": "multi-agent", "models": ["dev"], "reviewer": "rev", "rounds": 5}


def reviewer(request: Request) -> Any:
    return improve("Repair it.") if "rejects it" in request.messages[0].text else ACCEPT


async def test_wrong_answers_are_rejected_by_the_tools_and_corrected(tmp_path: Path) -> None:
    cache = tools_in(tmp_path / "cache", "refactoring-miner-3.1.4")
    tools_in(tmp_path / "other", ARTIFACT_SET)
    history = History(tmp_path / "owner" / "shop")
    instances = [shop_instance(history)]
    requests: list[Request] = []

    def developer(request: Request) -> Any:
        requests.append(request)
        return numbered([CALLERS, CLASS], TYPO, SUBTRACTS, NO_EXTRACTION, RIGHT)(request)

    async def run() -> Any:
        scripts = {"dev": developer, "rev": reviewer}
        return await run_trials(tmp_path, cache, history.folder, instances, [STRATEGY], scripts)

    outcomes = await run()
    assert {each.status for each in outcomes.values()} == {Status.DONE}, outcomes
    answer = next(each.value for key, each in outcomes.items() if key.startswith("answer/"))
    score = next(each.value for key, each in outcomes.items() if key.startswith("score/"))
    assert (score["outcome"], score["codebleu"]["score"] > 0.99) == ("success", True)
    details = answer["details"]
    assert (details["ended"], details["answer_of_round"], answer["turns"]) == ("accepted", 4, 5 + 4)

    looked = [each.content for each in requests[1].messages[2].content if isinstance(each, ToolResult)]
    assert "org.example.Shop#total(int[]) has 1 call." in looked[0]
    assert "new CornerShop().total(new int[] {1, 2})" in looked[0]
    assert looked[1] == "public class CornerShop extends Shop {\n}"

    findings = [{each["tool"]: each for each in one["findings"]} for one in details["rounds"]]
    good = [{name: each["good"] for name, each in one.items()} for one in findings]
    tests, miner, style = "build", "RefactoringMiner", "Checkstyle"
    assert [each[tests] for each in good] == [False, False, True, True]
    assert "Shop.java:14: cannot find symbol" in findings[0][tests]["text"]
    assert "ShopTest" in findings[1][tests]["text"]
    assert [each[miner] for each in good][2:] == [False, True]
    assert [each[style] for each in good] == [True, True, None, True]
    assert "UnusedLocalVariable" in findings[2][style]["text"]

    ledgers = {name: (tmp_path / f"{name}.ledger.jsonl").read_text() for name in ("dev", "rev")}
    again = await run()
    assert all(each.resumed for each in again.values())
    assert ledgers == {name: (tmp_path / f"{name}.ledger.jsonl").read_text() for name in ("dev", "rev")}
    index = next((cache / "java-indexes").glob("*.json"))
    assert json.loads(index.read_text())["counts"]["files"] == 4
    assert not list((cache / "java-indexes").glob("tree-*")), "the files are gone"
