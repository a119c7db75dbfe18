"""Compilation and tests of many answers to one instance: copies of a built tree beside fresh checkouts.

The project is made up: 200 classes that call each other, and tests of some. The answers extract methods,
break a test, do not compile, and change a signature that other classes need. Both sides run in bubblewrap,
with the same JDK; their verdicts must be the same. Wall time is measured: the processor time of a sandbox is
lost, since the kernel does not account the processes of a PID namespace that ends to their parent. ::

    python perf/compile_and_test.py [--answers 8]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from measure import Report, arguments, interleaved, machine, measured, ratio, versions

from codetaste.core.files import remove_tree
from codetaste.core.paths import cache_dir
from codetaste.sandbox.config import SandboxConfig
from codetaste.sandbox.egress import no_egress
from codetaste.sandbox.local.sandbox import bubblewrap_provider
from codetaste.source.repository import open_repository
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.score.base_build import build_base
from codetaste.swe_refactor.score.compile_and_test import compile_and_test
from codetaste.swe_refactor.verify.problem import outcome_of_run
from codetaste.swe_refactor.verify.project_sandbox import open_project_sandbox
from codetaste.swe_refactor.verify.settings import make_verify_context
from codetaste.swe_refactor.verify.side import run_side

if TYPE_CHECKING:
    from codetaste.source.repository import Repository
    from codetaste.swe_refactor.score.base_build import BaseBuild

LEAST_RATIO = 2.0
_CLASSES, _METHODS = 200, 20
_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId><artifactId>made</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>8</maven.compiler.source><maven.compiler.target>8</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies><dependency>
    <groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version><scope>test</scope>
  </dependency></dependencies>
  <build><plugins>
    <plugin><artifactId>maven-compiler-plugin</artifactId><version>3.11.0</version></plugin>
    <plugin><artifactId>maven-surefire-plugin</artifactId><version>3.2.5</version></plugin>
  </plugins></build>
</project>
"""
_TARGET = "src/main/java/p0/C0.java"


def class_text(number: int) -> str:
    """Return a class whose methods call the next class."""
    following = (number + 1) % _CLASSES
    methods = [
        f"  public static int m{index}(int a, List<String> all) {{\n    int sum = a;\n"
        f"    for (String each : all) {{\n      sum += each.length() + {index};\n    }}\n"
        f"    return sum > 1000 ? p{following % 20}.C{following}.m{index}(sum, all) : sum;\n  }}\n"
        for index in range(_METHODS)
    ]
    body = "\n".join(methods)
    return f"package p{number % 20};\n\nimport java.util.List;\n\npublic class C{number} {{\n{body}}}\n"


def test_text(number: int) -> str:
    """Return tests of a class."""
    return (
        f"package p{number % 20};\n\nimport static org.junit.Assert.assertEquals;\n"
        f"import java.util.Collections;\nimport org.junit.Test;\n\n"
        f"public class C{number}Test {{\n  @Test public void adds() {{\n"
        f'    assertEquals(4 + 2, C{number}.m2(1, Collections.singletonList("abc")));\n  }}\n}}\n'
    )


def make_clone(folder: Path) -> str:
    """Write the project as a repository of one commit; return its hash."""
    files = {"pom.xml": _POM}
    files |= {f"src/main/java/p{each % 20}/C{each}.java": class_text(each) for each in range(_CLASSES)}
    files |= {
        f"src/test/java/p{each % 20}/C{each}Test.java": test_text(each) for each in range(0, _CLASSES, 8)
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git = ["git", "-C", str(folder), "-c", "user.name=made", "-c", "user.email=made@made.example"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "made"], check=True)
    done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def answers(count: int) -> list[bytes]:
    """Return contents of the target's file: of four answers one each fails, does not compile, or is seen."""
    before, found = class_text(0), list[str]()
    for number in range(count):
        old = f"      sum += each.length() + {number};\n"
        new = f"      sum += step{number}(each);\n"
        head = f"  private static int step{number}(String each) {{\n"
        method = f"{head}    return each.length() + {number};\n  }}\n}}\n"
        text = before.replace(old, new)[: -len("}\n")] + method
        match number % 8:
            case 3:
                text = text.replace("length() + 2;", "length() - 2;")
            case 5:
                text = text.replace(f"step{number}(each)", f"stop{number}(each)")
            case 7:
                text = text.replace("int m15(int a,", "int m15(String a, int b,")
        found.append(text)
    return [each.encode() for each in found]


