"""A run of strategies on a small made project: two instances of one commit, and two scripted models.

The models are those of ``examples/swe-refactor.toml``: they refactor what their prompts show.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.flows import tiny_benchmark
from support.flows.growing_journal import GrowingJournal
from support.flows.tiny_benchmark import CommandResult, Workspace
from support.refactorings.java_tools import tools_in
from support.swe_refactor.documents import document
from support.swe_refactor.example_records import make_record, write_corpus
from support.swe_refactor.tested_project import FILES

Journal = list[dict[str, Any]]
MODELS = Path(__file__).parents[3] / "examples" / "swe_refactor_models.py"
_LONG_S = 1700.0
_CONFIG = """\
[run]
name = "strategies"
budget_usd = 20.0
[[models]]
id = "strong"
provider = "scripted"
model = "{models}:strong"
price = {{ input = 3.0, output = 15.0 }}
[[models]]
id = "weak"
provider = "scripted"
model = "{models}:weak"
price = {{ input = 0.3, output = 1.5 }}
[[agents]]
id = "strong-agent"
harness = "codetaste"
model = "strong"
[[agents]]
id = "weak-agent"
harness = "codetaste"
model = "weak"
[swe_refactor]
instances = "instances.json"
repositories = ["example/letters"]
java = {{ jdks = 1, compile_time_limit = "1h", test_time_limit = "1h" }}
[[swe_refactor.strategies]]
kind = "simple"
[[swe_refactor.strategies]]
kind = "rag"
retrieval = {{ examples = "examples.jsonl" }}
[[swe_refactor.strategies]]
kind = "multi-agent"
[[swe_refactor.strategies]]
kind = "agent"
[sandbox]
engine = "bubblewrap"
memory = "2GiB"
max = 2
"""
_BEFORE = """\
package org.example;

public class {name} {{
    public String {method}(int[] numbers) {{
        StringBuilder text = new StringBuilder("{name}");
        for (int number : numbers) {{
            text.append({part});
        }}
        return text.toString();
    }}
}}
"""
_AFTER = """\
package org.example;

public class {name} {{
    public String {method}(int[] numbers) {{
        StringBuilder text = new StringBuilder("{name}");
        add{name}(text, numbers);
        return text.toString();
    }}

    private void add{name}(StringBuilder text, int[] numbers) {{
        for (int number : numbers) {{
            text.append({part});
        }}
    }}
}}
"""
_TEST = """\
package org.example;

import static org.junit.Assert.assertEquals;
import org.junit.Test;

public class LettersTest {
    @Test public void writesSquares() {
        assertEquals("Squares14", new Squares().squares(new int[] {1, 2}));
    }

    @Test public void writesSigns() {
        assertEquals("Signs10", new Signs().show(new int[] {5, 0}));
    }
}
"""
_CLASSES = {
    "Squares": ("squares", "number * number"),
    "Signs": ("show", "Integer.signum(number)"),
}
_INLINED = "Signs"
"""The class in which the method goes away that the others get."""


@dataclass(frozen=True)
class StrategyRun:
    """A run in a folder of its own."""

    workspace: Workspace

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The lines of trials.jsonl."""
        text = (self.workspace.out / "swe_refactor" / "trials.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def run(self, *options: str) -> CommandResult:
        return self.workspace.run(*options, timeout_s=_LONG_S)

    def kill_when(self, reached: Callable[[Journal], bool]) -> None:
        """Start the command, and kill it when its journal has ``reached`` something."""
        process = self.workspace.start()
        deadline = time.monotonic() + _LONG_S
        journal = GrowingJournal(self.workspace.out / "journal.jsonl")
        while not reached(journal.read()):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        tiny_benchmark.kill(process)


def count(journal: Journal, event: str, kind: str) -> int:
    """Count the lines with an event of the jobs whose keys begin with ``kind``."""
    return sum(line["event"] == event and line["key"].startswith(kind) for line in journal if "key" in line)


def make_run(folder: Path, cache: Path) -> StrategyRun:
    """Make a folder with project, instances, examples and config."""
    folder.mkdir(parents=True)
    config = folder / "config.toml"
    config.write_text(_CONFIG.format(models=MODELS))
    if not cache.exists():
        tools_in(cache / "codetaste", "refactoring-miner-3.1.4")
    record = make_record(3)
    write_corpus(folder, [record, {**make_record(4), "type": "Inline Method"}])
    (folder / "instances.json").write_text(json.dumps(_make_instances(folder)))
    return StrategyRun(Workspace(folder, cache, config, name="strategies"))


def _make_instances(folder: Path) -> list[dict[str, Any]]:
    """Make the repository ``example/letters`` and return the instances of its second commit."""
    repository = folder / "example" / "letters"
    before, after = _sides()
    tests = {"src/test/java/org/example/LettersTest.java": _TEST}
    tiny_benchmark.commit(repository, {**FILES, **before, **tests})
    commit = tiny_benchmark.commit(repository, after)
    return [_instance(commit, name, before, after) for name in _CLASSES]


def _sides() -> tuple[dict[str, str], dict[str, str]]:
    before, after = dict[str, str](), dict[str, str]()
    for name, (method, part) in _CLASSES.items():
        sides = [text.format(name=name, method=method, part=part) for text in (_BEFORE, _AFTER)]
        before[_path(name)], after[_path(name)] = sides if name != _INLINED else sides[::-1]
    return before, after


def _path(name: str) -> str:
    return f"src/main/java/org/example/{name}.java"


def _instance(commit: str, name: str, before: dict[str, str], after: dict[str, str]) -> dict[str, Any]:
    path, method, inlining = _path(name), _CLASSES[name][0], name == _INLINED
    old, new = before[path], after[path]
    head, new_head = f"{method}(int[] numbers)", f"private void add{name}("
    places = [
        _place(path, old, head),
        _place(path, new, head),
        _place(path, old if inlining else new, new_head),
    ]
    kind = "Inline Method" if inlining else "Extract Method"
    target, other = (f"add{name}", method) if inlining else (method, f"add{name}")
    word = "inlined to" if inlining else "extracted from"
    codes = [
        _code(text, place) for text, place in zip((old, new, old if inlining else new), places, strict=True)
    ]
    return document(
        type=kind,
        description=f"{kind}\t{target if inlining else other} {word} {other if inlining else target}",
        diffLocations=places,
        sourceCodeBeforeRefactoring=codes[2] if inlining else codes[0],
        sourceCodeAfterRefactoring=codes[1] if inlining else f"{codes[1]}\n\n{codes[2]}",
        diffSourceCodeSet=[] if inlining else [codes[2]],
        filePathBefore=path,
        filePathAfter=path,
        sourceCodeBeforeForWhole=old,
        sourceCodeAfterForWhole=new,
        commitId=commit,
        packageNameBefore="org.example",
        classNameBefore=f"org.example.{name}",
        methodNameBefore=f"org.example.{name}#{target}",
        uniqueId=f"{commit}_{name}",
        compileJDK=...,
    )


def _place(path: str, text: str, head: str) -> dict[str, Any]:
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines, 1) if head in line)
    end = next(number for number, line in enumerate(lines, 1) if number > start and line == "    }")
    return {"filePath": path, "startLine": start, "endLine": end, "startColumn": 0, "endColumn": 0}


def _code(text: str, place: dict[str, Any]) -> str:
    return "\n".join(text.splitlines()[place["startLine"] - 1 : place["endLine"]]).strip()
