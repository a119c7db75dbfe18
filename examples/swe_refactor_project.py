"""Make the small Java project of swe-refactor.toml: a release of Commons CLI, and six refactorings of it.

``python examples/swe_refactor_project.py FOLDER`` fetches the sources and the tests of the release from the
Maven repository of this host, and makes a git repository of them: the release is its first commit, and each
further commit is one refactoring of SWE-Refactor's types.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from swe_refactor_models import Method, blocks, extract, find_method, indented, inline, read_method

from codetaste.console.command import run_command
from codetaste.console.streams import notify, print_result
from codetaste.core.paths import cache_dir
from codetaste.errors import ConfigError
from codetaste.java.artifacts.artifact_set import Artifact, ArtifactSet
from codetaste.java.artifacts.store import install_artifacts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Classes = dict[str, str]
    """The text of each class by its name."""
    Edit = Callable[[Classes], Classes]
    """Returns the classes that it changes."""

RELEASE = ArtifactSet(
    "commons-cli-1.4",
    (
        Artifact(
            "commons-cli",
            "commons-cli",
            "1.4",
            "sources",
            "59fd9d6ca09ade4f27bddd274fb842ea48fd92118a755d0a64cf60413cd1c3fc",
            63104,
        ),
        Artifact(
            "commons-cli",
            "commons-cli",
            "1.4",
            "test-sources",
            "1c136be509d76b843a81d0bf38edc76f04e6ff3ffbf3872c9602e1e873255efa",
            57339,
        ),
    ),
)
MAIN, TEST = "src/main/java", "src/test/java"
PACKAGE = "org/apache/commons/cli"
POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>commons-cli</artifactId><version>1.4</version>
  <properties>
    <maven.compiler.source>8</maven.compiler.source><maven.compiler.target>8</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version><scope>test</scope>
    </dependency>
  </dependencies>
  <build><plugins>
    <plugin><artifactId>maven-compiler-plugin</artifactId><version>3.11.0</version></plugin>
    <plugin><artifactId>maven-surefire-plugin</artifactId><version>3.2.5</version></plugin>
  </plugins></build>
</project>
"""
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC\n"
"""For Maven: half of its processor time."""


def extract_method(name: str, method: str, block: int, new: str, target: str | None = None) -> Edit:
    """Extract a block of a method of a class, counted from 0; with a ``target``, to that class."""

    def edit(classes: Classes) -> Classes:
        text = find_method(classes[name], method)
        found = read_method(text)
        static = " static" if found.is_static else ""
        modifiers = "static" if target else f"private{static}"
        receiver = f"{target}." if target else ""
        rest, extracted = extract(found, blocks(found)[block], new, modifiers, receiver)
        if target is None:
            return {name: _replace(classes[name], text, [rest, extracted])}
        return {
            name: _replace(classes[name], text, [rest]),
            target: _with(classes[target], extracted, classes[name]),
        }

    return edit


def inline_method(name: str, method: str, caller: str, caller_method: str) -> Edit:
    """Inline a method of a class into one of the same class, or of another."""

    def edit(classes: Classes) -> Classes:
        text, caller_text = find_method(classes[name], method), find_method(classes[caller], caller_method)
        inlined = inline(read_method(caller_text), read_method(text))
        if inlined is None:
            raise ConfigError(f"{caller_method} does not call {method}")
        changed = {name: _replace(classes[name], text, [])}
        return changed | {caller: _replace((classes | changed)[caller], caller_text, [inlined])}

    return edit


def move_method(name: str, method: str, target: str, new: str | None = None) -> Edit:
    """Move a static method to another class, perhaps under a new name; its callers follow."""

    def edit(classes: Classes) -> Classes:
        text, new_name = find_method(classes[name], method), new or method
        found = read_method(text)
        moved = Method(
            f"static {found.result}", new_name, found.parameters, found.throws, found.opening, found.body
        )
        changed = {
            each: re.sub(rf"(?<![\w.]){name}\.{method}\(", f"{target}.{new_name}(", code)
            for each, code in classes.items()
        }
        rest = re.sub(rf"(?<![\w.]){method}\(", f"{target}.{new_name}(", _replace(classes[name], text, []))
        changed |= {name: rest, target: _with(classes[target], moved, classes[name])}
        return {each: code for each, code in changed.items() if code != classes[each]}

    return edit


