"""A small Java project with an instance and a right answer for each of the six types."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from codetaste.swe_refactor.answers.answer_format import format_answer
from codetaste.swe_refactor.answers.apply import EditedFiles, apply_answer
from codetaste.swe_refactor.answers.parse import ParsedAnswer, parse_answer
from codetaste.swe_refactor.answers.problem import AnswerProblem
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from support.swe_refactor.documents import document

CART, LABELS, SUMS, PRICES, TILL = (
    f"src/main/java/shop/{name}.java" for name in ("Cart", "text/Labels", "math/Sums", "Prices", "Till")
)
FILES = {
    CART: """\
package shop;

import java.util.List;
import java.util.Locale;

/** What somebody buys. */
public class Cart {
    private final List<Integer> prices;

    public Cart(List<Integer> prices) {
        this.prices = prices;
    }

    /** The sum of the prices, with tax. */
    public int total(int tax) {
        int sum = 0;
        for (int price : prices) {
            sum += price;
        }
        return sum + sum * tax / 100;
    }

    public int count() {
        return size();
    }

    private int size() {
        return prices.size();
    }

    static String label(String name) {
        return Prices.mark(name.trim().toUpperCase(Locale.ROOT));
    }

    String show() {
        return label("{ cart }");
    }
}
""",
    LABELS: """\
package shop.text;

public final class Labels {
    private Labels() {
    }

    public static String quote(String text) {
        return '"' + text + '"';
    }

    static class Inner {
    }
}
""",
    SUMS: "package shop.math;\n\npublic class Sums {\n}\n",
    PRICES: """\
package shop;

import java.math.BigDecimal;

public class Prices {
    static int doubled(int price) {
        return new BigDecimal(price).intValue() * 2;
    }

    public static String mark(String text) {
        return text + "!";
    }
}
""",
    TILL: """\
package shop;

class Till {
    int price(int n) {
        return Prices.doubled(n) + 1;
    }
}
""",
}
TARGETS = {
    "Extract Method": (CART, "public int total(int tax)"),
    "Inline Method": (CART, "private int size()"),
    "Move Method": (CART, "static String label(String name)"),
    "Move And Rename Method": (CART, "static String label(String name)"),
    "Extract And Move Method": (CART, "public int total(int tax)"),
    "Move And Inline Method": (PRICES, "static int doubled(int price)"),
}
CALLERS = {
    "Inline Method": (CART, "public int count()"),
    "Move And Inline Method": (TILL, "int price(int n)"),
}
TOTAL = """\
public int total(int tax) {
    int sum = sum();
    return sum + sum * tax / 100;
}"""
SUM = """\
private int sum() {
    int sum = 0;
    for (int price : prices) {
        sum += price;
    }
    return sum;
}"""
COUNT = "public int count() {\n    return prices.size();\n}"
LABEL = """\
public static String label(String name) {
    return Prices.mark(name.trim().toUpperCase(Locale.ROOT));
}"""
DELEGATE = "static String label(String name) {\n    return Labels.label(name);\n}"
PARTS: dict[str, list[str]] = {
    "Extract Method": [f"{TOTAL}\n\n{SUM}"],
    "Inline Method": [COUNT],
    "Move Method": [LABELS, f"public final class Labels {{\n{LABEL}\n}}", DELEGATE],
    "Move And Rename Method": [
        LABELS,
        LABEL.replace(" label(", " shout("),
        DELEGATE.replace("Labels.label", "Labels.shout"),
    ],
    "Extract And Move Method": [
        SUMS,
        SUM.replace("private int sum()", "public static int sum(List<Integer> prices)"),
        TOTAL.replace("sum();", "Sums.sum(prices);"),
    ],
    "Move And Inline Method": [
        TILL,
        "class Till {\n  int price(int n) {\n    return new BigDecimal(n).intValue() * 2 + 1;\n  }\n}",
    ],
}
"""The parts of a right answer by type."""
KINDS = tuple(PARTS)


@dataclass
class Files:
    """The files of a tree by path."""

    files: dict[str, bytes]
    links: frozenset[str] = frozenset()

    def read(self, path: str) -> bytes | None:
        return None if path in self.links else self.files.get(path)

    def is_link(self, path: str) -> bool:
        return path in self.links


def tree(**changes: bytes) -> Files:
    """Return the project; ``changes`` are other contents by path."""
    return Files({path: text.encode() for path, text in FILES.items()} | changes)


def place(path: str, head: str, text: str | None = None) -> dict[str, Any]:
    """Return the lines of the method whose first line has ``head``, with its Javadoc."""
    lines = re.split(r"\r\n|\r|\n", FILES[path] if text is None else text)
    start = next(number for number, line in enumerate(lines, 1) if head in line)
    blank = re.match(r"\s*", lines[start - 1])
    assert blank
    end = next(n for n, line in enumerate(lines, 1) if n >= start and line.rstrip() == f"{blank[0]}}}")
    if lines[start - 2].strip().startswith("/**"):
        start -= 1
    return {"filePath": path, "startLine": start, "endLine": end, "startColumn": 0, "endColumn": 0}


def code(path: str, head: str, text: str | None = None) -> str:
    """Return the method as instances have it."""
    where = place(path, head, text)
    lines = (FILES[path] if text is None else text).splitlines()
    return "\n".join(lines[where["startLine"] - 1 : where["endLine"]]).strip()


def instance(kind: str, **changes: Any) -> RefactoringInstance:
    """Return the instance of a type."""
    path, head = TARGETS[kind]
    caller = CALLERS.get(kind, (path, head))
    refactored = PARTS[kind][-1]
    class_name = "shop." + path.rpartition("/")[2].removesuffix(".java")
    name = head.partition("(")[0].split()[-1]
    after = PARTS[kind][1] if kind.startswith("Move ") and "Inline" not in kind else refactored
    if kind == "Move Method":
        after = LABEL
    if kind == "Move And Inline Method":
        after = refactored.partition("\n")[2].rpartition("\n")[0].strip()
    before = place(*caller)
    return RefactoringInstance.from_document(
        document(
            type=kind,
            diffLocations=[before, before, place(path, head)],
            sourceCodeBeforeRefactoring=code(path, head),
            filePathBefore=caller[0],
            sourceCodeBeforeForWhole=FILES[caller[0]],
            filePathAfter=PARTS[kind][0] if kind.startswith("Move") else caller[0],
            sourceCodeAfterRefactoring=after,
            classNameBefore=class_name,
            methodNameBefore=f"{class_name}#{name}",
            diffSourceCodeSet=[],
        )
        | changes
    )


def answer(kind: str) -> str:
    """Return the right answer of a type."""
    return format_answer(PARTS[kind])


def use(text: str, kind: str, files: Files | None = None, **changes: Any) -> EditedFiles | AnswerProblem:
    """Parse an answer to the instance of a type and apply it."""
    subject = instance(kind, **changes)
    parsed = parse_answer(text, subject)
    return apply_answer(subject, parsed, files or tree()) if isinstance(parsed, ParsedAnswer) else parsed
