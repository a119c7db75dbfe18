"""The parts of build and configuration files that decide how tests are collected and run.

A part is a named text; comments, order and layout do not matter. A file that cannot be parsed is one part.
"""

from __future__ import annotations

import configparser
import json
import re
from typing import TYPE_CHECKING, Any

import tomli

from codetaste.evaluation.evasion.lexical import without_regions
from codetaste.evaluation.test_runs.cheating.patterns.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Sections = dict[str, str]
"""Parts by name, such as ``tool.pytest`` or ``scripts.test``."""

_WHOLE = re.compile(
    r"(?:^|/)(?:\.?pytest\.toml|(?:jest|vitest|karma|playwright|cypress|ava|web-test-runner|wdio|stryker)"
    r"[\w.-]*\.(?:config|conf|workspace)\.[\w.]+"
    r"|jest[\w.-]*\.json|\.mocharc(?:\.\w+)?|mocha\.opts|\.taprc|jasmine\.json|\.nycrc(?:\.\w+)?"
    r"|phpunit[\w.-]*\.xml(?:\.dist)?|\.rspec|noxfile\.py|nose2?\.cfg|testng[\w.-]*\.xml"
    r"|junit-platform\.properties|\.npmrc|\.yarnrc(?:\.yml)?|\.pnpmfile\.cjs|\.envrc|\.bazelrc"
    r"|CTest(?:Testfile|Custom)\.cmake|[\w.-]+\.runsettings|xunit\.runner\.json|bunfig\.toml|tox\.toml"
    r"|\.babelrc(?:\.\w+)?|babel\.config\.\w+|\.swcrc|rust-toolchain(?:\.toml)?"
    r"|\.(?:python-version|nvmrc|node-version|tool-versions)|mise\.toml)$"
    r"|(?:^|/)\.config/nextest\.toml$|(?:^|/)\.cargo/config(?:\.toml)?$"
    r"|(?:^|/)META-INF/services/(?:org\.junit|org\.testng|org\.spockframework)[\w.]*$"
)
"""Files that are nothing but configuration of a test runner, or of the program that starts it."""
_BUILD_FILES = {
    "just": re.compile(r"[jJ]ustfile|\.justfile"),
    "task": re.compile(r"[tT]askfile(?:\.dist)?\.ya?ml"),
    "rake": re.compile(r"[rR]akefile(?:\.rb)?"),
    "gulp": re.compile(r"gulpfile\.\w+"),
    "grunt": re.compile(r"Gruntfile\.\w+"),
    "nx": re.compile(r"nx\.json|project\.json"),
    "turbo": re.compile(r"turbo\.json"),
    "lerna": re.compile(r"lerna\.json"),
    "meson": re.compile(r"meson\.build"),
    "invoke": re.compile(r"tasks\.py"),
}
"""Files that say what a program does, if the scripts call that program."""
_MAX_PATH_CHARS = 1000
_MAX_BYTES = 1024**2
_BLOCK_CHARS = 20_000
_RUNNER_PACKAGES = re.compile(
    r"(?:ts-|@types/)?(?:jest|mocha|vitest|ava|tap|tape|jasmine|karma|nyc|c8|playwright|cypress|should|chai|sinon"
    r"|expect|uvu|qunit|power-assert|supertest)(?:-.*)?"
    r"|@(?:jest|vitest|playwright|swc/jest|testing-library)(?:/.*)?|babel-jest"
)
_PACKAGE_KEYS = ("jest", "mocha", "vitest", "ava", "tap", "nyc", "c8", "karma", "imports", "_moduleAliases")
_SCRIPT_NAME = re.compile(
    r"(?:pre|post)?(?:test|tests|spec|unit|e2e|mocha|jest|vitest|ci)(?:[:._-].*)?|.*[:._-]tests?"
)
_INSTALL_SCRIPTS = {"preinstall", "install", "postinstall", "prepare"}
_INI_SECTIONS = re.compile(r"pytest|tool:pytest|nosetests|unittest|testenv.*|aliases|coverage:run")
_CARGO_TARGETS = ("test", "harness", "doctest", "required-features")


