"""Imports that an edited file needs: those of the answer, and those that moved code brings along."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.java.syntax import SourceImport, all_types, normal_code

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.swe_refactor.answers.edit.source_file import SourceFile
    from codetaste.swe_refactor.answers.edit.tree import TreeReader

_WORD = re.compile(r"(?<![\w.])[^\W\d]\w*")


def add_imports(file: SourceFile, wanted: Iterable[SourceImport]) -> None:
    """Add the imports that the file lacks, sorted, behind its last import.

    Left out are those of its own package and of ``java.lang``, and of a simple name that it imports already.
    """
    unit = file.unit
    there = {(each.static, each.name) for each in unit.imports}
    names = {each.name.rpartition(".")[2] for each in unit.imports if not each.static}
    lines = set[str]()
    for each in wanted:
        scope, _, name = each.name.rpartition(".")
        known = {(each.static, each.name), (each.static, f"{scope}.*")} & there
        same = not each.static and (scope in {unit.package, "java.lang"} or (name != "*" and name in names))
        if not known and not same:
            lines.add(each.line)
            names |= set() if each.static else {name}
    if not lines:
        return
    text = "\n".join(sorted(lines))
    if unit.imports:
        at = max(each.end for each in unit.imports)
        file.replace(at, at, f"\n{text}")
    elif unit.package_end:
        file.replace(unit.package_end, unit.package_end, f"\n\n{text}")
    else:
        at = min((each.start for each in unit.types), default=0)
        file.replace(at, at, f"{text}\n\n")


def imports_of_moved_code(
    code: str, source: SourceFile, target_package: str, declared: Iterable[str], tree: TreeReader
) -> list[SourceImport]:
    """Return the imports that code needs in another file: those of its words that the source file has.

    Types of the source's package are imported if ``tree`` has their file beside the source. Names that the
    target declares need none. Imports of whole packages are not looked into.
    """
    words = used_words(code) - set(declared)
    found = [each for each in source.unit.imports if each.name.rpartition(".")[2] in words]
    package = source.unit.package
    if package and package != target_package:
        folder = source.path.rpartition("/")[0]
        here = {each.name.rpartition(".")[2] for each in found}
        own = {each.name for each in source.unit.types}
        found += [
            import_of(f"{package}.{word}")
            for word in sorted(words - here)
            if word[0].isupper() and (word in own or tree.read(f"{folder}/{word}.java") is not None)
        ]
    return found


def declared_names(file: SourceFile) -> set[str]:
    """Return the simple names of the types that a file declares."""
    return {each.name for each in all_types(file.unit.types)}


def used_words(code: str) -> set[str]:
    """Return the words of code that no dot precedes, without comments and strings."""
    plain = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', "", normal_code(code.encode()).decode())
    return set(_WORD.findall(plain.replace(" . ", ".")))


def import_of(name: str) -> SourceImport:
    """Return the import of a type."""
    return SourceImport(name, static=False, start=0, end=0)
