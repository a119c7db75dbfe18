"""CPU of 1,099 trials of SWE-Refactor with simple prompts and an instant model, all but Java.

Each instance is an extraction in a class of 400 lines, in a commit of its own of a made-up project with 300
files. The model answers at once. What Java does is stubbed: the build of the files before, compilation and
tests (each passes), and RefactoringMiner (it finds the extraction). All the rest is real: reading the file of
instances, planning, prompts, answers, files from git, the check, CodeBLEU, journal, rows and tables. ::

    python perf/strategy_trials.py [--trials 1099] [--rounds 3]
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import anyio
from measure import Report, arguments, machine, versions
from repositories import git, import_history

from codetaste.refactorings.model import CodeRange, Detection, Purity, Refactoring
from codetaste.run import execute
from codetaste.run.plan import RunOptions, plan_run
from codetaste.run.signals import StopRequest
from codetaste.swe_refactor.score.tested_answer import TestedAnswer, TestOutcome
from codetaste.swe_refactor.trials import open as opening
from codetaste.swe_refactor.trials import score_answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.report.summary import Summary

MAX_CPU_MS = 30.0
_FILES, _METHODS = 300, 38
_PATH = "src/main/java/made/Shop.java"
_CONFIG = """
[run]
name = "trials"
[[models]]
id = "instant"
provider = "scripted"
model = "answers.py:reply"
price = { input = 1.0, output = 1.0 }
[swe_refactor]
instances = "instances.json"
repositories = ["made/project"]
[[swe_refactor.strategies]]
kind = "simple"
budget_usd = 1.0
"""
_ANSWERS = """
def reply(request):
    name = request.messages[0].text.partition("on the method ")[2].partition(" ")[0]
    number = name.removeprefix("total")
    return f'''#####
public int {name}(int[] prices, int tax) {{
    int sum = sum{number}(prices);
    return sum + sum * tax / {number};
}}

private int sum{number}(int[] prices) {{
    int sum = 0;
    for (int price : prices) {{
        sum += price;
    }}
    return sum;
}}
#####'''
"""


def _method(number: int) -> str:
    return (
        f"    /** The sum with tax, number {number}. */\n"
        f"    public int total{number}(int[] prices, int tax) {{\n"
        "        int sum = 0;\n"
        "        for (int price : prices) {\n"
        "            sum += price;\n"
        "        }\n"
        f"        return sum + sum * tax / {number};\n"
        "    }\n\n"
    )


def _class(first: int) -> str:
    methods = "".join(_method(number) for number in range(first, first + _METHODS))
    return f"package made;\n\npublic class Shop {{\n{methods}}}\n"


def _history(trials: int) -> bytes:
    """Return a stream for ``git fast-import``: two commits for each instance."""
    parts = [b"blob\nmark :1\ndata 16\nclass Other { }\n\n"]
    for number in range(1, trials + 1):
        text = _class(number).encode()
        parts.append(b"blob\nmark :%d\ndata %d\n%s\n" % (number + 1, len(text), text))
    commits = trials + 2
    for number in range(1, trials + 1):
        parent = b"" if number == 1 else b"from :%d\n" % (commits + number - 1)
        files = b"".join(
            b"M 100644 :1 src/main/java/made/pack%d/Other%d.java\n" % (n % 20, n)
            for n in (range(_FILES) if number == 1 else ())
        )
        changed = b"M 100644 :%d %s\n" % (number + 1, _PATH.encode())
        parts.append(
            b"commit refs/heads/made\nmark :%d\ncommitter A <a@example.org> %d +0000\ndata 1\nx\n%s%s%s\n"
            % (commits + number, 1700000000 + number, parent, files, changed)
        )
    # The commits of the instances: each on top of the files before it.
    parts.extend(
        b"commit refs/heads/instance-%d\nmark :%d\ncommitter A <a@example.org> %d +0000\ndata 1\ny\n"
        b"from :%d\nM 100644 :1 changed.java\n\n"
        % (number, commits + trials + number, 1800000000 + number, commits + number)
        for number in range(1, trials + 1)
    )
    return b"".join(parts)


def make_project(folder: Path, trials: int) -> None:
    """Write clone, instances, model and config."""
    clone = folder / "made" / "project"
    import_history(clone, _history(trials))
    refs = git(clone, "for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads/instance-*")
    commits = dict(line.split(" ") for line in refs.decode().splitlines())
    instances = [_instance(number, commits[f"instance-{number}"]) for number in range(1, trials + 1)]
    (folder / "instances.json").write_text(json.dumps(instances))
    (folder / "answers.py").write_text(_ANSWERS)
    (folder / "config.toml").write_text(_CONFIG)


def _instance(number: int, commit: str) -> dict[str, Any]:
    method, whole = _method(number).rstrip("\n"), _class(number)
    place = {"filePath": _PATH, "startLine": 4, "endLine": 11, "startColumn": 0, "endColumn": 0}
    sentence = (
        f"private sum{number}(prices int[]) : int extracted from public total{number}(prices int[], tax int)"
    )
    after = (
        f"public int total{number}(int[] prices, int tax) {{\n    int sum = sum{number}(prices);\n"
        f"    return sum + sum * tax / {number};\n}}\n\nprivate int sum{number}(int[] prices) {{\n"
        "    int sum = 0;\n    for (int price : prices) {\n        sum += price;\n    }\n    return sum;\n}"
    )
    return {
        "type": "Extract Method",
        "description": f"Extract Method\t{sentence} : int in class made.Shop",
        "diffLocations": [place, place, {**place, "startLine": 12, "endLine": 18}],
        "sourceCodeBeforeRefactoring": method.lstrip(),
        "filePathBefore": _PATH,
        "isPureRefactoring": True,
        "commitId": commit,
        "packageNameBefore": "made",
        "classNameBefore": "made.Shop",
        "methodNameBefore": f"made.Shop#total{number}",
        "methodNameBeforeSet": [f"made.Shop#total{number}"],
        "purityCheckResultList": [],
        "sourceCodeBeforeForWhole": whole,
        "filePathAfter": _PATH,
        "sourceCodeAfterForWhole": whole,
        "diffSourceCodeSet": [],
        "invokedMethodSet": [],
        "sourceCodeAfterRefactoring": after,
        "diffSourceCode": "",
        "uniqueId": f"{commit}_4_11_12_18_4_10",
        "compileJDK": 17,
    }


class _Miner:
    """RefactoringMiner that finds the extraction of the model at once."""

    async def detect_contents(self, before: Mapping[str, str], after: Mapping[str, str]) -> Detection:
        del before
        lines = after[_PATH].split("\n")
        end = next(number for number, line in enumerate(lines, 1) if number > 4 and line == "    }")
        name = lines[end + 1].partition("int ")[2].partition("(")[0]
        target = name.replace("sum", "total")
        left = (_place(4, 11, "source method declaration before extraction", target),)
        right = (
            _place(4, end, "source method declaration after extraction", target),
            _place(end + 2, end + 8, "extracted method declaration", name),
        )
        sentence = f"Extract Method private {name}(prices int[]) : int extracted from class made.Shop"
        purity = Purity(pure=True, description="all mapped", comment="Identical statements", mapping_state=1)
        return Detection(None, (Refactoring("Extract Method", sentence, left, right, purity),), "3.1.4")


def _place(start: int, end: int, part: str, name: str) -> CodeRange:
    return CodeRange(_PATH, start, end, 1, 1, "METHOD_DECLARATION", part, f"public {name}(int) : int")


@contextmanager
def without_java() -> Iterator[None]:
    """Replace what needs Java, and the sandboxes in which it runs."""

    async def passes(*_arguments: object) -> TestedAnswer:
        return TestedAnswer(TestOutcome.PASSED, compiles=True, passed=1, jdk=17)

    async def built(*_arguments: object) -> SimpleNamespace:
        return SimpleNamespace(jdk=17, failures=frozenset())

    class Opened:
        def __init__(self, value: object) -> None:
            self.value = value

        async def __aenter__(self) -> object:
            return self.value

        async def __aexit__(self, *_error: object) -> None:
            return None

    agents = SimpleNamespace(sandboxes=None, sandbox_config=None, runners={})
    with (
        mock.patch.object(score_answer, "compile_and_test", passes),
        mock.patch.object(opening.BaseBuilds, "open", built),
        mock.patch.object(opening, "refactoring_service", return_value=Opened(_Miner())),
        mock.patch.object(opening, "open_agent_services", return_value=Opened(agents)),
        mock.patch.object(opening, "check_build_tool"),
        mock.patch.object(opening, "open_verification", built),
    ):
        yield


async def _run(folder: Path, out: str) -> Summary:
    planned = plan_run(folder / "config.toml", [f"run.out={out}"])
    return await execute.execute_run(planned, RunOptions(), StopRequest())


def _cpu_s() -> float:
    """CPU of this process and of its children, such as git."""
    uses = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def main() -> int:
    """Measure, print, and return 1 if the target is missed."""
    parser = arguments(__doc__, 3)
    parser.add_argument("--trials", type=int, default=1099, help="trials of a round (default 1,099)")
    chosen = parser.parse_args()
    cpu_ms, wall_ms = list[float](), list[float]()
    with tempfile.TemporaryDirectory() as name, without_java():
        folder = Path(name)
        make_project(folder, chosen.trials)
        for number in range(chosen.rounds):
            began_s, began_cpu_s = time.monotonic(), _cpu_s()
            summary = anyio.run(_run, folder, f"runs-{number}")
            cpu_ms.append((_cpu_s() - began_cpu_s) * 1000 / chosen.trials)
            wall_ms.append((time.monotonic() - began_s) * 1000 / chosen.trials)
            successes = sum("success" in line.result for line in summary.lines)
            if successes != chosen.trials:
                raise SystemExit(f"{successes} of {chosen.trials} trials are successes")
    about = machine() | versions(sys.executable, "codetaste")
    report = Report(f"{chosen.trials:,} trials of SWE-Refactor with simple prompts", about)
    report.add("a trial, CPU with git", cpu_ms, " ms", most=MAX_CPU_MS)
    report.add("a trial, wall", wall_ms, " ms")
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
