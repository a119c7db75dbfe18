"""docs/architecture.md shows the rooms and floors; what CONTRIBUTING.md and docs/walks.md name exists."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from support.docs.module_table import render_page

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGE = CHECKOUT / "src" / "codetaste"
PAGE = (CHECKOUT / "docs" / "architecture.md").read_text("utf-8")
WALKS = (CHECKOUT / "docs" / "walks.md").read_text("utf-8")


def rooms_in(folder: Path) -> set[str]:
    """Return the names of the modules and packages directly in the package."""
    modules = {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}
    return modules | {path.parent.name for path in folder.glob("*/__init__.py")}


def floors_on_the_page() -> dict[str, int]:
    """Return the floor of each room in the page's table: ``| 2 | `sandbox/` | … |``."""
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", PAGE, re.MULTILINE)
    return {
        name.removesuffix("/").removesuffix(".py"): int(floor)
        for floor, names in rows
        for name in re.findall(r"`([\w./]+)`", names)
    }


def layers_of_the_contract() -> list[set[str]]:
    """Return the layers of the import contract that exist, bottom first."""
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    layers = [
        {name.strip() for name in layer.split("|") if not name.strip().startswith("(")}
        for layer in reversed(contract["layers"])
    ]
    return [layer for layer in layers if layer]


def imports_between_rooms() -> set[tuple[str, str]]:
    """Return each (importing room, imported room) of the source, also in functions and for types."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else []
            )
            if isinstance(node, ast.ImportFrom) and node.module == "codetaste":
                names = [f"codetaste.{alias.name}" for alias in node.names if alias.name != "__version__"]
            found |= {(room, name.split(".")[1]) for name in names if name.startswith("codetaste.")}
    return {(importer, imported) for importer, imported in found if importer not in {imported, "__init__"}}


def test_page_shows_all_rooms() -> None:
    assert set(floors_on_the_page()) == rooms_in(PACKAGE)


def test_page_names_every_folder_and_module() -> None:
    assert render_page(PAGE) == PAGE, "renew it: .venv/bin/python tests/support/docs/module_table.py"


def functions_in(path: Path) -> set[str]:
    """Return the qualified names of all functions in a file; a nested one is ``outer.inner``."""
    found = set()
    remaining: list[tuple[str, ast.AST]] = [("", ast.parse(path.read_text("utf-8")))]
    while remaining:
        prefix, node = remaining.pop()
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}.{child.name}".lstrip(".")
                found.add(name)
            remaining.append((name, child))
    return found


def stations(walk: str) -> list[tuple[str, str]]:
    """Return file and function of every station of one walk, or of the whole page, in order."""
    rows = re.findall(r"^1\. `([\w/]+\.py)`: (.+)$", walk.replace("\n   ", " "), re.MULTILINE)
    return [(file, name) for file, names in rows for name in re.findall(r"`([^`]+)`", names)]


def test_every_file_of_where_to_look_is_there() -> None:
    text = (CHECKOUT / "docs" / "where-to-look.md").read_text("utf-8")
    files = re.findall(r"^\| .+ \| `([\w/.]+)` \|$", text, re.MULTILINE)
    assert len(files) == 30
    assert [file for file in files if not (PACKAGE / file).is_file()] == []


def test_every_function_of_the_walks_exists() -> None:
    listed = stations(WALKS)
    assert len(listed) > 100
    missing = [
        f"{file}: {name}"
        for file, name in listed
        if not (PACKAGE / file).exists() or name not in functions_in(PACKAGE / file)
    ]
    assert missing == []


@pytest.mark.parametrize(("title", "row"), [("One trial", "one trial"), ("One rule", "one rule")])
def test_the_numbers_of_a_walk_are_those_of_its_list(title: str, row: str) -> None:
    (walk,) = [part for part in WALKS.split("\n## ") if part.startswith(title)]
    files = {file for file, _ in stations(walk)}
    rooms = {file.partition("/")[0] for file in files}
    assert f"| {row} | {len(stations(walk))} | {len(files)} | {len(rooms)} |" in WALKS
    assert f"({len(files)} files in {len(rooms)} rooms; before" in " ".join(PAGE.split())


def test_the_page_and_the_import_contract_have_the_same_floors() -> None:
    floors = floors_on_the_page()
    layers = layers_of_the_contract()
    assert {name for layer in layers for name in layer} == set(floors)
    numbers = [{floors[name] for name in layer} for layer in layers]
    assert all(len(number) == 1 for number in numbers), "one layer of the contract lies on one floor"
    heights = [number.pop() for number in numbers]
    assert heights == sorted(set(heights))


def test_every_room_imports_only_from_floors_below_it() -> None:
    floors = floors_on_the_page()
    imports = imports_between_rooms()
    assert ("rules", "errors") in imports
    wrong = [(importer, imported) for importer, imported in imports if floors[importer] <= floors[imported]]
    assert wrong == []


def test_every_file_on_the_page_exists() -> None:
    named = re.findall(r"`((?:src|tests|docs|\.ci|examples|prompts|agents|runs|perf)/[\w./-]*)`", PAGE)
    assert named
    assert [name for name in named if not (CHECKOUT / name).exists()] == []
    floors = floors_on_the_page()
    inside = re.findall(r"`(\w+/[\w/]+\.\w+)`", PAGE)
    assert inside
    assert [name for name in inside if name.split("/")[0] in floors and not (PACKAGE / name).is_file()] == []


def test_every_file_and_definition_in_the_recipes_exists() -> None:
    page = re.sub(r"```.*?```", "", (CHECKOUT / "CONTRIBUTING.md").read_text("utf-8"), flags=re.DOTALL)
    recipes = page.partition("## Where to add what")[2]
    assert len(re.findall(r"^\*\*An? [a-z]+\.\*\*", recipes, re.MULTILINE)) == 6
    known = {path.name for folder in ("src", "agents") for path in (CHECKOUT / folder).rglob("*")}
    source = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    for name in re.findall(r"`([\w./-]+)`", page):
        if "/" in name and not name.startswith("OWNER/"):
            assert (CHECKOUT / name).exists(), name
        elif "." in name:
            assert name in known or (CHECKOUT / name).exists(), name
    for name in re.findall(r"`(\w+)`", recipes):
        assert re.search(rf"\b{name}\b", source), name
    steps = re.findall(r"^\d\. `([\w./]+)`: (.+)$", recipes, re.MULTILINE)
    assert len(steps) == 6
    for file, text in steps:
        for name in re.findall(r"`(\w+)`", text):
            assert re.search(rf"\b{name}\b", (CHECKOUT / file).read_text("utf-8")), f"{file}: {name}"
