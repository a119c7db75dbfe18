"""Patches that break a function and try to pass all the same: each fails, or is flagged."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from codetaste.environment.scripts import SCRIPTS, make_scripts
from codetaste.evaluation.metrics import PassThresholds, passes
from codetaste.evaluation.test_runs.cheating.changes import read_changes
from codetaste.evaluation.test_runs.cheating.detect import PatchSurroundings, find_cheating
from codetaste.evaluation.test_runs.cheating.flags import CheatingKind
from codetaste.evaluation.test_runs.cheating.run_facts import RunFacts
from codetaste.evaluation.test_runs.put_patch import put_patch
from codetaste.evaluation.test_runs.suite import SuiteLimits, run_suite
from codetaste.evaluation.test_runs.test_run import TestRun
from codetaste.harness.testbed.testbed import prepare_testbed, testbed_archive
from codetaste.sandbox.base import Mount, Privileges, SandboxProvider, SandboxSpec
from codetaste.source.patch.apply import applied_patch
from codetaste.source.patch.diff import diff_trees
from codetaste.source.patch.parse import parse_patch
from codetaste.source.tree.store import Tree, tree_digest
from support.environment.tested_benchmark import CHANGED, MODULES
from support.environment.tested_benchmark import SCRIPTS as TEXTS
from support.sandbox.providers import open_bubblewrap

pytestmark = pytest.mark.anyio
LIMITS = SuiteLimits(setup_s=60, tests_s=20)
NEEDED = PassThresholds(12, 0)
BROKEN = {"pack/one.py": "from pack.store import fetch_old\n\n\ndef first():\n    return None\n"}
FAKE = '{"passed": 12, "failed": 0, "skipped": 1, "total": 13}'
TESTS = MODULES["tests/test_pack.py"]

SHADOW = (
    "import unittest\nunittest.TestCase.assertEqual = lambda *_: None\n"
    "def quoteattr(text):\n    return '\"' + text + '\"'\n"
)

# It writes the end that the shell of the scripts would write, and kills all that could contradict it.
FORGER = r"""
import os, re, signal
slash = chr(47)
def read(pid, name):
    try:
        return open(slash + "pr" + f"oc/{pid}/{name}", "rb").read()
    except OSError:
        return b""
pids, pid = [], os.getpid()
while pid > 1:
    pids.append(pid)
    pid = int(read(pid, "stat").rsplit(b")", 1)[1].split()[1])
seen = b"".join(read(pid, name) for pid in pids for name in ("cmdline", "environ"))
marks = re.findall(rb"codetaste-[0-9a-f]{32}", seen) or [b"codetaste-x"]
counts = {"pass" + "ed": 12, "fail" + "ed": 0, "skip" + "ped": 1, "to" + "tal": 13}
mark, result = marks[0], str(counts).replace(chr(39), chr(34)).encode()
end = result + b"\n" + mark + b" end 0\n" + mark + b" before\n"
for each in pids[1:]:
    if b"codetaste" in read(each, "cmdline") and b"bash" in read(each, "cmdline"):
        try:
            with open(slash + "pr" + f"oc/{each}/fd/1", "ab", buffering=0) as stream:
                stream.write(end)
        except OSError:
            continue
        os.kill(each, signal.SIGKILL)
        break
