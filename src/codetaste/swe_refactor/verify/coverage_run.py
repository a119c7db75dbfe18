"""Coverage of a candidate's methods, from what JaCoCo's agent has recorded in the sandbox of a test run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.errors import SourceError
from codetaste.java.build.coverage import CoverageReport, read_coverage
from codetaste.swe_refactor.verify.project_sandbox import EXEC_FILE, JACOCO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.java.build.coverage import CoverageTarget
    from codetaste.swe_refactor.verify.project_sandbox import ProjectSandbox

_FIND_CLASSES = """
test -s "$1" || { printf 'no record\\n'; exit 0; }
shift
for pattern in "$@"; do
    find . -type f -path "*/$pattern.class" ! -path "*/$pattern/*.class" -print
done
"""
_REPORT = """
java=$1 cli=$2 exec=$3
shift 3
"$java" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -jar "$cli" report "$exec" "$@" \
    --xml /output/coverage/report.xml >&2 && cat /output/coverage/report.xml
"""
_REPORT_S = 300.0
_MAX_CLASS_FILES = 4000
_UPPER = re.compile(r"[A-Z_$]")


def agent_option(agent: str, targets: Sequence[CoverageTarget]) -> str:
    """Return the option of a JVM with the agent that records the classes of ``targets`` alone."""
    # In a command line of a shell "$" would be a variable: classes that only begin so are recorded, too.
    patterns = sorted({_recorded_classes(target) for target in targets})
    return f"-javaagent:{JACOCO}/{agent}=destfile={EXEC_FILE},append=true,includes={':'.join(patterns)}"


async def measure_coverage(
    project: ProjectSandbox, jdk: int, targets: Sequence[CoverageTarget]
) -> CoverageReport | None:
    """Return the coverage of the classes of ``targets``; None if no JVM recorded anything.

    Raises:
        SandboxError: the sandbox ended.
    """
    patterns = sorted({pattern for target in targets for pattern in _class_files(target)})
    found = (await project.script(_FIND_CLASSES, EXEC_FILE, *patterns)).decode(errors="surrogateescape")
    if found.startswith("no record"):
        return None
    files = _first_of_each(found.splitlines(), targets)[:_MAX_CLASS_FILES]
    if not files:
        return CoverageReport()
    arguments = [argument for file in files for argument in ("--classfiles", file)]
    content = await project.script(
        _REPORT,
        f"{project.jdks[jdk]}/bin/java",
        f"{JACOCO}/{project.context.cli}",
        EXEC_FILE,
        *arguments,
        limit_s=_REPORT_S,
    )
    try:
        return await to_thread.run_sync(read_coverage, content)
    except SourceError:
        return CoverageReport()


def _recorded_classes(target: CoverageTarget) -> str:
    """Return a pattern of the agent for the classes that ``target`` may be in."""
    if target.class_name:
        return f"{_outermost(target).replace('/', '.')}*"
    package = _package(target)
    return f"{package.replace('/', '.')}.*" if package else f"*{target.stem}*"


def _class_files(target: CoverageTarget) -> tuple[str, ...]:
    """Return patterns of the paths of the class files that ``target`` may be in, without their suffix."""
    if target.class_name:
        return _outermost(target), f"{_outermost(target)}$*"
    package = _package(target)
    # A file may have several classes, all of its package.
    return (f"{package}/*",) if package else (target.stem, f"{target.stem}$*")


def _outermost(target: CoverageTarget) -> str:
    """Return the path of the outermost class of a method."""
    parts = target.class_name.split(".")
    first = next((at for at, part in enumerate(parts) if part == target.stem), None)
    if first is None:
        first = next((at for at, part in enumerate(parts) if _UPPER.match(part)), len(parts) - 1)
    return "/".join(parts[: first + 1])


def _package(target: CoverageTarget) -> str:
    """Return the folder of the package, as far as the usual layout tells; "" if it does not."""
    _, found, package = target.path.rpartition("/")[0].partition("/java/")
    return package if found else ""


def _first_of_each(files: Sequence[str], targets: Sequence[CoverageTarget]) -> list[str]:
    """Return one file for each class: JaCoCo refuses two; those of the module of a target come first."""
    modules = {target.path.partition("/src/")[0] for target in targets if "/src/" in target.path}

    def order(file: str) -> tuple[bool, int, str]:
        return not any(file.startswith(f"./{module}/") for module in modules), file.count("/"), file

    chosen: dict[str, str] = {}
    for file in sorted(files, key=order):
        chosen.setdefault(_within_classes(file), file)
    return list(chosen.values())


def _within_classes(file: str) -> str:
    """Return the path of a class file below the folder of classes, as far as its name tells."""
    return re.sub(r"^.*?/(?:test-classes|classes)/(?:java/(?:main|test)/)?", "", file)
