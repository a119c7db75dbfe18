"""SARIF is rendered like the stock engine's, and published SARIF is read."""

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
from support.evaluation.trees import git, git_diff, regex_rule, render_rule_file, rule, score, write_tree

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
def test_rendered_sarif_reads_back_in_engine_order(found: list[Match]) -> None:
    found = [match for match in found if not match.path.startswith("./")]
    rows = results(render_sarif(RULES, found, [], "opengrep 1.30.0"))
    read = [(path_from_uri(str(uri)), *region, name) for name, uri, *region in rows]
    assert read == sorted(
        (m.path, m.start_line, m.start_column, m.end_line, m.end_column, f"rules.{m.rule_id}") for m in found
    )


def test_document_has_required_fields() -> None:
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
def test_truncated_sarif_is_refused_with_one_line(tmp_path: Path, cut: int) -> None:
    whole = render_sarif(RULES, [Match("a", "x.py", 1, 2)], [], "")
    with pytest.raises(FileProblem, match="is truncated") as error:
        read_lines(tmp_path, whole[:cut])
    assert "\n" not in str(error.value)


def read_lines(tmp_path: Path, content: bytes) -> dict[str, set[int]]:
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
def test_invalid_sarif_is_refused(tmp_path: Path, document: Any) -> None:
    with pytest.raises(FileProblem, match="is not SARIF"):
        read_lines(tmp_path, json.dumps(document).encode())


def test_published_results_without_rule_or_location_are_skipped(tmp_path: Path) -> None:
    place = {"artifactLocation": {"uri": "./a%20b.py"}, "region": {"startLine": 3}}
    results = [
        {},
        {"ruleId": "rules.x"},
        {"ruleId": "rules.x", "locations": None},
        {"ruleId": "rules.x", "locations": [{}]},
        {"ruleId": "some.folder.x", "locations": [{"physicalLocation": place}]},
    ]
    document = {"runs": [{"results": results}, {"results": None}]}
    assert read_lines(tmp_path, json.dumps(document).encode()) == {"a%20b.py": {3}}


def scan_with_stock_engine(work: Path, rules: Path) -> list[tuple[object, ...]]:
    """Scan with the opengrep of the wheel and the published flags; return its results."""
    spec = find_spec("tackbox_opengrep")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the wheel tackbox-opengrep is not installed")
    program = Path(next(iter(spec.submodule_search_locations))) / "bin" / "opengrep"
    flags = ["--timeout-threshold", "0", "--timeout", "0", "--max-memory", "0", "--sarif", "--quiet"]
    process = subprocess.run(
        [program, "scan", *flags, "-f", rules, "."], cwd=work, capture_output=True, check=True
    )
    return results(process.stdout)


def results(sarif: bytes) -> list[tuple[object, ...]]:
    """Rule, path and region of each result, in document order."""
    rows = []
    for result in json.loads(sarif)["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        region = place["region"]
        corners = (region[key] for key in ("startLine", "startColumn", "endLine", "endColumn"))
        rows.append((result["ruleId"], place["artifactLocation"]["uri"], *corners))
    return rows


@pytest.mark.slow
def test_results_equal_stock_engine_in_order(tmp_path: Path, scanner: Scanner) -> None:
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
        regex_rule("c", "f.[0-9]"),
    ]
    base = write_tree(tmp_path / "R", before)
    found = score(scanner, base, git_diff(tmp_path, before, after), rules, None)
    content = render_rule_file(rules)
    rendered = render_sarif(parse_rule_set(content, b"").positive, found.positive_matches, (), "")
    (folder := tmp_path / "rules").mkdir()
    (folder / "rules_positive.yml").write_bytes(content)
    work = tmp_path / "work"
    git(work, "status")
    stock_results = scan_with_stock_engine(work, Path("../rules/rules_positive.yml"))
    assert [(str(name).rpartition(".")[2], *rest) for name, *rest in stock_results] == [
        (str(name).rpartition(".")[2], *rest) for name, *rest in results(rendered)
    ]
    assert len(stock_results) > 10
