"""RefactoringMiner's oracle read from a clone of its repository, as lines of a corpus (Appendix F, step 1).

The clone has the changed files of the oracle's commits, before and after, and lists of refactorings that
people confirmed or judged pure. RefactoringMiner and PurityChecker are run on these files; a refactoring of
the six types becomes a line, by default only if the lists confirm it. Nothing is compiled or tested, as in
the paper.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from anyio import to_thread

from codetaste.core.files import read_regular_file
from codetaste.core.text import one_line
from codetaste.errors import ConfigError, JavaError, SourceError
from codetaste.swe_refactor.dataset.instance import REFACTORING_TYPES
from codetaste.swe_refactor.enrich.line_text import text_lines
from codetaste.swe_refactor.enrich.places import find_places
from codetaste.swe_refactor.examples.corpus import LeftOutReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from codetaste.refactorings.model import CodeRange, Refactoring
    from codetaste.refactorings.service import RefactoringService

ORACLE_FOLDER = "src/test/resources/oracle"
LISTS = ("sampleResPurity.json", "Puritydata.json", "data.json")
"""Lists of refactorings in that folder; those with people's verdicts on purity come first."""
_COMMITS = "commits"
_MAX_LIST_BYTES = 512 * 1024**2
_REFUTED = "FP"
"""The mark of a refactoring that a tool found and people do not confirm."""


@dataclass(frozen=True, slots=True)
class OracleLabel:
    """What people say of a refactoring; ``pure`` is None where none judged it."""

    pure: bool | None
    comment: str
    confirmed: bool = True
    """Whether it is one."""


_UNLISTED = OracleLabel(None, "", confirmed=False)


class OracleRecords(NamedTuple):
    """The lines that a commit gives, and how many of its refactorings give none, by reason."""

    records: list[dict[str, Any]]
    left_out: Counter[LeftOutReason]


@dataclass(slots=True)
class OracleCommit:
    """A commit of the oracle, whose files before and after are beside ``description``.

    Attributes:
        repository: its address.
        commit: its full name.
        description: the file with the names of its files.
        labels: of its refactorings, by their sentences with single spaces.
    """

    repository: str
    commit: str
    description: Path
    labels: dict[str, OracleLabel] = field(default_factory=dict)


def list_oracle(clone: Path) -> list[OracleCommit]:
    """Return the commits of the oracle's lists whose files are in the clone, which is checked out. Blocking.

    Raises:
        ConfigError: the clone has no oracle, or a list cannot be read.
    """
    folder = clone / ORACLE_FOLDER
    files = {path.stem.rpartition("-")[2]: path for path in sorted((folder / _COMMITS).glob("*.json"))}
    lists = [folder / name for name in LISTS if (folder / name).is_file()]
    if not files or not lists:
        raise ConfigError(f"{folder}: no oracle; name a checked-out clone of RefactoringMiner's repository")
    commits: dict[str, OracleCommit] = {}
    for path in lists:
        for commit, entry in _entries(path):
            if commit not in files:
                continue
            known = commits.setdefault(commit, OracleCommit(entry["repository"], commit, files[commit]))
            for each in entry["refactorings"]:
                name, label = _plain(each["description"]), _label(each)
                if not known.labels.get(name, _UNLISTED).confirmed:
                    known.labels[name] = label
    return [commits[name] for name in sorted(commits)]


