"""Clones of RefactoringMiner's repository with a tiny oracle, and a stand-in for RefactoringMiner."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codetaste.errors import JavaError
from codetaste.refactorings.model import CodeRange, Detection, Purity, Refactoring
from codetaste.swe_refactor.examples.oracle import ORACLE_FOLDER
from support.refactorings import examples
from support.swe_refactor.example_records import AFTER, BEFORE, PATH, make_record

RECORD = make_record()


class Detector:
    """Answers with refactorings that are already known; ``faults`` are raised first."""

    def __init__(self, *found: Refactoring, faults: Sequence[JavaError] = ()) -> None:
        self.found, self.faults = found, list(faults)
        self.requests: list[Any] = []

    async def detect_contents(self, before: Any, after: Any) -> Detection:
        self.requests.append((before, after))
        if self.faults:
            raise self.faults.pop(0)
        return Detection(None, self.found, "3.1.4")


def refactoring(description: str, kind: str = "Extract Method") -> Refactoring:
    """Return that of ``RECORD`` with another sentence."""

    def ranges(side: str) -> tuple[CodeRange, ...]:
        return tuple(
            CodeRange(
                each["filePath"],
                each["startLine"],
                each["endLine"],
                each["startColumn"],
                each["endColumn"],
                each["codeElementType"],
                each["description"],
                "package total() : int",
            )
            for each in RECORD[side]
        )

    left, right = ranges("leftSideLocations"), ranges("rightSideLocations")
    return Refactoring(
        kind, description, left, right, Purity(pure=True, description="", comment="", mapping_state=1)
    )


def write_clone(clone: Path, *more: str) -> Path:
    """Write an oracle with one commit, and ``more`` that have the same files."""
    folder = clone / ORACLE_FOLDER
    parent = RECORD["parentCommitId"]
    for commit in (RECORD["commitId"], *more):
        for name, text in ((parent, BEFORE), (commit, AFTER)):
            path = folder / "commits" / f"shop-{name}" / PATH
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        names = {"filesBefore": [PATH], "filesCurrent": [PATH]}
        described = {"parentCommitId": parent, "currentCommitId": commit, **names}
        (folder / "commits" / f"shop-{commit}.json").write_text(json.dumps(described))
    judged = {"type": "Extract Method", "description": "Extract Method\tone"}
    judged["purity"] = {"purityValue": "1", "validationComment": "fine"}  # type: ignore[assignment]
    write_list(folder / "sampleResPurity.json", [judged])
    write_list(
        folder / "data.json",
        [
            {"type": "Extract Method", "description": "Extract Method one", "validation": "TP"},
            {"type": "Extract Method", "description": "Extract Method two", "validation": "TP"},
            {"type": "Extract Method", "description": "Extract Method false", "validation": "FP"},
            {"type": "Rename Method", "description": "Rename Method three", "validation": "TP"},
        ],
    )
    return clone


def write_list(path: Path, refactorings: list[Any]) -> None:
    entries = [
        {"repository": RECORD["repository"], "sha1": sha, "refactorings": refactorings}
        for sha in (RECORD["commitId"], "d" * 40)
    ]
    path.write_text(json.dumps(entries))


def write_real_clone(clone: Path) -> Path:
    """Write an oracle with one commit that the real RefactoringMiner finds a pure refactoring in."""
    sentence = (
        "Extract Method private add(prices int[], count int) : int extracted from "
        "package total(prices int[], count int) : int in class p.Shop"
    )
    folder = clone / ORACLE_FOLDER
    parent, commit = "0" * 40, "e" * 40
    for name, files in ((parent, examples.BEFORE), (commit, examples.PURE)):
        path = folder / "commits" / f"shop-{name}" / examples.PATH
        path.parent.mkdir(parents=True)
        path.write_text(files[examples.PATH])
    paths = [examples.PATH]
    names = {"parentCommitId": parent, "currentCommitId": commit, "filesBefore": paths, "filesCurrent": paths}
    (folder / "commits" / f"shop-{commit}.json").write_text(json.dumps(names))
    listed = {"type": "Extract Method", "description": sentence, "validation": "TP"}
    entry = {"repository": RECORD["repository"], "sha1": commit, "refactorings": [listed]}
    (folder / "data.json").write_text(json.dumps([entry]))
    return clone
