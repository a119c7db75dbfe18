"""Fail when the structure of the package breaks a rule of CONTRIBUTING.md.

usage: structure.py CHECKOUT      Prints FILE:LINE and the broken rule; exits 1 if there is one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_ENTRIES = 12
MAX_LINES = 400
MAX_FUNCTION_IMPORTS = 60
MAX_FLOW_PARAMETERS = 5
MAX_DOC_COLUMNS = 120
SHARED_PREFIX = 3
"""So many siblings with one prefix are a folder that is not there."""
ROOT_MODULES = {"__init__.py", "__init__.pyi", "__main__.py", "errors.py", "py.typed"}
WORDS = frozenset(
    [
        "told",
        "asked",
        "said",
        "kept",
        "held",
        "lest",
        "whoever",
        "nobody",
        "somebody",
        "strangers",
        "deaf",
        "dear",
    ]
)
"""In no identifier."""
PROSE_WORDS = frozenset(["whoever", "nobody", "somebody", "strangers", "deaf", "dear"])
"""In no docstring, no message and no page."""
LAYOUT_FILE = "benchmark/layout.py"
"""Names of the published layout and of a run's folder are its constants ``…_FILE(S)`` and ``…_FOLDER(S)``."""
PROTOCOLS = {"openai-chat": 1, "openai-responses": 1, "openai": 3, "anthropic": 7}
"""In how many files at most a protocol is named."""


class Module:
    """A parsed module of the package; ``path`` is relative to the package."""

    def __init__(self, package: Path, path: Path) -> None:
        self.path = path.relative_to(package).as_posix()
        self.text = path.read_text("utf-8")
        self.tree = ast.parse(self.text)
        parts = ["codetaste", *path.relative_to(package).with_suffix("").parts]
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)


def folder_faults(package: Path) -> Iterator[str]:
    """Check the size of folders, file-name prefixes and what stands at the root."""
    for folder in [package, *(path for path in sorted(package.rglob("*")) if path.is_dir())]:
        entries = [
            path
            for path in folder.iterdir()
            if path.name not in {"__init__.py", "__pycache__"} and not path.name.endswith(".pyc")
        ]
        where = folder.relative_to(package).as_posix()
        if folder == package:
            for path in entries:
                if path.is_file() and path.name not in ROOT_MODULES:
                    yield f"{path.name}: only {', '.join(sorted(ROOT_MODULES))} stand at the root"
            continue
        if "__pycache__" in folder.parts:
            continue
        if len(entries) > MAX_ENTRIES:
            yield f"{where}/: {len(entries)} entries, at most {MAX_ENTRIES}"
        prefixes = Counter(path.stem.split("_")[0] for path in entries)
        for prefix, count in prefixes.items():
            if count >= SHARED_PREFIX:
                yield f"{where}/: {count} entries begin with {prefix!r}: make it a folder"


def length_faults(modules: list[Module]) -> Iterator[str]:
    """Check that no module is too long."""
    for module in modules:
        lines = module.text.count("\n")
        if lines > MAX_LINES:
            yield f"{module.path}: {lines} lines, at most {MAX_LINES}"


