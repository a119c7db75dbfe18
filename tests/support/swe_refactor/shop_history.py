"""The history of the small project: each of the six types once, and commits that give no instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from support.source.repositories import GitRepository, make_repository
from support.swe_refactor.shop_sources import (
    BASKET,
    BROKEN,
    LABELS,
    PAGES,
    PRICES,
    PROJECT,
    RATES,
    REPORT,
    SHELVES,
    TILL,
)
from support.swe_refactor.tested_project import AFTER, SHOP

Files = Mapping[str, str]


@dataclass(frozen=True)
class ShopHistory:
    """The repository OWNER/REPO in a folder, and its commits by what they are."""

    repository: GitRepository
    commits: Mapping[str, str]


def make_shop(folder: Path) -> ShopHistory:
    """Make the repository: one commit for each of CHANGES, then a merged one of another language."""
    repository = make_repository(folder / "example" / "shop")
    files = dict(PROJECT)

    def commit(changed: Files) -> str:
        return repository.commit({path.encode(): text.encode() for path, text in changed.items()})

    commits = {"first": commit(files)}
    for name, change in CHANGES.items():
        changed = change(files)
        assert all(files.get(path) != text for path, text in changed.items()), name
        files |= changed
        commits[name] = commit(changed)
    repository.git("checkout", "--quiet", "-b", "side")
    commits["no Java"] = commit({"README.md": "A shop.\n"})
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-ff", "--no-edit", "side")
    return ShopHistory(repository, {**commits, "merge": repository.git("rev-parse", "HEAD")})


def _inline_square(files: Files) -> Files:
    """Inline a method of a nested class; that of the other class of the name stays."""
    left, mark, right = files[SHELVES].partition("class Right")
    square = _method(right, "private int square")
    right = _replaced(right, square, "")
    return {
        SHELVES: left + mark + _replaced(right, "                return square(height);\n", _body(square))
    }


def _move_tax(files: Files) -> Files:
    tax = _method(files[BASKET], "static int tax")
    basket = _replaced(_replaced(files[BASKET], tax, ""), "tax(net)", "Rates.tax(net)")
    return {BASKET: basket, RATES: _with(files[RATES], tax)}


def _move_and_rename_round_up(files: Files) -> Files:
    round_up = _method(files[BASKET], "static int roundUp")
    basket = _replaced(_replaced(files[BASKET], round_up, ""), "roundUp(", "Rates.toFullTens(")
    return {BASKET: basket, RATES: _with(files[RATES], _replaced(round_up, "roundUp", "toFullTens"))}


def _extract_and_move_line(files: Files) -> Files:
    """Extract the end of a method to another class; what is no Java changes, too."""
    title = "        String title = name.trim();\n"
    end = _replaced(_body(_method(files[BASKET], "public String describe")), title, "")
    line = f"\n    static String line(String title, int[] prices) {{\n{end}    }}\n"
    return {
        BASKET: _replaced(files[BASKET], end, "        return Labels.line(title, prices);\n"),
        LABELS: _with(files[LABELS], line),
        BROKEN: f"{files[BROKEN]}// {{\n",
    }


def _move_and_inline_highest(files: Files) -> Files:
    highest = _method(files[PRICES], "static int highest")
    inlined = _replaced(_body(highest), "        return found;\n", "")
    call = "        int found = Prices.highest();\n"
    return {
        PRICES: _replaced(files[PRICES], highest, ""),
        BASKET: _replaced(files[BASKET], call, inlined),
    }


def _extract_other_coins(files: Files) -> Files:
    """Extract code, and change it."""
    text = files[TILL]
    loop = text[text.index("        int coins = 0;\n") : text.index("        return coins *")]
    changed = _replaced(_replaced(loop, "coins = 0", "coins = 1"), "rest, 5", "rest, 7 + coins")
    coins = f"\n    private int coins(int rest) {{\n{changed}        return coins;\n    }}\n"
    return {TILL: _with(_replaced(text, loop, "        int coins = coins(rest) - 1;\n"), coins)}


def _extract_untested_and_move_to_new_class(files: Files) -> Files:
    """Extract from the overload that no test calls, and move a method to a class that was not there."""
    total = _body(_method(files[SHOP], "public <T extends Number> int total"))
    head = "    private <T extends Number> int sumOf(List<T> prices) {\n"
    page = _method(files[REPORT], "static String page")
    return {
        SHOP: _with(
            _replaced(files[SHOP], total, "        return sumOf(prices);\n"), f"\n{head}{total}    }}\n"
        ),
        REPORT: _replaced(_replaced(files[REPORT], page, ""), "page(number)", "Pages.page(number)"),
        PAGES: f"package org.example;\n\nfinal class Pages {{{page}}}\n",
    }


def _extract_with_other_factor(files: Files) -> Files:
    """Extract code; a change elsewhere lets its test fail."""
    text = files[TILL]
    start = text.index("        int fee = price / 50;\n")
    code = text[start : text.index("        return fee +")]
    extracted = f"\n    private int atLeastOne(int price) {{\n{code}        return fee;\n    }}\n"
    return {
        TILL: _with(_replaced(text, code, "        int fee = atLeastOne(price);\n"), extracted),
        RATES: _replaced(files[RATES], "FACTOR = 2", "FACTOR = 3"),
    }


def _extract_with_typo(files: Files) -> Files:
    """Extract code; another file names a field that does not exist."""
    line = _body(_method(files[REPORT], "public String line"))
    extracted = _replaced(line, ' + ": " + text', "")
    start = f"\n    private String start(int number) {{\n{extracted}    }}\n"
    called = '        return start(number) + ": " + text;\n'
    return {
        REPORT: _with(_replaced(files[REPORT], line, called), start),
        TILL: _replaced(files[TILL], "coins * Rates.FACTOR", "coins * Rates.TIMES"),
    }


CHANGES: dict[str, Callable[[Files], Files]] = {
    "extract": lambda _: {SHOP: AFTER},
    "inline": _inline_square,
    "move": _move_tax,
    "move and rename": _move_and_rename_round_up,
    "extract and move": _extract_and_move_line,
    "move and inline": _move_and_inline_highest,
    "impure": _extract_other_coins,
    "rename": lambda files: {REPORT: _replaced(files[REPORT], "unused(", "neverUsed(")},
    "comment": lambda files: {RATES: _replaced(files[RATES], "final class", "/** Rates. */\nfinal class")},
    "untested": _extract_untested_and_move_to_new_class,
    "tests fail": _extract_with_other_factor,
    "tests pass": lambda files: {RATES: _replaced(files[RATES], "FACTOR = 3", "FACTOR = 2")},
    "typo": _extract_with_typo,
    "no typo": lambda files: {TILL: _replaced(files[TILL], "Rates.TIMES", "Rates.FACTOR")},
    "unparsable": lambda files: {BROKEN: f"{files[BROKEN]}}}}} void\n"},
}
"""What each commit does, the oldest first: it returns the files that it changes."""


def _method(text: str, head: str) -> str:
    """Return the method with ``head`` in its first line, with the empty line before it."""
    start = text.rindex("\n", 0, text.index(head)) + 1
    indent = " " * (len(text[start:]) - len(text[start:].lstrip()))
    end = text.index(f"\n{indent}}}\n", start) + len(indent) + 3
    return f"\n{text[start:end]}"


def _body(method: str) -> str:
    """Return the lines between the first and the last one of what ``_method`` returns."""
    return "".join(method.splitlines(keepends=True)[2:-1])


def _with(text: str, method: str) -> str:
    """Return the text of a class with one more method at its end."""
    return text.removesuffix("}\n") + method + "}\n"


def _replaced(text: str, old: str, new: str) -> str:
    assert old in text, old
    return text.replace(old, new, 1)
