"""The leak check refuses sentences that name what only the golden patch knows, and says where it has it."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.flows.describe.leak_check.leaks import find_leaks
from codetaste.flows.describe.leak_check.patch_names import read_patch_names
from codetaste.flows.describe.leak_check.words import read_vocabulary, words_of

OLD = {
    "shop/prices.py": "def price_of(item):\n    return len(item)  # cheap\n",
    "shop/cart.py": "class Cart:\n    def total(self):\n        return sum(map(price_of, self))\n",
}
NEW = {
    "shop/prices.py": (
        "from money import Amount\n\n\ndef net_price(item):\n    return Amount(len(item), 'any euro')\n"
    ),
    "shop/basket.py": (
        "class ShoppingBasket:\n    def total(self):\n        return sum(map(net_price, self))\n"
    ),
    "shop/units.py": "class Quantity:\n    pass\n",
    "requirements.txt": "money-lib==2.14\n",
    "NEWS.md": "Baskets are wonderful\n",
    "AUTHORS": "somewhat curious\n",
}


def patch_of(old: dict[str, str], new: dict[str, str]) -> bytes:
    """The patch between two trees in git's form, made without git."""
    text = ""
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path, ""), new.get(path, "")
        if before == after:
            continue
        names = [f"a/{path}" if path in old else "/dev/null", f"b/{path}" if path in new else "/dev/null"]
        mode = (
            "" if path in old and path in new else f"{'new' if path in new else 'deleted'} file mode 100644\n"
        )
        lines = difflib.unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True), *names
        )
        text += f"diff --git a/{path} b/{path}\n{mode}{''.join(lines)}"
    return text.encode()


NAMES = read_patch_names(patch_of(OLD, NEW))


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("Introduce net_price for items", {"symbol net_price"}),
        ("Rename price_of", {"symbol price_of"}),
        ("Use an Amount for money", {"symbol Amount"}),
        ("Introduce a shopping basket", {"symbol shopping basket"}),
        ("Turn carts into ShoppingBaskets", {"symbol ShoppingBaskets"}),
        ("Introduce quantities for items", {"symbol quantities"}),
        ("Hand over net pri\u200bces", {"symbol net prices"}),
        ("Hand over \uff4e\uff45\uff54_price values", {"symbol net_price"}),
        ("Tidy up shop/prices.py", {"path shop/prices.py"}),
        ("Clean up prices.py", {"path prices.py"}),
        ("Replace carts with something else", {"decision Replace carts with something else"}),
        ("Migrate prices to exact numbers", {"decision Migrate prices to exact numbers"}),
        ("Tidy up shop/ and more", {"path shop/"}),
        ("Tidy up items → things", {"decision items → things"}),
        ("Compute prices using fractions", {"decision using fractions"}),
        ("Drop len() for prices", {"code len()"}),
        ("Clean up `prices`", {"code `prices`"}),
        ("Depend on money-lib for prices", {"symbol money-lib"}),
        ("Support version 2.14", {"decision 2.14"}),
        ("Refactor how prices are computed", set()),
        ("Improve the shop's cart", set()),
        ("Amount to something in the shop", set()),
    ],
)
def test_sentence_gives_away(sentence: str, found: set[str]) -> None:
    leaks = find_leaks(sentence, NAMES)
    assert {f"{leak.kind} {leak.words}" for leak in leaks} >= found
    assert bool(leaks) == bool(found), [str(leak) for leak in leaks]
    assert all(leak.evidence for leak in leaks)


def test_evidence_is_the_line_of_the_patch() -> None:
    (leak,) = find_leaks("Introduce net_price", NAMES)
    assert str(leak) == 'symbol "net_price" (shop/basket.py: return sum(map(net_price, self)))'


def test_words_of_documents_comments_and_quoted_prose_are_no_symbols() -> None:
    assert find_leaks("Make wonderful carts", NAMES) == ()
    assert find_leaks("Make somewhat curious carts", NAMES) == ()
    assert find_leaks("Support the euro", NAMES) == ()
    assert find_leaks("Make it cheap", NAMES) == ()