def imported(module: Module, names: frozenset[str]) -> set[str]:
    """Return the modules that ``module`` imports anywhere, for types only included."""
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # One dot is the module's own package, which is the module itself if that is an __init__.
            folder = module.name.split(".")[: -node.level + module.is_package or None] if node.level else []
            origin = ".".join([*folder, *filter(None, [node.module])])
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                found.add(inner if inner in names else origin)
    return (found & names) - {module.name}


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components with more than one node (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            cut = stack.index(node)
            component = stack[cut:]
            del stack[cut:]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def circle_faults(modules: list[Module]) -> Iterator[str]:
    """Check that no modules import each other in a circle, type-only and deferred imports counted."""
    names = frozenset(module.name for module in modules)
    for component in circles({module.name: imported(module, names) for module in modules}):
        yield f"these import each other in a circle: {', '.join(component)}"


def class_faults(modules: list[Module]) -> Iterator[str]:
    """Check that a public class name occurs once in the package."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{module.path}:{node.lineno}")
    for name, where in sorted(places.items()):
        if len(where) > 1:
            yield f"{', '.join(where)}: the class name {name} occurs {len(where)} times"


def parts_of(identifier: str) -> set[str]:
    """Split an identifier at underscores and camel humps, in lower case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", identifier)
    return {part for part in spaced.lower().split("_") if part}


def identifiers(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every identifier that a module defines, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname, node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, node.lineno


def name_faults(modules: list[Module]) -> Iterator[str]:
    """Check identifiers and file names for words that hide what is meant."""
    for module in modules:
        for name, line in sorted(set(identifiers(module.tree))):
            for word in sorted(parts_of(name) & WORDS):
                yield f"{module.path}:{line}: the identifier {name} has the word {word!r}"
        for word in sorted(parts_of(Path(module.path).stem) & WORDS):
            yield f"{module.path}: the file name has the word {word!r}"


def prose_faults(modules: list[Module]) -> Iterator[str]:
    """Check docstrings and messages for words that hide what is meant."""
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for word in sorted(set(re.findall(r"\b[a-z]+\b(?!:)", node.value.lower())) & PROSE_WORDS):
                    yield f"{module.path}:{node.lineno}: a text has the word {word!r}"


def pages(checkout: Path) -> list[Path]:
    """Return the pages: those at the root, the README of each folder, and docs."""
    folders = sorted(checkout.glob("[!.]*/README.md"))
    docs = [path for path in sorted((checkout / "docs").rglob("*.md")) if path not in folders]
    return [*sorted(checkout.glob("*.md")), *folders, *docs]


def page_faults(checkout: Path) -> Iterator[str]:
    """Check pages and prompts, code in them included, for words that hide what is meant."""
    prompts = [path for path in sorted((checkout / "prompts").rglob("*.md")) if path.name != "README.md"]
    for path in [*pages(checkout), *prompts]:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            for word in sorted(set(re.findall(r"\b[a-z]+\b(?!:)", line.lower())) & PROSE_WORDS):
                yield f"{path.relative_to(checkout)}:{number}: a text has the word {word!r}"


def texts(module: Module) -> Iterator[tuple[str, int]]:
    """Yield every literal text of a module that is no docstring, with its line."""
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value, node.lineno


def layout_names(modules: list[Module]) -> set[str]:
    """Return the file and folder names that the module of the published layout defines."""
    found: set[str] = set()
    for module in modules:
        if module.path != LAYOUT_FILE:
            continue
        for node in module.tree.body:
            if isinstance(node, ast.Assign) and re.search(r"_(FILE|FOLDER)S?$", ast.unparse(node.targets[0])):
                values = [node.value, *(node.value.values if isinstance(node.value, ast.Dict) else [])]
                found |= {
                    value.value.rpartition("/")[2]
                    for value in values
                    if isinstance(value, ast.Constant) and isinstance(value.value, str)
                }
    return found


def literal_faults(modules: list[Module]) -> Iterator[str]:
    """Check that names of the published layout and of protocols stand where they belong."""
    layout = layout_names(modules)
    places: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules:
        for text, line in texts(module):
            if text in PROTOCOLS:
                places[text].add(module.path)
            # What is on a floor below the layout cannot mean its names: "outputs" there is a word.
            below = module.path == LAYOUT_FILE or module.path.startswith("sandbox/")
            if not below and " " not in text and layout & set(text.split("/")):
                yield f"{module.path}:{line}: {text!r} is a name of {LAYOUT_FILE}"
    for name, where in places.items():
        if len(where) > PROTOCOLS[name]:
            yield f"{name!r} is named in {len(where)} files: {', '.join(sorted(where))}"


def function_imports(tree: ast.Module) -> Iterator[int]:
    """Yield the line of each import that runs when a function is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Import | ast.ImportFrom):
                    yield inner.lineno


def import_faults(modules: list[Module]) -> Iterator[str]:
    """Check that imports inside functions stay the exception."""
    counts = {module.path: len(set(function_imports(module.tree))) for module in modules}
    if sum(counts.values()) > MAX_FUNCTION_IMPORTS:
        most = ", ".join(f"{path} {count}" for path, count in Counter(counts).most_common(8))
        yield f"{sum(counts.values())} imports inside functions, at most {MAX_FUNCTION_IMPORTS}: {most}"


def parameter_faults(modules: list[Module]) -> Iterator[str]:
    """Check that a flow's functions take few parameters."""
    for module in modules:
        if not module.path.startswith("flows/"):
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = sum(argument.arg not in {"self", "cls"} for argument in arguments)
                if count > MAX_FLOW_PARAMETERS:
                    at = f"{module.path}:{node.lineno}: {node.name}"
                    yield f"{at} has {count} parameters, at most {MAX_FLOW_PARAMETERS}"


def command_faults(package: Path, modules: list[Module]) -> Iterator[str]:
    """Check that each subcommand is declared where it is implemented: one import path, one module."""
    known = {module.name for module in modules}
    app = (package / "cli/app.py").read_text("utf-8")
    targets = re.findall(r'"(codetaste\.[\w.]+):(\w+)"', app)
    for name, _ in targets:
        if name not in known:
            yield f"cli/app.py: there is no module {name}"
    listed = {name for name, _ in targets}
    for module in modules:
        inside = module.path.startswith("cli/commands/") and not module.path.endswith("__init__.py")
        if inside and module.name not in listed and module.name.rpartition(".")[0] not in listed:
            yield f"{module.path}: cli/app.py registers no command of this module"


def line_faults(checkout: Path) -> Iterator[str]:
    """Check that lines of the documentation can be reviewed; tables and fenced code excepted."""
    for path in pages(checkout):
        fenced = False
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            if len(line) > MAX_DOC_COLUMNS and not fenced and not line.startswith("|"):
                yield f"{path.relative_to(checkout)}:{number}: {len(line)} columns, at most {MAX_DOC_COLUMNS}"


def main(checkout: Path) -> int:
    """Run every check and print what is wrong."""
    package = checkout / "src" / "codetaste"
    modules = [Module(package, path) for path in sorted(package.rglob("*.py"))]
    shipped, around = (
        [Module(checkout, path) for folder in folders for path in sorted((checkout / folder).rglob("*.py"))]
        for folders in (("examples", "agents"), ("tests", "perf", ".ci"))
    )
    faults = [
        *folder_faults(package),
        *length_faults(modules),
        *circle_faults(modules),
        *class_faults(modules),
        *name_faults([*modules, *shipped, *around]),
        *prose_faults([*modules, *shipped]),
        *page_faults(checkout),
        *literal_faults(modules),
        *import_faults(modules),
        *parameter_faults(modules),
        *command_faults(package, modules),
        *line_faults(checkout),
    ]
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    sys.stdout.write(f"{len(modules)} modules, {len(faults)} faults\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