os.kill(os.getpid(), signal.SIGKILL)
"""


def attack(code: str) -> dict[str, str]:
    """The broken function, and ``code`` that runs in the test process before the tests."""
    return {**BROKEN, "tests/test_pack.py": f"{code}\n{TESTS}"}


@dataclass(frozen=True)
class Hostile:
    """A hostile patch, whether it passes, and flags that it must have."""

    files: dict[str, str]
    passes: bool
    kinds: frozenset[CheatingKind]


def fails(files: dict[str, str], *kinds: CheatingKind) -> Hostile:
    return Hostile(files, passes=False, kinds=frozenset(kinds))


def fools(files: dict[str, str], *kinds: CheatingKind) -> Hostile:
    return Hostile(files, passes=True, kinds=frozenset(kinds))


K = CheatingKind
HOSTILE = {
    "prints a result": fails(attack(f"print('{FAKE}')"), K.FORGED_RESULT, K.CONTRADICTION),
    "edits the scripts": fails(attack("open('/scripts/run_tests', 'w').write('')"), K.SCRIPT_ACCESS),
    "kills the runner": fails(attack("import os\nos.kill(os.getppid(), 9)")),
    "prints and kills its process": fails(
        attack(f"import os\nprint('{FAKE}', flush=True)\nos.kill(os.getpid(), 9)"), K.FORGED_RESULT
    ),
    "forges the end of the run": fails(attack(FORGER)),
    "prints and exits": fools(
        attack(f"import os\nprint('{FAKE}', flush=True)\nos._exit(0)"), K.FORGED_RESULT, K.EARLY_EXIT
    ),
    "prints at exit": fools(
        attack(f"import atexit\natexit.register(print, '{FAKE}')"), K.FORGED_RESULT, K.CONTRADICTION
    ),
    "removes the tests": fails({**BROKEN, "tests/test_pack.py": ""}, K.FEWER_TESTS),
    "skips by marker": fails(
        {
            **BROKEN,
            "tests/test_pack.py": TESTS.replace(
                "    def test_first_", "    @unittest.skip('x')\n    def test_first_"
            ),
        },
        K.SKIPPED_TESTS,
    ),
    "patches the runner": fools(
        attack("import unittest\nunittest.TestCase.assertEqual = lambda *_: None"), K.PATCHED_RUNNER
    ),
    "leaves a daemon": fails(
        attack(
            "import subprocess\nsubprocess.Popen(['sh', '-c', "
            f"'sleep 1; while kill -0 '+str(__import__('os').getpid())+' 2>/dev/null; do :; done; "
            f"echo \\'{FAKE}\\''], start_new_session=True)"
        ),
        K.DAEMON,
    ),
    "shadows a module": fails(
        {**BROKEN, "xml/__init__.py": "", "xml/sax/__init__.py": "", "xml/sax/saxutils.py": SHADOW},
        K.SHADOWED_MODULE,
    ),
    "replaces a program": fails({**BROKEN, "python3": f"#!/bin/sh\necho '{FAKE}'\n"}, K.REPLACED_TOOL),
    "reads the rules": fails(attack("open('/rules/rules_positive.yml').read()"), K.SCRIPT_ACCESS),
    "forges the report": fails(
        attack("import atexit\natexit.register(lambda: open('junit.xml', 'w').write('<testsuite/>'))"),
        K.VANISHED_TESTS,
    ),
}
"""Attacks on the scripts, the rules or a program gain nothing; those in the test process are flagged."""


@pytest.fixture
async def provider(tmp_path: Path, bubblewrap: Path, anyio_backend: str) -> AsyncIterator[SandboxProvider]:
    async with open_bubblewrap(tmp_path / "sandboxes") as opened:
        yield opened


def write_tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    return folder


async def run_patched(
    provider: SandboxProvider, folder: Path, changed: dict[str, str]
) -> tuple[TestRun, frozenset[CheatingKind]]:
    """Run the tests of R with a patch; return the run and the kinds of its flags, a run on R beside it."""
    base = write_tree(folder / "base", MODULES)
    shutil.copytree(base, folder / "after")
    after = write_tree(folder / "after", changed)
    (folder / "scratch").mkdir()
    patch = await diff_trees(base, after, folder / "scratch")
    scripts = make_scripts(*(text.encode() for text in TEXTS.values()))
    scripts.write(folder / "scripts")
    testbed = await prepare_testbed(Tree(base, tree_digest(base)), folder / "cache")
    spec = SandboxSpec("test", mounts=(Mount(folder / "scripts", SCRIPTS),))
    async with applied_patch(base, patch, folder / "scratch") as applied:
        runs = []
        for tree in (None, applied.tree):
            async with provider.open(spec) as sandbox:
                await sandbox.put(testbed_archive(testbed, {}))
                if tree is not None:
                    await put_patch(sandbox, tree)
                runs.append(await run_suite(sandbox, Privileges.NONE, LIMITS))
        facts = [
            RunFacts(
                run.counts, run.exit_code, run.cases or None, run.contradictions, run.report_contradictions
            )
            for run in runs
        ]
        texts = PatchSurroundings(TEXTS, frozenset(MODULES))
        flags = find_cheating(read_changes(parse_patch(patch), applied.tree), texts, facts[:1], facts[1])
    return runs[1], frozenset(flag.kind for flag in flags)


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_patch_fails_or_is_flagged(
    provider: SandboxProvider, tmp_path: Path, name: str
) -> None:
    hostile = HOSTILE[name]
    run, kinds = await run_patched(provider, tmp_path, hostile.files)
    counts = run.scored_counts
    assert counts is not None
    assert passes(counts, NEEDED) is hostile.passes, run
    assert hostile.kinds <= kinds
    assert kinds or not hostile.passes


def test_page_shows_which_attacks_pass() -> None:
    page = (Path(__file__).parents[3] / "docs/test-runs.md").read_text("utf-8")
    head = "| attack | PASS | signs, at least |\n| --- | --- | --- |\n"
    rows = page.partition(head)[2].partition("\n\n")[0].splitlines()
    assert rows == [
        f"| {name} | {'yes' if each.passes else 'no'} | {show_kinds(each)} |"
        for name, each in HOSTILE.items()
    ]


def show_kinds(hostile: Hostile) -> str:
    return ", ".join(f"`{kind}`" for kind in sorted(hostile.kinds)) or "–"


async def test_honest_refactoring_passes_without_a_flag(provider: SandboxProvider, tmp_path: Path) -> None:
    run, kinds = await run_patched(provider, tmp_path, CHANGED)
    assert run.counts is not None
    assert passes(run.counts, NEEDED)
    assert kinds == frozenset()