async def fresh(repository: Repository, commit: str, base: BaseBuild, content: bytes, folder: Path) -> str:
    """Check out, build and test an answer as the verification does; return its verdict."""
    try:
        await repository.export(commit, folder)
        await anyio.Path(folder / _TARGET).write_bytes(content)
        side = replace(base.side, tree=folder)
        opened = open_project_sandbox(base.context, "fresh", base.build, no_egress(), base.prepared)
        async with opened as sandbox:
            tested = await run_side(sandbox, side, base.jdk, base.context.limits.tests_s)
            if 0 < len(tested.failures) <= 5:  # as the verification does
                tested = await run_side(sandbox, side, base.jdk, base.context.limits.tests_s)
    finally:
        await to_thread.run_sync(remove_tree, folder)
    if tested.result is None:
        return str(outcome_of_run(tested.run, after=True)).removesuffix("_after")
    return "tests_fail" if tested.failures else "passed"


def make_instance() -> RefactoringInstance:
    """Return as much of an instance as compilation and tests need."""
    lines = {"filePath": _TARGET, "startLine": 1, "endLine": 1, "startColumn": 0, "endColumn": 0}
    texts = dict.fromkeys(
        (
            "description", "sourceCodeBeforeRefactoring", "packageNameBefore", "classNameBefore",
            "methodNameBefore", "sourceCodeBeforeForWhole", "sourceCodeAfterForWhole",
            "sourceCodeAfterRefactoring", "diffSourceCode", "uniqueId", "commitId",
        ),
        "",
    )  # fmt: skip
    names = ("methodNameBeforeSet", "invokedMethodSet", "purityCheckResultList", "diffSourceCodeSet")
    lists: dict[str, list[str]] = {name: [] for name in names}
    paths = dict.fromkeys(("filePathBefore", "filePathAfter"), _TARGET)
    more = {"type": "Extract Method", "diffLocations": [lines] * 3, "isPureRefactoring": True}
    return RefactoringInstance.from_document({**texts, **lists, **paths, **more})


async def run(side: str, folder: Path, count: int) -> dict[str, str]:
    """Test all answers in one way, and return their verdicts; the base is built if it was not."""
    instance = make_instance()
    commit = (await anyio.Path(folder, "commit").read_text()).strip()
    repository = await open_repository(folder / "clone")
    cache = await to_thread.run_sync(cache_dir, sys.exit)
    sandboxes = bubblewrap_provider(folder / "sandboxes")
    context = await make_verify_context(
        sandboxes, SandboxConfig(), image="", folder=folder / "project", cache=cache
    )
    base = await build_base(context, repository, commit, instance, folder / "store")
    await to_thread.run_sync(remove_tree, base.store / "answers")
    before, verdicts = {_TARGET: class_text(0).encode()}, {}
    for number, content in enumerate(answers(count)):
        if side == "copy":
            tested = await compile_and_test(base, instance, before, {_TARGET: content})
            verdicts[str(number)] = str(tested.outcome)
        else:
            checkout = folder / f"fresh-{number}"
            verdicts[str(number)] = await fresh(repository, commit, base, content, checkout)
    return verdicts


def main() -> int:
    parser = arguments(__doc__, 3)
    parser.add_argument("--answers", type=int, default=8, help="how many answers are tested (default 8)")
    parser.add_argument("--work", type=Path, help="test all answers with the files in this folder")
    parser.add_argument("--side", choices=("copy", "fresh"), default="copy", help="how, with --work")
    chosen = parser.parse_args()
    if chosen.work:
        print(json.dumps(anyio.run(run, chosen.side, chosen.work, chosen.answers)))
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "commit").write_text(make_clone(folder / "clone"))
        command = [sys.executable, __file__, "--work", folder]
        once = [measured([*command, "--answers", str(count)]) for count in (0, 0)]
        sides = {
            side: partial(measured, [*command, "--answers", str(chosen.answers), "--side", side])
            for side in ("fresh", "copy")
        }
        uses = interleaved(sides, chosen.rounds)
    verdicts = {use.output for each in uses.values() for use in each}
    if len(verdicts) > 1:
        sys.exit(f"the verdicts differ: {verdicts}")
    about = machine() | versions(sys.executable, "codetaste") | {"answers": chosen.answers}
    report = Report("answers compiled and tested", about)
    # Starting the program and finding the base is no part of an answer.
    wall = {
        side: [(use.wall_s - once[1].wall_s) / chosen.answers for use in each] for side, each in uses.items()
    }
    report.add("an answer in a fresh checkout, wall", wall["fresh"], " s")
    report.add("an answer in a copy of the built tree, wall", wall["copy"], " s")
    report.add("the base, fetched, built and tested once, wall", [once[0].wall_s], " s")
    report.add("a fresh checkout / a copy, wall", ratio(wall["fresh"], wall["copy"]), " ×", least=LEAST_RATIO)
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