def _replace(source: str, text: str, methods: Sequence[Method]) -> str:
    """Put ``methods`` in the place of the lines of one, with the documentation of that one."""
    documentation = re.match(r"\s*/\*.*?\*/\n", text, re.DOTALL)
    new = "\n".join("\n".join(indented(str(each).split("\n"))) + "\n" for each in methods)
    if not methods:
        return source.replace(f"\n{text}", "", 1)
    return source.replace(text, (documentation[0] if documentation else "") + new, 1)


def _with(source: str, method: Method, origin: str) -> str:
    """Return a class with one more method, and with the imports of ``origin`` that it needs."""
    body, end, _ = source.rpartition("}")
    code = "\n".join(indented(str(method).split("\n")))
    needed = [
        line
        for line in re.findall(r"^import [\w.]+;$", origin, re.MULTILINE)
        if line not in source and re.search(rf"\b{line.rpartition('.')[2][:-1]}\b", code)
    ]
    imports = "".join(f"{line}\n" for line in needed)
    package, name, rest = f"{body}\n{code}\n{end}\n".partition(f"{PACKAGE.replace('/', '.')};\n")
    return f"{package}{name}\n{imports}{rest}" if needed else f"{package}{name}{rest}"


STEPS: Sequence[tuple[str, Edit]] = (
    (
        "Extract how the name of an option is shown",
        extract_method("HelpFormatter", "appendOption", 1, "appendName"),
    ),
    ("Inline what is called once", inline_method("PosixParser", "gobble", "PosixParser", "flatten")),
    ("Move the check of a character to the helpers", move_method("OptionValidator", "isValidChar", "Util")),
    (
        "Move the message of missing options to the helpers",
        move_method("MissingOptionException", "createMessage", "Util", "describeMissing"),
    ),
    (
        "Extract the list of names to the helpers",
        extract_method("AmbiguousOptionException", "createMessage", 0, "appendQuoted", "Util"),
    ),
    (
        "Take the list of names back to its only caller",
        inline_method("Util", "appendQuoted", "AmbiguousOptionException", "createMessage"),
    ),
)
"""Message and edit of each commit behind the first one."""


def make_project(folder: Path, jars: Sequence[Path]) -> None:
    """Make the repository at ``folder``, which does not exist. Blocking."""
    files = {"pom.xml": POM, ".mvn/jvm.config": JVM_OPTIONS, ".gitignore": "/target/\n"}
    for jar, place in zip(jars, (MAIN, TEST), strict=True):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(".java"):
                    files[f"{place}/{name}"] = archive.read(name).decode()
                elif name.startswith("META-INF/") and name.endswith(".txt"):
                    files[name.rpartition("/")[2]] = archive.read(name).decode()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as made:
        repository = Path(made) / folder.name
        _git(repository, "init", "--quiet", "--initial-branch=main")
        _commit(repository, files, "Commons CLI 1.4")
        prefix = f"{MAIN}/{PACKAGE}/"
        classes = {
            path.removeprefix(prefix).removesuffix(".java"): text
            for path, text in files.items()
            if path.startswith(prefix)
        }
        for message, edit in STEPS:
            changed = edit(classes)
            classes |= changed
            _commit(repository, {f"{prefix}{name}.java": text for name, text in changed.items()}, message)
        repository.rename(folder)


def _commit(repository: Path, files: Mapping[str, str], message: str) -> None:
    for name, text in files.items():
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    _git(repository, "add", "--all")
    _git(repository, "commit", "--quiet", "--message", message)


def _git(repository: Path, *arguments: str) -> None:
    """Run git with author and date of its own, so that commits have the same hashes everywhere."""
    repository.mkdir(exist_ok=True)
    who = {
        f"GIT_{role}_{what}": "example@example.org"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    when = {f"GIT_{role}_DATE": "2017-03-09T12:00:00Z" for role in ("AUTHOR", "COMMITTER")}
    own = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(
        ["git", "-C", repository, *arguments], env={**os.environ, **who, **when, **own}, check=True
    )


def main() -> int:
    """Make the project at the folder that the command line names."""
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and the folder
        raise ConfigError("usage: python swe_refactor_project.py FOLDER")
    folder = Path(sys.argv[1])
    if folder.exists():
        raise ConfigError(f"{folder}: exists already; remove it, or name another folder")
    make_project(folder, anyio.run(install_artifacts, RELEASE, cache_dir(notify)))
    print_result(f"{folder}: Commons CLI 1.4 and {len(STEPS)} refactorings")
    return 0


if __name__ == "__main__":
    sys.exit(run_command(main))
