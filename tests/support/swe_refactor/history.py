"""A small Java project whose only change has four kinds of refactorings, and their detections."""

from __future__ import annotations

from pathlib import Path

from codetaste.refactorings.model import CodeRange, Purity, Refactoring
from support.source.repositories import GitRepository, make_repository

A, B, UTIL, CALLER = (f"core/java/p/{name}.java" for name in ("A", "B", "Util", "sub/Caller"))
BEFORE = {
    A: """package p;

/** A class. */
public class A extends Base {
    int sum(int a, int b) {
        int c = a + b;
        return twice(c);
    }

    int sum(int a) {
        return a;
    }

    String show(String text) {
        return text.trim() + text.length();
    }

    int twice(int n) { return 2 * n; }
}
""",
    B: """package p;

class B {
    int all() {
        return one() + helper(1);
    }

    private int one() {
        return 1;
    }

    int helper(int n) {
        return n;
    }
}
""",
    UTIL: "package p;\n\nclass Util {\n}\n",
    CALLER: "package p.sub;\n\nclass Caller extends p.A {\n    int use() { return sum(1, 2); }\n}\n",
    "core/java/p/Base.java": "package p;\n\nclass Base {\n}\n",
}
AFTER = {
    A: """package p;

/** A class. */
public class A extends Base {
    int sum(int a, int b) {
        return twice(add(a, b));
    }

    private int add(int a, int b) {
        return a + b;
    }

    int sum(int a) {
        return a;
    }

    String show(String text) {
        return Util.show(text);
    }

    int twice(int n) { return 2 * n; }
}
""",
    B: """package p;

class B {
    int all() {
        return 1 + new Util().helper(1);
    }
}
""",
    UTIL: """package p;

class Util {
    static String show(String text) {
        return text.trim() + text.length();
    }

    int helper(int n) {
        return n;
    }
}
""",
}
PURE = Purity(pure=True, description="There is no replacement!", comment=None, mapping_state=1)


def make_history(folder: Path) -> tuple[Path, str]:
    """Make the repository; return it and its second commit."""
    repository: GitRepository = make_repository(folder)
    repository.commit({path.encode(): text.encode() for path, text in BEFORE.items()} | {b"note.txt": b"1"})
    commit = repository.commit(
        {path.encode(): text.encode() for path, text in AFTER.items()} | {b"note.txt": b"2"}
    )
    return folder, commit


def method(text: str, head: str) -> tuple[int, int]:
    """Return the first and last line of the method whose first line begins with ``head``."""
    lines = text.split("\n")
    start = next(number for number, line in enumerate(lines, 1) if line.strip().startswith(head))
    if lines[start - 1].endswith("}"):
        return start, start
    return start, next(number for number, line in enumerate(lines, 1) if number > start and line == "    }")


def place(side: dict[str, str], path: str, head: str, part: str) -> CodeRange:
    """Return the range of a method as RefactoringMiner describes it."""
    start, end = method(side[path], head)
    return CodeRange(path, start, end, 5, 6, "METHOD_DECLARATION", part, None)


def detections() -> dict[str, Refactoring]:
    """Return the detections of the change, by type."""
    statement = CodeRange(
        A, 6, 6, 9, 23, "RETURN_STATEMENT", "extracted code from source method declaration", None
    )
    found = (
        Refactoring(
            "Extract Method",
            "Extract Method private add(a int, b int) : int extracted from package sum(a int, b int) : int",
            (
                place(BEFORE, A, "int sum(int a, int b)", "source method declaration before extraction"),
                statement,
            ),
            (
                place(AFTER, A, "private int add", "extracted method declaration"),
                place(AFTER, A, "int sum(int a, int b)", "source method declaration after extraction"),
            ),
            PURE,
        ),
        Refactoring(
            "Extract And Move Method",
            "Extract And Move Method package show(text String) : String extracted from package show()",
            (place(BEFORE, A, "String show", "source method declaration before extraction"),),
            (
                place(AFTER, UTIL, "static String show", "extracted method declaration"),
                place(AFTER, A, "String show", "source method declaration after extraction"),
            ),
            PURE,
        ),
        Refactoring(
            "Inline Method",
            "Inline Method private one() : int inlined to package all() : int in class p.B",
            (
                place(BEFORE, B, "private int one", "inlined method declaration"),
                place(BEFORE, B, "int all", "target method declaration before inline"),
            ),
            (place(AFTER, B, "int all", "target method declaration after inline"),),
            PURE,
        ),
        Refactoring(
            "Move Method",
            "Move Method package helper(n int) : int from class p.B to package helper(n int) : int",
            (place(BEFORE, B, "int helper", "original method declaration"),),
            (place(AFTER, UTIL, "int helper", "moved method declaration"),),
            PURE,
        ),
    )
    return {each.type: each for each in found}
