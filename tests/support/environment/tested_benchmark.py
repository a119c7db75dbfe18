"""A benchmark of one instance whose tests need nothing but Python, and runs on it in containers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.flows.tiny_benchmark import BASE, GOLDEN, PRICE, Bench, Row, Workspace

MODELS = Path(__file__).parent / "setup_agents.py"
TESTS = "\n".join(
    [
        "import unittest",
        "from pack.one import first",
        "from pack.two import second",
        "",
        "",
        "class PackTest(unittest.TestCase):",
        *(
            f"    def test_{name}_{number}(self):\n        self.assertEqual({name}(), {{'key': '{key}'}})\n"
            for number in range(6)
            for name, key in (("first", "a"), ("second", "b"))
        ),
        "",
        "    @unittest.skip('not now')",
        "    def test_later(self):",
        "        pass",
        "",
    ]
)
IGNORED = {
    ".gitignore": "__pycache__/\njunit.xml\ninstalled\n",
    "tests/__init__.py": "",
    "pack/__init__.py": "",
}
RUN_TESTS = r"""#!/usr/bin/python3
import json, sys, unittest
from xml.sax.saxutils import quoteattr

class Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.cases = {}
    def startTest(self, test):
        super().startTest(test)
        self.cases[test.id()] = ""
    def addFailure(self, test, error):
        self.cases[test.id()] = "<failure/>"
    def addError(self, test, error):
        self.cases[test.id()] = "<error/>"
    def addSkip(self, test, reason):
        self.cases[test.id()] = "<skipped/>"

sys.path.insert(0, ".")
result = Result()
unittest.defaultTestLoader.discover("tests", top_level_dir=".").run(result)
with open("junit.xml", "w") as file:
    cases = (f"<testcase name={quoteattr(name)}>{inner}</testcase>" for name, inner in result.cases.items())
    file.write(f"<testsuite>{''.join(cases)}</testsuite>")
ends = list(result.cases.values())
failed = ends.count("<failure/>") + ends.count("<error/>")
counts = {"passed": ends.count(""), "failed": failed, "skipped": ends.count("<skipped/>"), "total": len(ends)}
print(json.dumps(counts))
"""
SETUP_SYSTEM = "#!/bin/bash\nexit 0\n"
SETUP_SHELL = "#!/bin/bash\nexport PYTHONHASHSEED=0\n[ -e /testbed/installed ] || date > /testbed/installed\n"
SCRIPTS = {"setup_system.sh": SETUP_SYSTEM, "setup_shell.sh": SETUP_SHELL, "run_tests": RUN_TESTS}
COUNTS = {"passed": 12, "failed": 0, "skipped": 1, "total": 13, "error": None}
"""What the scripts count, on both sides."""
MODULES = {**BASE, **IGNORED, "tests/test_pack.py": TESTS}
CHANGED = {**GOLDEN, **IGNORED, "tests/test_pack.py": TESTS}


def make_tested_benchmark(folder: Path, *, scripts: bool = True) -> tuple[Bench, Row]:
    """Make the benchmark, with its scripts or without."""
    bench = Bench(folder)
    row = bench.add("tested", MODULES, CHANGED)
    if scripts:
        write_scripts(bench.root / "instance_images" / row.path / "scripts")
    return bench, row


def write_scripts(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in SCRIPTS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def publish_scripts(bench: Bench, row: Row, changed: dict[str, str]) -> None:
    """Replace scripts, and record that they make an environment."""
    folder = bench.root / "instance_images" / row.path
    for name, text in changed.items():
        (folder / "scripts" / name).write_text(text)
    owner, repo, _ = row.path.split("/")
    hashes = {"base_hash": row.base, "golden_hash": row.golden}
    record = {"owner": owner, "repo": repo, **hashes, "has_execution_environment": True}
    (folder / "instance_metadata.json").write_text(json.dumps(record))


def make_tested_workspace(folder: Path, bench: Bench, cache: Path, sandbox: str, more: str) -> Workspace:
    """Make a workspace for runs on the benchmark; ``sandbox`` is the section's content."""
    text = "\n".join(
        [
            '[run]\nname = "r"\nbudget_usd = 20.0',
            f'[benchmark]\npath = "{bench.root}"\nrepos = "{bench.repos}"',
            f"[sandbox]\n{sandbox}",
            more,
        ]
    )
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.toml"
    config.write_text(text)
    return Workspace(folder, cache, config)


def agent_tables(script: str) -> str:
    """The tables of a scripted model and of an agent "a" that uses it."""
    return (
        f'[[models]]\nid = "m"\nprovider = "scripted"\nmodel = "{MODELS}:{script}"\nprice = {PRICE}\n'
        '[[agents]]\nid = "a"\nharness = "codetaste"\nmodel = "m"\nbudget_usd = 2.0\ntime_limit = "10m"\n'
    )


def make_environment_workspace(
    folder: Path, sandbox: str, image: str, script: str = "", **more: Any
) -> Workspace:
    """Make the benchmark, and a workspace that proves its environment in containers of ``image``.

    ``script`` names the scripted model of an agent, which sets the environment up unless ``setup`` is false;
    ``rounds`` are those of the agent, ``scripts`` tells whether the benchmark has some, ``published`` are
    scripts in their place with a record, ``text`` is the rest of the config.
    """
    bench, row = make_tested_benchmark(folder / "made", scripts=more.get("scripts", True))
    if "published" in more:
        publish_scripts(bench, row, more["published"])
    environment = f'[environment]\nimage = "{image}"\nregistries = false\n'
    agent = f'agent = "a"\nrounds = {more.get("rounds", 2)}\n' if script and more.get("setup", True) else ""
    tables = agent_tables(script) if script else ""
    text = f"{tables}\n{environment}{agent}\n{more.get('text', '')}"
    return make_tested_workspace(folder / "work", bench, folder / "cache", sandbox, text)


def written_environment(made: Workspace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a run has written about its environment: the published metadata, and ours."""
    folder = next((made.out / "environment" / "instance_images").glob("*/*/*"))
    names = ("instance_metadata.json", "environment.json")
    metadata, details = (json.loads((folder / name).read_text()) for name in names)
    return metadata, details