def find_sections(content: bytes, path: str, script: str) -> Sections:
    """Return the parts of the file ``path`` that concern tests; none of most files.

    Args:
        content: the text of the file.
        path: its path.
        script: the texts of the environment's scripts, which say what is called.
    """
    if len(path) > _MAX_PATH_CHARS:
        return {}
    name = path.rpartition("/")[2]
    reader = _READERS.get(name) or next(
        (read for end, read in _BY_ENDING.items() if name.endswith(end)), None
    )
    if _WHOLE.search(path) or any(
        pattern.fullmatch(name) and re.search(rf"(?<![\w.-]){program}(?![\w.-])", script)
        for program, pattern in _BUILD_FILES.items()
    ):
        return {name: _squeeze(without_regions(content, path, strings=False).decode("utf-8", "replace"))}
    if _VITE.fullmatch(name):
        reader = _vite
    if reader is None:
        return {}
    text = content.decode("utf-8", "replace")
    if len(content) > _MAX_BYTES:
        return {name: _squeeze(text)}
    try:
        return {key: value for key, value in reader(text, script) if value}
    except (ValueError, RecursionError, configparser.Error):
        return {name: _squeeze(text)}


def _package_json(text: str, script: str) -> Iterator[tuple[str, str]]:
    data = json.loads(text) if text.strip() else {}
    if not isinstance(data, dict):
        return
    called = set(re.findall(r"\b(?:npm|yarn|pnpm|bun)\s+(?:run(?:-script)?\s+)?([\w:.-]+)", script))
    for name, value in _table(data, "scripts").items():
        if _SCRIPT_NAME.fullmatch(name) or name in called | _INSTALL_SCRIPTS:
            yield f"scripts.{name}", _text(value)
    for key in _PACKAGE_KEYS:
        yield key, _text(data.get(key))
    for key in ("dependencies", "devDependencies", "overrides", "resolutions"):
        for name, value in _table(data, key).items():
            if _RUNNER_PACKAGES.fullmatch(name):
                yield f"{key}.{name}", _text(value)


def _pyproject(text: str, script: str) -> Iterator[tuple[str, str]]:
    data = tomli.loads(text)
    tool = _table(data, "tool")
    for name in ("pytest", "tox", "nox", "nose"):
        yield f"tool.{name}", _text(tool.get(name))
    for name in ("hatch", "pdm", "poe", "taskipy", "uv", "rye"):
        yield from _test_tasks(f"tool.{name}", tool.get(name), script)
    project, build = _table(data, "project"), _table(data, "build-system")
    for name, programs in (("project", project), ("tool.poetry", _table(tool, "poetry"))):
        yield from _tools(f"{name}.scripts", _table(programs, "scripts"))
    if "backend-path" in build:
        yield "build-system", _text([build["backend-path"], build.get("build-backend")])
    plugins = _table(project, "entry-points").get("pytest11")
    yield "project.entry-points.pytest11", _text(plugins)
    yield "tool.poetry.plugins.pytest11", _text(_table(_table(tool, "poetry"), "plugins").get("pytest11"))


