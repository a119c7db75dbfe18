"""Coverage of one method in a report of JaCoCo: its counters, and its lines.

A method is told apart by its class, its name and its lines; of several on the same lines by its descriptor,
or by the types of its parameters as the source has them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from codetaste.java.build.descriptor import matches_source_types
from codetaste.java.build.xml_tree import parse_xml_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from xml.etree.ElementTree import Element

_CONSTRUCTOR = "<init>"


@dataclass(frozen=True, slots=True)
class CoverageTarget:
    """A method in the source code.

    Attributes:
        path: of its file in the repository, POSIX.
        class_name: with its package, "org.example.Outer.Inner"; "" if unknown.
        name: of the method; that of its class, or "<init>", for a constructor.
        start_line: first line, counted from 1; comments before it may belong to it.
        end_line: last line.
        descriptor: of the JVM, "(Ljava/lang/String;I)V"; "" if unknown.
        parameters: types of its parameters as the source has them; None if unknown.
    """

    path: str
    class_name: str
    name: str
    start_line: int
    end_line: int
    descriptor: str = ""
    parameters: tuple[str, ...] | None = None

    @property
    def stem(self) -> str:
        """The name of its file without the suffix: usually that of the outermost class."""
        return PurePosixPath(self.path).stem


@dataclass(frozen=True, slots=True)
class Counter:
    """What of something was run; instructions, branches, lines, complexity or methods."""

    missed: int
    covered: int


@dataclass(frozen=True, slots=True)
class MethodCoverage:
    """The coverage of one method.

    Attributes:
        class_name: as the JVM has it, "org/example/Outer$Inner".
        name: of the method.
        descriptor: of the method.
        counters: those of JaCoCo by their names: INSTRUCTION, BRANCH, LINE, COMPLEXITY, METHOD.
        covered_lines: lines of the source that ran, of lambdas and classes in the method, too.
        missed_lines: lines that did not.
    """

    class_name: str
    name: str
    descriptor: str
    counters: Mapping[str, Counter] = field(default_factory=dict)
    covered_lines: tuple[int, ...] = ()
    missed_lines: tuple[int, ...] = ()

    @property
    def is_covered(self) -> bool:
        """Whether any of its instructions ran."""
        return self.counters.get("INSTRUCTION", Counter(0, 0)).covered > 0


@dataclass(frozen=True, slots=True)
class _Method:
    class_name: str
    package: str
    source: str
    name: str
    descriptor: str
    line: int
    counters: Mapping[str, Counter]


@dataclass(frozen=True, slots=True)
class CoverageReport:
    """What a report of JaCoCo says: methods with code, and lines by package and file."""

    methods: tuple[_Method, ...] = ()
    lines: Mapping[tuple[str, str], Mapping[int, bool]] = field(default_factory=dict)
    """Whether any instruction of the line ran."""

    def find(self, target: CoverageTarget) -> MethodCoverage | None:
        """Return the coverage of ``target``; None if the report does not have it, or has several that fit."""
        found = _select(self.methods, target)
        if found is None:
            return None
        lines = self.lines.get((found.package, found.source), {})
        inside = {line: ran for line, ran in lines.items() if target.start_line <= line <= target.end_line}
        return MethodCoverage(
            found.class_name,
            found.name,
            found.descriptor,
            found.counters,
            tuple(sorted(line for line, ran in inside.items() if ran)),
            tuple(sorted(line for line, ran in inside.items() if not ran)),
        )


def read_coverage(content: bytes, where: str = "the report of JaCoCo") -> CoverageReport:
    """Read JaCoCo's XML report; it is untrusted.

    Raises:
        SourceError: it is no XML, too large, or its numbers are none.
    """
    methods: list[_Method] = []
    lines: dict[tuple[str, str], dict[int, bool]] = {}
    for package in parse_xml_tree(content, where).iter("package"):
        name = package.get("name", "")
        for each in package.iterfind("class"):
            methods += _methods(each, name)
        for file in package.iterfind("sourcefile"):
            known = lines.setdefault((name, file.get("name", "")), {})
            for line in file.iterfind("line"):
                number = _number(line, "nr")
                known[number] = known.get(number, False) or _number(line, "ci") > 0
    return CoverageReport(tuple(methods), lines)


def _methods(of_class: Element, package: str) -> Iterator[_Method]:
    for method in of_class.iterfind("method"):
        counters = {
            counter.get("type", ""): Counter(_number(counter, "missed"), _number(counter, "covered"))
            for counter in method.iterfind("counter")
        }
        yield _Method(
            of_class.get("name", ""),
            package,
            of_class.get("sourcefilename", ""),
            method.get("name", ""),
            method.get("desc", ""),
            _number(method, "line"),
            counters,
        )


def _number(element: Element, key: str) -> int:
    text = element.get(key, "0")
    return int(text) if re.fullmatch(r"\d{1,9}", text) else 0


def _select(methods: Sequence[_Method], target: CoverageTarget) -> _Method | None:
    path = PurePosixPath(target.path)
    found = [each for each in methods if each.source == path.name]
    if target.class_name:
        name = target.class_name.replace("$", ".")
        found = [each for each in found if _source_name(each.class_name) == name]
    else:
        folder = f"/{path.parent.as_posix()}"
        found = [each for each in found if not each.package or folder.endswith(f"/{each.package}")]
    found = [each for each in found if _has_name(each, target.name)]
    on_lines = [each for each in found if target.start_line <= each.line <= target.end_line]
    found = on_lines or [each for each in found if not each.line]  # compiled without line numbers
    if len(found) > 1 and target.descriptor:
        found = [each for each in found if each.descriptor == target.descriptor]
    if len(found) > 1 and target.parameters is not None:
        found = [each for each in found if matches_source_types(each.descriptor, target.parameters)]
    return found[0] if len(found) == 1 else None


def _source_name(class_name: str) -> str:
    return class_name.replace("/", ".").replace("$", ".")


def _has_name(method: _Method, name: str) -> bool:
    if method.name == _CONSTRUCTOR:
        return name in {_CONSTRUCTOR, re.split(r"[/$]", method.class_name)[-1]}
    return method.name == name
