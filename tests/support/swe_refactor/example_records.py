"""Records of the corpus of examples."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

BEFORE = """package shop;

class Shop {
    int total() {
        return orders.stream().mapToInt(order -> order.price()).sum();
    }

    int count() {
        return total();
    }
}
"""
AFTER = """package shop;

class Shop {
    int total() {
        return orders.stream().mapToInt(this::priced).sum();
    }

    private int priced(Order order) {
        return order.price();
    }
}
"""
PATH = "src/shop/Shop.java"


def make_record(number: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a record; records of other numbers have other code."""

    def place(start: int, end: int, description: str) -> dict[str, Any]:
        kind = {"codeElementType": "METHOD_DECLARATION", "description": description, "codeElement": "m"}
        columns = {"startColumn": 5, "endColumn": 6}
        return {"filePath": PATH, "startLine": start, "endLine": end, **columns, **kind}

    name = "total" if not number else f"total{number}"
    before, after = BEFORE.replace("total", name), AFTER.replace("total", name)
    record = {
        "type": "Extract Method",
        "description": f"Extract Method priced extracted from {name}",
        "repository": "https://github.com/owner/shop.git",
        "commitId": "a" * 40,
        "parentCommitId": "0" * 40,
        "filePathBefore": PATH,
        "filesAfter": [PATH],
        "startLine": 4,
        "endLine": 6,
        "methodBefore": f"package {name}() : int",
        "sourceCodeBeforeRefactoring": "\n".join(before.split("\n")[3:6]),
        "sourceCodeAfterRefactoring": "\n".join([*after.split("\n")[3:6], "", *after.split("\n")[7:10]]),
        "sourceCodeBeforeForWhole": before,
        "sourceCodeAfterForWhole": {PATH: after},
        "humanPure": True,
        "humanComment": "",
        "purityCheck": {"isPure": True, "description": "", "purityComment": "", "mappingState": 1},
        "leftSideLocations": [
            place(4, 6, "source method declaration before extraction"),
            place(8, 10, "caller"),
        ],
        "rightSideLocations": [
            place(4, 6, "source method declaration after extraction"),
            place(8, 10, "extracted method declaration"),
        ],
    }
    return {**record, **changes}


def write_corpus(folder: Path, records: Iterable[dict[str, Any]]) -> Path:
    """Write a corpus and return its path."""
    path = folder / "examples.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path