def _tools(path: str, programs: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the programs that a setup installs in the place of those that the scripts call."""
    for name, value in programs.items():
        if name.strip() in TOOLS:
            yield f"{path}.{name.strip()}", _text(value)


def _test_tasks(path: str, data: object, script: str, depth: int = 5) -> Iterator[tuple[str, str]]:
    """Yield what is below keys that name tests, such as ``tool.hatch.envs.test``."""
    if not isinstance(data, dict) or not depth:
        return
    for key, value in data.items():
        if _SCRIPT_NAME.fullmatch(str(key)):
            yield f"{path}.{key}", _text(value)
        else:
            yield from _test_tasks(f"{path}.{key}", value, script, depth - 1)


def _ini(text: str, _: str) -> Iterator[tuple[str, str]]:
    parser = configparser.ConfigParser(
        interpolation=None, strict=False, allow_no_value=True, delimiters=("=",)
    )
    parser.read_string(text)
    for name in parser.sections():
        if _INI_SECTIONS.fullmatch(name):
            yield f"[{name}]", _text(dict(parser.items(name)))
    points = dict(parser.items("options.entry_points")) if parser.has_section("options.entry_points") else {}
    yield "[options.entry_points] pytest11", _squeeze(points.get("pytest11") or "")
    lines = (line.partition("=") for line in (points.get("console_scripts") or "").splitlines())
    yield from _tools("[options.entry_points]", {name: value.strip() for name, _, value in lines})


def _cargo(text: str, _: str) -> Iterator[tuple[str, str]]:
    data = tomli.loads(text)
    for name in ("lib", "test", "bin"):
        found = data.get(name)
        for target in found if isinstance(found, list) else [found]:
            if isinstance(target, dict):
                settings = {key: target[key] for key in _CARGO_TARGETS if key in target}
                yield f"{name} {target.get('name', '')}".strip(), _text(settings or None)
    package = _table(data, "package")
    for key in ("autotests", "autobins", "build"):
        yield f"package.{key}", _text(package.get(key))
    yield "profile.test", _text(_table(data, "profile").get("test"))
    for key in ("patch", "replace"):
        yield key, _text(data.get(key))


_POM_PLUGIN = re.compile(
    r"<plugin>(?:(?!</?plugin>)[\s\S])*?maven-(?:surefire|failsafe)-plugin(?:(?!<plugin>)[\s\S])*?</plugin>"
)
_POM_PROPERTY = re.compile(
    r"<((?:maven\.test\.|surefire|failsafe|skip\w*Tests?|skipITs|argLine|testFailureIgnore)[\w.-]*)>([^<]*)</"
    r"|<(testSourceDirectory)>([^<]*)</"
)


def _pom(text: str, _: str) -> Iterator[tuple[str, str]]:
    text = re.sub(r"<!--[\s\S]*?(?:-->|\Z)", "", text)  # one without an end is searched for once
    plugins = [re.sub(r"<version>[^<]*</version>", "", plugin) for plugin in _POM_PLUGIN.findall(text)]
    yield "surefire", " ".join(map(_squeeze, plugins))
    inside = _POM_PLUGIN.sub("", text)
    for name, value, directory, place in _POM_PROPERTY.findall(inside):
        yield name or directory, value or place


_GRADLE_BLOCK = re.compile(
    r"(?<![\w.])(?:tasks\.)?(?:test|testOptions|integrationTest|withType[<(]\s*Test\b[^{]{0,80}"
    r"|named[<(][^{}]{0,40}\btest\b[^{]{0,80}|(?:configure|all)Each)\s*\{"
)
_GRADLE_LINE = re.compile(
    r"^.*\b(?:useJUnit\w*|useTestNG|ignoreFailures|test\.enabled|excludeTestsMatching)\b.*$", re.MULTILINE
)


def _gradle(text: str, _: str) -> Iterator[tuple[str, str]]:
    text = without_regions(text.encode("utf-8", "replace"), "x.java", strings=False).decode(
        "utf-8", "replace"
    )
    at = 0
    while match := _GRADLE_BLOCK.search(text, at):
        block = _block(text, match.end())
        at = match.end() + len(block)  # what is in a block is read once
        yield f"{_squeeze(match[0])}…", _squeeze(block)
    yield "tests", " ".join(sorted(map(_squeeze, _GRADLE_LINE.findall(text))))


def _block(text: str, at: int) -> str:
    """Return what is before the brace that closes the one before ``at``."""
    depth, rest = 1, text[at : at + _BLOCK_CHARS]
    for brace in re.finditer(r"[{}]", rest):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return rest[: brace.start()]
    return rest


_RULE = re.compile(
    r"^(?P<targets>[\w./-][\w./ -]*+):(?![=:])(?P<needs>[^\n]*)\n(?P<recipe>(?:\t[^\n]*\n|[ \t]*\n)*)",
    re.MULTILINE,
)
_VARIABLE = re.compile(
    r"^(?:export\s+)?(?P<name>\.?\w+)[ \t]*+[:?+]?=(?P<value>(?:[^\\\n]|\\.|\\\n)*)$", re.MULTILINE
)


_OF_MAKE = {"SHELL", ".SHELLFLAGS", "MAKEFLAGS", "GNUMAKEFLAGS"}
_MAKE_LINE = re.compile(r"^\.(?:IGNORE|POSIX|ONESHELL)\b.*$", re.MULTILINE)


def _makefile(text: str, script: str) -> Iterator[tuple[str, str]]:
    """Yield the rules that the scripts call or that are named after tests, and the variables they use."""
    text = f"{text}\n"
    called = {word for words in re.findall(r"\bmake\b([^\n;|&]*)", script) for word in words.split()}
    used = set(re.findall(r"\w+", script))
    for rule in _RULE.finditer(text):
        targets = rule["targets"].split()
        if any(
            target in called or re.fullmatch(r"(?:.*[-_])?tests?(?:[-_].*)?", target) for target in targets
        ):
            body = f"{rule['needs']} {rule['recipe']}"
            used |= set(re.findall(r"\$[({](\w+)[)}]", body))
            yield f"rule {rule['targets']}", _squeeze(body)
    for variable in _VARIABLE.finditer(text):
        if variable["name"] in used | _OF_MAKE and variable["name"].isupper():
            yield variable["name"], _squeeze(variable["value"].replace("\\\n", " "))
    yield "make", " ".join(map(_squeeze, _MAKE_LINE.findall(text)))


_REPLACED = re.compile(
    r"^(?:replace\s|\s)\s*(github\.com/(?:stretchr|onsi|smartystreets|google/go-cmp|golang/mock)\S*|gotest\.tools\S*"
    r"|gopkg\.in/check\S*|go\.uber\.org/mock)(?: v\S+)?\s*=>([^\n]*)$",
    re.MULTILINE,
)


def _go_mod(text: str, _: str) -> Iterator[tuple[str, str]]:
    """Yield the packages of tests that are replaced."""
    for name, by in _REPLACED.findall(text):
        yield f"replace {name}", _squeeze(by)


_MAPPED = re.compile(r"\"([^\"\n]+)\"\s*:\s*(\[[^\]]{0,1000}\])")


def _tsconfig(text: str, _: str) -> Iterator[tuple[str, str]]:
    for name, places in _MAPPED.findall(text):
        if _RUNNER_PACKAGES.fullmatch(name):
            yield f"paths.{name}", _squeeze(places)


_VITE = re.compile(r"vite\.config\.\w+")
_VITE_TEST = re.compile(r"(?<![\w.])test\s*:\s*\{")


def _vite(text: str, _: str) -> Iterator[tuple[str, str]]:
    code = without_regions(text.encode("utf-8", "replace"), "x.ts", strings=False).decode("utf-8", "replace")
    if match := _VITE_TEST.search(code):
        yield "test", _squeeze(_block(code, match.end()))


def _deno(text: str, _: str) -> Iterator[tuple[str, str]]:
    data = json.loads(text) if text.strip() else {}
    if isinstance(data, dict):
        yield "test", _text(data.get("test"))
        for name, value in _table(data, "tasks").items():
            if _SCRIPT_NAME.fullmatch(name):
                yield f"tasks.{name}", _text(value)


_CMAKE_LINE = re.compile(
    r"^[^#\n]*\b(?:add_test|set_tests_properties|gtest_discover_tests|catch_discover_tests|enable_testing"
    r"|CTEST_\w+)\b.*$",
    re.MULTILINE | re.IGNORECASE,
)


def _cmake(text: str, _: str) -> Iterator[tuple[str, str]]:
    yield "tests", " ".join(sorted(map(_squeeze, _CMAKE_LINE.findall(text))))


_READERS: dict[str, Callable[[str, str], Iterator[tuple[str, str]]]] = {
    "package.json": _package_json,
    "pyproject.toml": _pyproject,
    "setup.cfg": _ini,
    "tox.ini": _ini,
    "pytest.ini": _ini,
    ".pytest.ini": _ini,
    "Cargo.toml": _cargo,
    "pom.xml": _pom,
    "build.gradle": _gradle,
    "build.gradle.kts": _gradle,
    "go.mod": _go_mod,
    "go.work": _go_mod,
    "tsconfig.json": _tsconfig,
    "tsconfig.base.json": _tsconfig,
    "tsconfig.test.json": _tsconfig,
    "tsconfig.spec.json": _tsconfig,
    "jsconfig.json": _tsconfig,
    "deno.json": _deno,
    "deno.jsonc": _deno,
    "CMakeLists.txt": _cmake,
    "Makefile": _makefile,
    "makefile": _makefile,
    "GNUmakefile": _makefile,
}
_BY_ENDING = {".gradle": _gradle, ".gradle.kts": _gradle, ".mk": _makefile}


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    found = data.get(key)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    return "" if value is None else json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)


def _squeeze(text: str) -> str:
    return " ".join(text.split())
