"""What the poms of a project say about its build: values of elements, and the ``argLine`` of tests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.core.files import read_regular_file
from codetaste.errors import SourceError
from codetaste.java.build.xml_tree import parse_xml_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from xml.etree.ElementTree import Element

_MAX_POMS = 2000
_MAX_BYTES = 2 * 1024**2
_SKIPPED = frozenset({"target", "node_modules", ".git", "archetype-resources"})
_REFERENCE = re.compile(r"\$\{([^}]+)\}")
_MAX_HOPS = 10
_MAX_VALUE_CHARS = 4000
"""Properties in properties can grow without a bound."""
_LATE = re.compile(r"[@$]\{argLine\}")


@dataclass(frozen=True, slots=True)
class PomValue:
    """A value in a pom, with the properties in it replaced; ``place`` is the file and the element."""

    text: str
    place: str


@dataclass(frozen=True, slots=True)
class Poms:
    """The poms of a project, the one at the top first.

    Attributes:
        roots: root elements by path.
        properties: of all poms; of those with one name the one nearest to the top.
        problems: poms that cannot be read, one line each.
    """

    roots: Mapping[str, Element] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def values(self, *paths: str) -> Iterator[PomValue]:
        """Yield the values of the elements at ``paths``, as ElementTree has them, but unresolved ones."""
        for place, root in self.roots.items():
            for path in paths:
                for element in root.iterfind(path):
                    text = self.resolve((element.text or "").strip())
                    if text:
                        yield PomValue(text, f"{place}: {path.rpartition('/')[2]}")

    def resolve(self, text: str) -> str:
        """Return ``text`` with its properties replaced; "" if one is unknown, or it grows too long."""
        for _ in range(_MAX_HOPS):
            if not (found := _REFERENCE.search(text)):
                return text
            value = self.properties.get(found[1])
            if value is None or len(text) + text.count(found[0]) * len(value) > _MAX_VALUE_CHARS:
                return ""
            text = text.replace(found[0], value)
        return ""


def read_poms(tree: Path) -> Poms:
    """Read all poms of a project but those of examples of archetypes. Blocking."""
    roots: dict[str, Element] = {}
    problems: list[str] = []
    for path in sorted(_pom_files(tree), key=lambda each: (len(each.parts), str(each)))[:_MAX_POMS]:
        name = path.relative_to(tree).as_posix()
        try:
            roots[name] = parse_xml_tree(read_regular_file(path, _MAX_BYTES), name)
        except (SourceError, OSError) as error:
            problems.append(str(error))
    properties: dict[str, str] = {}
    for root in roots.values():
        for element in (*root.iterfind("properties/*"), *root.iterfind("profiles/profile/properties/*")):
            properties.setdefault(element.tag, (element.text or "").strip())
    return Poms(roots, properties, tuple(problems))


def _pom_files(tree: Path) -> Iterator[Path]:
    for path in tree.rglob("pom.xml"):
        if _SKIPPED.isdisjoint(path.relative_to(tree).parts[:-1]) and path.is_file():
            yield path


@dataclass(frozen=True, slots=True)
class ArgLine:
    """How the poms give arguments to the JVM of tests.

    Attributes:
        overridable: ``-DargLine`` reaches that JVM: no pom has a literal ``argLine`` for it.
        value: of the property ``argLine`` in the poms; "" if they have none.
    """

    overridable: bool
    value: str = ""


def find_arg_line(poms: Poms) -> ArgLine:
    """Return how agents are given to the JVM of tests."""
    value = poms.properties.get("argLine", "")
    literal = any(
        not _LATE.search(element.text or "")
        for root in poms.roots.values()
        for element in root.iterfind(".//configuration/argLine")
    )
    # In a property of the command line Maven replaces no references.
    return ArgLine(not literal and not _REFERENCE.search(value) and "@{" not in value, value)