def test_words_that_r_uses_in_its_prose_may_be_used(tmp_path: Path) -> None:
    assert find_leaks("Improve each amount", NAMES) != ()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/guide.md").write_text("The Amount of a price, on GitHub.\n")
    (tmp_path / "code.py").write_text("secret = 1\n")
    vocabulary = read_vocabulary(tmp_path)
    assert {"amount", "price", "git", "hub"} <= vocabulary
    assert "secret" not in vocabulary
    assert find_leaks("Improve each amount", NAMES, vocabulary) == ()
    assert find_leaks("Improve each NetPrice net_price", NAMES, vocabulary | {"net", "price"}) != ()


def test_code_that_the_instructed_description_quotes_may_not_be_repeated() -> None:
    instructed = "Replace `frozenlist` in `shop` and `a b`."
    (leak,) = find_leaks("Drop frozenlist from the shop", NAMES, (), instructed)
    assert (leak.kind, leak.words) == ("code", "frozenlist")


WORD = st.text("abcdefghij", min_size=4, max_size=9)
SNAKE = st.lists(WORD, min_size=2, max_size=3).map("_".join)
SIMPLE_LINE = st.builds("{} = {}\n".format, SNAKE, SNAKE)
SIMPLE_FILE = st.lists(SIMPLE_LINE, max_size=8).map("".join)


@given(old=SIMPLE_FILE, new=SIMPLE_FILE)
def test_introduced_names_are_those_that_only_added_lines_have(old: str, new: str) -> None:
    if old == new:
        return
    names = read_patch_names(patch_of({"a.py": old}, {"a.py": new}))
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), n=3))[3:]
    lines = [line for line in lines if not line.startswith("@@")]
    added = {name for line in lines if line[0] == "+" for name in re.findall(r"\w+", line[1:])}
    others = {name for line in lines if line[0] in "- " for name in re.findall(r"\w+", line[1:])}
    assert set(names.introduced) == added - others
    changed = {name for line in lines if line[0] in "+-" for name in re.findall(r"\w+", line[1:])}
    assert set(names.symbols) == changed
    assert names.words >= {word for name in others for word in name.split("_")}


@given(name=SNAKE, words=st.lists(WORD, min_size=1, max_size=5), place=st.integers(0, 5))
def test_a_new_identifier_is_found_wherever_it_stands_and_however_it_is_spelled(
    name: str, words: list[str], place: int
) -> None:
    names = read_patch_names(patch_of({"a.py": "x = 1\n"}, {"a.py": f"{name} = 1\n"}))
    at = min(place, len(words))
    for spelled in (name, name.replace("_", " "), name.replace("_", "-")):
        sentence = " ".join([*words[:at], spelled, *words[at:]])
        leaks = find_leaks(sentence, names, words)
        assert any(name.replace("_", "") == re.sub(r"[\W_]", "", leak.words).lower() for leak in leaks)


@given(folder=WORD, stem=WORD, words=st.lists(WORD, min_size=1, max_size=5))
def test_a_changed_path_is_found(folder: str, stem: str, words: list[str]) -> None:
    path = f"{folder}/{stem}.py"
    names = read_patch_names(patch_of({path: "x = 1\n"}, {path: "x = 2\n"}))
    for named in (path, f"{stem}.py"):
        assert "path" in {leak.kind for leak in find_leaks(" ".join([*words, named]), names, words)}


@given(words=st.lists(WORD, min_size=1, max_size=8), old=SIMPLE_FILE, new=SIMPLE_FILE)
def test_words_that_r_uses_give_nothing_away(words: list[str], old: str, new: str) -> None:
    prose = "# " + " ".join(words) + "\n"
    names = read_patch_names(patch_of({"a.py": prose + old}, {"a.py": prose + new + "y = 1\n"}))
    joined = {re.sub(r"\W|_", "", name) for name in names.introduced}
    runs = {"".join(words[i:j]) for i in range(len(words)) for j in range(i, len(words) + 1)}
    leaks = find_leaks(" ".join(words), names)
    if not joined & (runs | {run.removesuffix("s") for run in runs}):
        assert [leak for leak in leaks if leak.kind != "decision"] == []


@given(st.text(max_size=200))
def test_any_text_is_checked(text: str) -> None:
    find_leaks(text, NAMES, words_of(text) and set(words_of(text)), text)