def _entries(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        entries = json.loads(read_regular_file(path, _MAX_LIST_BYTES))
        for entry in entries:
            yield entry["sha1"], entry
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{path}: not a list of the oracle: {one_line(error)!r}") from None


def _label(entry: Mapping[str, Any]) -> OracleLabel:
    purity = entry.get("purity") or {}
    verdict = {"1": True, "0": False}.get(str(purity.get("purityValue")))
    confirmed = entry.get("validation") != _REFUTED
    return OracleLabel(verdict, str(purity.get("validationComment") or ""), confirmed)


def _plain(description: str) -> str:
    return " ".join(description.split())


async def oracle_records(
    commit: OracleCommit, service: RefactoringService, *, unconfirmed: bool = False
) -> OracleRecords:
    """Return the lines of a commit's refactorings of the six types, in RefactoringMiner's order.

    Args:
        commit: the commit.
        service: finds its refactorings.
        unconfirmed: whether those that no list has are lines, too; those that people refuted never are.

    Raises:
        SourceError: a file of the commit cannot be read, or RefactoringMiner has no answer.
    """
    names, before, after = await to_thread.run_sync(_read_files, commit)
    try:
        detection = await service.detect_contents(before, after)
    except JavaError as error:
        raise SourceError(f"{commit.description.stem}: {error}") from error
    found = OracleRecords([], Counter())
    for each in detection.refactorings:
        label = commit.labels.get(_plain(each.description))
        wanted = unconfirmed if label is None else label.confirmed
        if each.type not in REFACTORING_TYPES:
            found.left_out[LeftOutReason.OTHER_TYPE] += 1
        elif not wanted:
            found.left_out[LeftOutReason.UNCONFIRMED] += 1
        else:
            record = _record(commit, names["parentCommitId"], each, label or _UNLISTED, (before, after))
            found.records.append(record)
    return found


def _read_files(commit: OracleCommit) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
    """Return the description of a commit, and its files before and after."""
    try:
        names = json.loads(read_regular_file(commit.description))
        project = commit.description.stem.rpartition("-")[0]
        sides = [
            _texts(commit.description.with_name(f"{project}-{names[name]}"), names[paths])
            for name, paths in (("parentCommitId", "filesBefore"), ("currentCommitId", "filesCurrent"))
        ]
    except OSError as error:
        raise SourceError(f"{error.filename or commit.description}: {error.strerror}") from None
    except (ValueError, LookupError, TypeError) as error:
        raise SourceError(f"{commit.description}: not a commit of the oracle: {one_line(error)!r}") from None
    return names, sides[0], sides[1]


def _texts(folder: Path, paths: Sequence[str]) -> dict[str, str]:
    root = folder.resolve()
    texts: dict[str, str] = {}
    for path in paths:
        place = (folder / path).resolve()
        if not place.is_relative_to(root):
            raise ValueError(f"{path} is outside of its commit")
        texts[path] = read_regular_file(place).decode("utf-8", "replace")
    return texts


def _record(
    commit: OracleCommit,
    parent: str,
    found: Refactoring,
    label: OracleLabel,
    sides: tuple[Mapping[str, str], Mapping[str, str]],
) -> dict[str, Any]:
    places, (before, after) = find_places(found), sides
    target = places.target
    changed = [each for each in (places.after, places.extracted) if each is not None]
    files_after = list(dict.fromkeys(each.path for each in (*changed, *found.right)))
    purity = found.purity
    return {
        "type": found.type,
        "description": found.description,
        "repository": commit.repository,
        "commitId": commit.commit,
        "parentCommitId": parent,
        "filePathBefore": target.path,
        "filesAfter": files_after,
        "startLine": target.start_line,
        "endLine": target.end_line,
        "methodBefore": target.code_element,
        "sourceCodeBeforeRefactoring": _code(before, target),
        "sourceCodeAfterRefactoring": "\n\n".join(_code(after, each) for each in changed),
        "sourceCodeBeforeForWhole": before.get(target.path, ""),
        "sourceCodeAfterForWhole": {path: after[path] for path in files_after if path in after},
        "humanPure": label.pure,
        "humanComment": label.comment,
        "purityCheck": None
        if purity is None
        else {
            "isPure": purity.pure,
            "description": purity.description,
            "purityComment": purity.comment,
            "mappingState": purity.mapping_state,
        },
        "leftSideLocations": [_location(each) for each in found.left],
        "rightSideLocations": [_location(each) for each in found.right],
    }


def _code(files: Mapping[str, str], place: CodeRange) -> str:
    """Return the lines of a place with their indentation."""
    return "\n".join(text_lines(files.get(place.path, ""))[place.start_line - 1 : place.end_line])


def _location(place: CodeRange) -> dict[str, Any]:
    values = asdict(place)
    return {
        "filePath": values["path"],
        "startLine": values["start_line"],
        "endLine": values["end_line"],
        "startColumn": values["start_column"],
        "endColumn": values["end_column"],
        "codeElementType": values["element_kind"],
        "description": values["description"],
        "codeElement": values["code_element"],
    }
