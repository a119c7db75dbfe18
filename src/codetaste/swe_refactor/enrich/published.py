"""The published fields of a refactoring, made of repository, commit and detection.

They are what the published pipeline writes, with one correction: it reads the extracted method of an Extract
And Move Method, and the inlined one of a Move And Inline Method, from the file of the other method, so that
these fields are unrelated lines there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from codetaste.errors import SourceError
from codetaste.swe_refactor.enrich.hash_set import hash_set_order
from codetaste.swe_refactor.enrich.line_text import compare_lines, slice_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.java.jdt.model import ParsedMethod, ParsedSources, ParsedType
    from codetaste.refactorings.model import CodeRange, Refactoring
    from codetaste.swe_refactor.enrich.places import RefactoringPlaces
    from codetaste.swe_refactor.enrich.sources import ChangedSources

_LONE_RETURN = re.compile(r"\r(?!\n)")
"""A line end for Eclipse JDT and RefactoringMiner; not for the published pipeline and git."""
_MOVES = ("Move Method", "Move And Rename Method", "Move And Inline Method")


def published_fields(
    refactoring: Refactoring,
    places: RefactoringPlaces,
    changed: ChangedSources,
    parsed: ParsedSources,
    files_before: frozenset[str],
) -> dict[str, Any]:
    """Return the published fields, all but those of the verification, in their order.

    Args:
        refactoring: the detection, with its purity.
        places: its methods.
        changed: the Java files that the commit changes.
        parsed: ``changed.before``, parsed.
        files_before: the paths of all Java files before.

    Raises:
        SourceError: a file or method of the detection is not there.
    """
    before, after = places.before, places.after
    owner, method = find_method(parsed, places.target)
    extracted = [] if places.extracted is None else [_slice(changed.after, places.extracted)]
    whole_before, whole_after = _text(changed.before, before), _text(changed.after, after)
    invoked = hash_set_order(_invoked(method, parsed))
    signature = owner.signature
    name = f"{owner.name}#{method.name}"
    fields: dict[str, Any] = {
        "type": refactoring.type,
        "description": _with_tab(refactoring),
        "diffLocations": [_location(each) for each in _locations(places)],
        "sourceCodeBeforeRefactoring": _slice(changed.before, places.target),
        "filePathBefore": before.path,
        "isPureRefactoring": refactoring.purity is not None and bool(refactoring.purity.pure),
        "commitId": changed.commit,
        "packageNameBefore": owner.package_name,
        "classNameBefore": owner.name,
        "methodNameBefore": name,
        **({"invokedMethod": "\n".join(invoked)} if invoked else {}),
        "classSignatureBefore": signature,
        "methodNameBeforeSet": [name],
        "classNameBeforeSet": [owner.name],
        "classSignatureBeforeSet": [signature],
        "purityCheckResultList": _purity_results(refactoring),
        "sourceCodeBeforeForWhole": whole_before,
        "filePathAfter": after.path,
        "sourceCodeAfterForWhole": whole_after,
        "diffSourceCodeSet": extracted,
        "invokedMethodSet": invoked,
        "sourceCodeAfterRefactoring": "\n".join([_slice(changed.after, after), *extracted]),
        "diffSourceCode": compare_lines(whole_before, whole_after, _line_numbers(places)),
        "uniqueId": _unique_id(changed.commit, places),
        "moveFileExist": refactoring.type not in _MOVES or after.path in files_before,
    }
    return fields


def find_method(parsed: ParsedSources, place: CodeRange) -> tuple[ParsedType, ParsedMethod]:
    """Return the method in the lines of a range, and its class.

    Raises:
        SourceError: there is none, or several.
    """
    found = [
        (owner, method)
        for owner in parsed.types
        if owner.path == place.path
        for method in owner.methods
        if (method.start_line, method.end_line) == (place.start_line, place.end_line)
    ]
    if len(found) != 1:
        where = f"{place.path}, lines {place.start_line}–{place.end_line}"
        raise SourceError(f"{where}: {'several methods' if found else 'no method of a named class'}")
    return found[0]


def _invoked(target: ParsedMethod, parsed: ParsedSources) -> Iterator[str]:
    """Yield the methods of changed files with the name of one that the target calls; the last overload."""
    methods = {(owner.name, method.name): method for owner in parsed.types for method in owner.methods}
    for name in target.calls:
        for owner in parsed.types:
            if called := methods.get((owner.name, name)):
                body = called.body or ""
                yield f"methodSignature: {owner.name}#{name}\n methodBody: {called.signature}{body}"


def _text(texts: Mapping[str, str], place: CodeRange) -> str:
    try:
        return texts[place.path]
    except KeyError:
        raise SourceError(f"the commit does not change {place.path}") from None


def _slice(texts: Mapping[str, str], place: CodeRange) -> str:
    text = _text(texts, place)
    found = slice_lines(text, place.start_line, place.end_line)
    if not found or _LONE_RETURN.search(text):
        raise SourceError(f"{place.path}: it has lines that end without a line feed, which cannot be counted")
    return found


def _with_tab(refactoring: Refactoring) -> str:
    rest = refactoring.description.removeprefix(refactoring.type).lstrip()
    return f"{refactoring.type}\t{rest}"


def _locations(places: RefactoringPlaces) -> list[CodeRange]:
    other = places.extracted or places.inlined
    return [places.before, places.after, *([other] if other else [])]


def _location(place: CodeRange) -> dict[str, Any]:
    lines = {"startLine": place.start_line, "endLine": place.end_line}
    return {"filePath": place.path, **lines, "startColumn": 0, "endColumn": 0}


def _line_numbers(places: RefactoringPlaces) -> set[int]:
    """Return the lines of all methods in the two compared files, of either side."""
    paths = {places.before.path, places.after.path}
    return {
        line
        for place in _locations(places)
        if place.path in paths
        for line in range(place.start_line, place.end_line + 1)
    }


def _unique_id(commit: str, places: RefactoringPlaces) -> str:
    def lines(place: CodeRange | None) -> list[str]:
        return [] if place is None else [str(place.start_line), str(place.end_line)]

    parts = [commit, *lines(places.before), *(lines(places.extracted) or [""]), *lines(places.after)]
    return "_".join([*parts, *lines(places.inlined)])


def _purity_results(refactoring: Refactoring) -> list[dict[str, Any]]:
    purity = refactoring.purity
    if purity is None:
        return []
    return [
        {
            "isPure": bool(purity.pure),
            "purityComment": purity.comment or "",
            "description": purity.description,
            "mappingState": purity.mapping_state,
        }
    ]
