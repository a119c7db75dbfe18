""".ci/structure.py finds each fault that it looks for, and none in this checkout."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

CHECKOUT = Path(__file__).resolve().parents[2]

CLEAN = {
    "README.md": "A page.\n\n```sh\n" + "long " * 40 + "\n```\n",
    "docs/page.md": "Short.\n\n| " + "a table " * 40 + "|\n",
    "src/codetaste/__init__.py": "",
    "src/codetaste/errors.py": '"""Errors: told in prose, which is fine."""\nclass Fault(Exception): ...\n',
    "src/codetaste/benchmark/layout.py": (
        'PATCH_FILE = "prediction.diff"\nIGNORE_FILE = "assets/ignore.txt"\nRULES_FILES = {1: "rules.yml"}\n'
    ),
    "src/codetaste/flows/run.py": "class Runner:\n    def go(self, a, b, c, d, e): ...\n",
    "src/codetaste/cli/app.py": 'app.command("codetaste.cli.commands.status:status")\n',
    "src/codetaste/cli/commands/status.py": "def status(): ...\n",
    "src/codetaste/sandbox/names.py": 'KEY = "prediction.diff"\n',
}


def write(checkout: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = checkout / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture(scope="module")
def structure() -> ModuleType:
    spec = importlib.util.spec_from_file_location("structure", CHECKOUT / ".ci" / "structure.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["structure"] = module
    spec.loader.exec_module(module)
    return module


def find_faults(structure: ModuleType, checkout: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    code = structure.main(checkout)
    *faults, total = capsys.readouterr().out.splitlines()
    assert code == (1 if faults else 0)
    assert total.endswith(f"{len(faults)} faults")
    return faults


@pytest.mark.heavy
def test_this_checkout_has_no_fault(structure: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert find_faults(structure, CHECKOUT, capsys) == []


def test_a_clean_tree_has_no_fault(
    structure: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, CLEAN)
    assert find_faults(structure, tmp_path, capsys) == []


FAULTS = {
    "a file at the root": ({"src/codetaste/extra.py": ""}, "extra.py: only __init__.py"),
    "a full folder": (
        {f"src/codetaste/llm/{name}.py": "" for name in "abcdefghijklm"},
        "llm/: 13 entries, at most 12",
    ),
    "a shared prefix": (
        {f"src/codetaste/llm/wire_{name}.py": "" for name in "abc"},
        "llm/: 3 entries begin with 'wire'",
    ),
    "a long module": ({"src/codetaste/llm/model.py": "#\n" * 401}, "llm/model.py: 401 lines, at most 400"),
    "a circle": (
        {
            "src/codetaste/llm/a.py": "import codetaste.llm.b\n",
            "src/codetaste/llm/b.py": "from codetaste.llm import a\n",
        },
        "in a circle: codetaste.llm.a, codetaste.llm.b",
    ),
    "a circle for types only": (
        {
            "src/codetaste/llm/a.py": "def f():\n    from codetaste.llm.b import B\n",
            "src/codetaste/llm/b.py": "if TYPE_CHECKING:\n    from codetaste.llm.a import A\n",
        },
        "in a circle: codetaste.llm.a, codetaste.llm.b",
    ),
    "a circle of relative imports": (
        {
            "src/codetaste/llm/__init__.py": "from .a import A\n",
            "src/codetaste/llm/a.py": "from . import B\n",
        },
        "in a circle: codetaste.llm, codetaste.llm.a",
    ),
    "a class name used twice": (
        {"src/codetaste/llm/a.py": "def f():\n    class Fault: ...\n"},
        "errors.py:2, llm/a.py:2: the class name Fault occurs 2 times",
    ),
    "a word in a function's name": (
        {"src/codetaste/llm/a.py": "def was_told(): ...\n"},
        "llm/a.py:1: the identifier was_told has the word 'told'",
    ),
    "a word in a variable of a match": (
        {"src/codetaste/llm/a.py": "match 1:\n    case keptBack: ...\n"},
        "llm/a.py:2: the identifier keptBack has the word 'kept'",
    ),
    "a word in a file's name": (
        {"src/codetaste/llm/held.py": ""},
        "llm/held.py: the file name has the word 'held'",
    ),
    "a word in a test": (
        {"tests/llm/test_a.py": "def test_a(tmp_path):\n    said = 1\n"},
        "tests/llm/test_a.py:2: the identifier said has the word 'said'",
    ),
    "a word in a measurement": (
        {"perf/a.py": "import os as kept_os\n"},
        "perf/a.py:1: the identifier kept_os has the word 'kept'",
    ),
    "a word in a text": (
        {"src/codetaste/llm/a.py": 'def f(x):\n    raise E(f"{x}: no' + 'body knows")\n'},
        "llm/a.py:2: a text has the word 'no" + "body'",
    ),
    "a word in an example": (
        {"examples/a.py": "for said in []: ...\n"},
        "examples/a.py:1: the identifier said has the word 'said'",
    ),
    "a word in a text of an agent": (
        {"agents/mine/a.py": 'A = "no' + 'body"\n'},
        "agents/mine/a.py:1: a text has the word 'no" + "body'",
    ),
    "a word in a page": (
        {"docs/guide/page.md": "```\nWho" + "ever\n```\n"},
        "docs/guide/page.md:2: a text has the word 'who" + "ever'",
    ),
    "a word in a prompt": (
        {"prompts/a.md": "for some" + "body\n"},
        "prompts/a.md:1: a text has the word 'some" + "body'",
    ),
    "a name of the layout": (
        {"src/codetaste/llm/a.py": 'def f(x):\n    return f"{x}/prediction.diff"\n'},
        "llm/a.py:2: '/prediction.diff' is a name of benchmark/layout.py",
    ),
    "a name of the layout below a folder": (
        {"src/codetaste/llm/a.py": 'A = "ignore.txt"\n'},
        "llm/a.py:1: 'ignore.txt' is a name of benchmark/layout.py",
    ),
    "a name from a table of the layout": (
        {"src/codetaste/llm/a.py": 'A = "rules.yml"\n'},
        "llm/a.py:1: 'rules.yml' is a name of benchmark/layout.py",
    ),
    "a protocol in too many files": (
        {f"src/codetaste/llm/{name}.py": 'A = "openai-chat"\n' for name in "abc"},
        "'openai-chat' is named in 3 files: llm/a.py, llm/b.py, llm/c.py",
    ),
    "too many imports inside functions": (
        {"src/codetaste/llm/a.py": "def f():\n" + "    import os\n" * 100},
        "100 imports inside functions, at most",
    ),
    "a flow's function with many parameters": (
        {"src/codetaste/flows/run.py": "async def go(a, b, c, *, d, e, f): ...\n"},
        "flows/run.py:1: go has 6 parameters, at most 5",
    ),
    "a command that is not there": (
        {"src/codetaste/cli/app.py": 'app.command("codetaste.cli.commands.state:state")\n'},
        "cli/app.py: there is no module codetaste.cli.commands.state",
    ),
    "a command that is not registered": (
        {"src/codetaste/cli/commands/limit.py": ""},
        "cli/commands/limit.py: cli/app.py registers no command of this module",
    ),
    "a long line of a page": ({"docs/page.md": "a" * 121}, "docs/page.md:1: 121 columns, at most 120"),
    "a long line of a folder's page": (
        {"perf/README.md": "a" * 121},
        "perf/README.md:1: 121 columns, at most 120",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(
    structure: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    files, expected = FAULTS[name]
    write(tmp_path, CLEAN | files)
    faults = find_faults(structure, tmp_path, capsys)
    assert expected in faults[0]
