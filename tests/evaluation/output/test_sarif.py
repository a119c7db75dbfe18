"""SARIF as the stock engine writes it, and what others wrote read back."""

from __future__ import annotations

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.evaluation.output.sarif import path_from_uri, render_sarif
from codetaste.evaluation.rule_set import parse_rule_set
from codetaste.evaluation.trials.coverage import read_coverage
from codetaste.evaluation.trials.untrusted_files import FileProblem
from codetaste.rules.rule import make_rule
from codetaste.rules.scan.model import Match, Scanner, ScanProblem, ScanProblemKind
from support.evaluation.trees import difference, git, regex, rule, score, text, write

RULES = [
    make_rule(rule(name, "f(...)", severity=severity)) for name, severity in (("b", "ERROR"), ("a", "INFO"))
]

paths = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1).filter(
    lambda path: not path.startswith("./")
)
odd_paths = st.binary(min_size=1).map(lambda raw: raw.replace(b"\0", b"x").decode("utf-8", "surrogateescape"))
numbers = st.integers(1, 10**6)
matches = st.builds(Match, st.sampled_from("ab"), paths | odd_paths, numbers, numbers, numbers, numbers)


@given(st.lists(matches))
def test_what_is_written_reads_back_in_the_order_of_the_engine(found: list[Match]) -> None:
    found = [match for match in found if not match.path.startswith("./")]
    told = results(render_sarif(RULES, found, [], "opengrep 1.30.0"))
    read = [(path_from_uri(str(uri)), *region, name) for name, uri, *region in told]
    assert read == sorted(
        (m.path, m.start_line, m.start_column, m.end_line, m.end_column, f"rules.{m.rule_id}") for m in found
    )


def test_the_document_has_what_the_format_asks_for() -> None:
    problems = [ScanProblem(ScanProblemKind.PARSE, "Syntax error: at \udcff", path="x\udcff.py")]
    document = json.loads(render_sarif(RULES, [Match("a", "x.py", 1, 2, 3, 4)], problems, "opengrep 1.30.0"))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["semanticVersion"]) == ("Opengrep OSS", "1.30.0")
    assert [(each["id"], each["defaultConfiguration"]["level"]) for each in driver["rules"]] == [
        ("rules.a", "note"),
        ("rules.b", "error"),
    ]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (result["ruleId"], result["message"]) == ("rules.a", {"text": "m"})
    assert place["artifactLocation"] == {"uri": "x.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 1, "endLine": 2, "startColumn": 3, "endColumn": 4}
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is True
    assert invocation["toolExecutionNotifications"][0]["descriptor"] == {"id": "parse"}


@pytest.mark.parametrize("cut", [1, 100, -2])
def test_a_truncated_file_is_refused_in_a_line(tmp_path: Path, cut: int) -> None:
    whole = render_sarif(RULES, [Match("a", "x.py", 1, 2)], [], "")
    with pytest.raises(FileProblem, match="is truncated") as error:
        covered(tmp_path, whole[:cut])
    assert "\n" not in str(error.value)


def covered(tmp_path: Path, content: bytes) -> dict[str, set[int]]:
    (tmp_path / "read.sarif").write_bytes(content)
    return read_coverage(tmp_path / "read.sarif", str(tmp_path.resolve())).lines


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"runs": {}},
        {"runs": [1]},
        {"runs": [{"results": [1]}]},
        {"runs": [{"results": [{"ruleId": "x", "locations": [1]}]}]},
        *(
            {"runs": [{"results": [{"ruleId": "x", "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": "x"}, "region": {"startLine": line}}}]}]}]}
            for line in ("1", 1.5, float("nan"), [])
        ),
    ],
)  # fmt: skip
def test_what_is_no_sarif_is_refused_in_a_line(tmp_path: Path, document: Any) -> None:
    with pytest.raises(FileProblem, match="is not SARIF"):
        covered(tmp_path, json.dumps(document).encode())


def test_published_results_without_rule_or_place_are_passed_over(tmp_path: Path) -> None:
    place = {"artifactLocation": {"uri": "./a%20b.py"}, "region": {"startLine": 3}}
    results = [
        {},
        {"ruleId": "rules.x"},
        {"ruleId": "rules.x", "locations": None},
        {"ruleId": "rules.x", "locations": [{}]},
        {"ruleId": "some.folder.x", "locations": [{"physicalLocation": place}]},
    ]
    document = {"runs": [{"results": results}, {"results": None}]}
    assert covered(tmp_path, json.dumps(document).encode()) == {"a%20b.py": {3}}


def stock(work: Path, rules: Path) -> list[tuple[object, ...]]:
    """The results of the engine of the wheel, called as published."""
    spec = find_spec("tackbox_opengrep")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the wheel tackbox-opengrep is not installed")
    program = Path(next(iter(spec.submodule_search_locations))) / "bin" / "opengrep"
    flags = ["--timeout-threshold", "0", "--timeout", "0", "--max-memory", "0", "--sarif", "--quiet"]
    said = subprocess.run(
        [program, "scan", *flags, "-f", rules, "."], cwd=work, capture_output=True, check=True
    )
    return results(said.stdout)


def results(sarif: bytes) -> list[tuple[object, ...]]:
    """Rule, place and region of each result, in the order told."""
    told = []
    for result in json.loads(sarif)["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        region = place["region"]
        corners = (region[key] for key in ("startLine", "startColumn", "endLine", "endColumn"))
        told.append((result["ruleId"], place["artifactLocation"]["uri"], *corners))
    return told


@pytest.mark.slow
def test_results_are_those_of_the_stock_engine_in_its_order(tmp_path: Path, scanner: Scanner) -> None:
    before = {"Zed.py": "old(1)\n", "sub/a.py": "old(2)\n", "gone.py": "old(3)\n"}
    after = {
        "Zed.py": "f(1); f(g(2)); f(3)\n",
        "sub/a.py": "f(\n 1\n)\nf(9)  # nosemgrep\n",
        "sub.py": "f(1)\r\nf(2)\r\n",
        "b c/ünï.py": "g(f(1))\n",
        "bad.py": "def (:\n f(1)\n",
    }
    rules = [
        rule("b", "f($X)", message="found $X"),
        rule("a", "$F(...)", severity="ERROR"),
        regex("c", "f.[0-9]"),
    ]
    base = write(tmp_path / "R", before)
    found = score(scanner, base, difference(tmp_path, before, after), rules, None)
    content = text(rules)
    made = render_sarif(parse_rule_set(content, b"").positive, found.positive_matches, (), "")
    (folder := tmp_path / "rules").mkdir()
    (folder / "rules_positive.yml").write_bytes(content)
    work = tmp_path / "work"
    git(work, "status")
    theirs = stock(work, Path("../rules/rules_positive.yml"))
    assert [(str(name).rpartition(".")[2], *rest) for name, *rest in theirs] == [
        (str(name).rpartition(".")[2], *rest) for name, *rest in results(made)
    ]
    assert len(theirs) > 10
