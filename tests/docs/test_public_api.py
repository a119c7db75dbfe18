"""docs/api.md names what users import; importing any module of codetaste loads no heavy library."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import codetaste
from codetaste.agent.tool import Tool
from support.site.synthetic import Size, write_results

CHECKOUT = Path(__file__).resolve().parents[2]

HEAVY = (
    "aiodocker",
    "anthropic",
    "openai",
    "httpx",
    "pypi_simple",
    "requests",
    "rich",
    "ruamel.yaml",
    "jinja2",
)

USERS = {
    "aiodocker": (
        "codetaste.cli.commands.image.build",
        "codetaste.cli.commands.image",
        "codetaste.cli.commands.installation.doctor",
        "codetaste.environment.base_image",
        "codetaste.environment.images",
        "codetaste.environment.leak_search",
        "codetaste.flows.environment",
        "codetaste.sandbox.docker",
    ),
    "jinja2": ("codetaste.cli.commands.runs.view", "codetaste.site"),
    "rich": ("codetaste.report.live.terminal",),
    "ruamel.yaml": ("codetaste.rules.yaml.composer",),
}
"""The only modules, and folders of modules, that may load a library; they are imported last."""

IMPORT_ONE_BY_ONE = """
import importlib, sys
heavy = set(sys.argv[1].split(","))
for name in sys.argv[2].split(","):
    importlib.import_module(name)
    for library in sorted(heavy & set(sys.modules)):
        print(f"importing {name} loads {library}")
    heavy -= set(sys.modules)
"""


def test_importing_any_module_loads_no_heavy_library() -> None:
    modules = sorted(module.name for module in pkgutil.walk_packages(codetaste.__path__, "codetaste."))
    assert "codetaste.errors" in modules
    modules.sort(key=lambda name: name.startswith(tuple(user for users in USERS.values() for user in users)))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_ONE_BY_ONE, ",".join(HEAVY), ",".join(modules)],
        capture_output=True,
        text=True,
        check=False,
    )
    expected = [f"importing {users[0]} loads {library}" for library, users in USERS.items()]
    assert (done.stdout.splitlines(), done.stderr, done.returncode) == (expected, "", 0)


def names_on_the_page() -> list[tuple[str, str]]:
    """Return (module, name) of every name in docs/api.md."""
    names = []
    for section in re.split(r"^## ", (CHECKOUT / "docs" / "api.md").read_text("utf-8"), flags=re.MULTILINE)[
        1:
    ]:
        module = section.split("`")[1]
        for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE):
            names += [(module, name) for name in re.findall(r"`(\w+)`", row)]
    return names


def test_page_lists_names_of_many_modules() -> None:
    listed = names_on_the_page()
    assert len(set(listed)) == len(listed) > 25
    assert ("codetaste.agent.tool", "ToolAnswer") in listed


@pytest.mark.parametrize(("module", "name"), names_on_the_page())
def test_a_listed_name_is_defined_in_its_module_and_documented(module: str, name: str) -> None:
    found = getattr(importlib.import_module(module), name)
    defined = found.function if isinstance(found, Tool) else found
    assert defined.__module__ == module
    assert inspect.getdoc(defined)


def test_package_is_marked_as_typed() -> None:
    assert (Path(codetaste.__file__).parent / "py.typed").is_file()


def test_the_package_has_exactly_the_promised_names() -> None:
    assert sorted(codetaste.__all__) == [
        "CodetasteError",
        "ConfigError",
        "FinishedRun",
        "JobResult",
        "OutcomeFacet",
        "Results",
        "RuleVerdict",
        "Tool",
        "ToolAnswer",
        "ToolError",
        "TrialResult",
        "load",
        "run",
        "tool",
    ]
    introduction = (CHECKOUT / "docs" / "api.md").read_text("utf-8").partition("\n## ")[0]
    listed = {name for row in re.findall(r"^\| (`.*?) \|", introduction, re.MULTILINE) for name in words(row)}
    assert listed | {"Tool", "ToolAnswer"} == set(codetaste.__all__)


def words(row: str) -> list[str]:
    return re.findall(r"`(\w+)`", row)


@pytest.mark.parametrize("name", codetaste.__all__)
def test_a_promised_name_is_there_declared_and_documented(name: str) -> None:
    found = getattr(codetaste, name)
    assert inspect.getdoc(found)
    assert name in dir(codetaste)
    stub = ast.parse(Path(codetaste.__file__).with_suffix(".pyi").read_text("utf-8"))
    declared = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    module, origin = declared[name]
    declared_object = getattr(importlib.import_module(module or ""), origin)
    assert found is declared_object or (name == "run" and found.__call__ is declared_object)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'lode'"):
        codetaste.lode  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_imports_none_of_its_modules() -> None:
    code = "import sys, codetaste; print([name for name in sys.modules if name.startswith('codetaste.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_package_that_was_imported_can_still_be_called() -> None:
    code = (
        "import codetaste, codetaste.run.config as config; codetaste.load; "
        "print(callable(codetaste.run), config.Config)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True <class 'codetaste.run.config.Config'>\n"


@pytest.mark.heavy
def test_the_example_of_a_run_gives_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(CHECKOUT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(CHECKOUT / "docs" / "api.md"), module_relative=False)
    assert (found.failed, found.attempted > 0) == (0, True)


def test_examples_of_rows_give_what_page_and_docstring_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_results(tmp_path, Size(instances=1, agents=2, settings=1, lines=0.01, rules=2, turns=1))
    (tmp_path / "runs").mkdir()
    (tmp_path / "synthetic").rename(tmp_path / "runs/compare")
    monkeypatch.chdir(tmp_path)
    page = doctest.testfile(str(CHECKOUT / "docs" / "rows.md"), module_relative=False)
    docstring = doctest.testmod(importlib.import_module("codetaste.results.load"))
    assert (page.failed, docstring.failed) == (0, 0)
    assert min(page.attempted, docstring.attempted) > 2


SCRIPT = """
import codetaste
from codetaste.run.config import Config

finished = codetaste.run("config.toml")
code: int = finished.exit_code
results: codetaste.Results = codetaste.load("runs/compare")
shares: list[float | None] = [trial.alignment for trial in results.trials]
rules: list[codetaste.RuleVerdict] = results.rules
seconds: float = sum(job.waiting_s for job in results.jobs)
section: type[Config] = Config


@codetaste.tool
async def look(context: object, path: str) -> str:
    \"\"\"Look at a file.

    Args:
        path: The file.
    \"\"\"
    return path
"""


@pytest.mark.heavy
def test_a_users_script_is_typed(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout.splitlines()[-1:], done.returncode) == (
        ["Success: no issues found in 1 source file"],
        0,
    )
