"""The order of a Java set of strings, against a model of its table that grows element by element."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codetaste.swe_refactor.enrich.hash_set import hash_set_order, string_hash


def java_hash(text: str) -> int:
    units = text.encode("utf-16-be", "surrogatepass")
    pairs = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return sum(unit * 31 ** (len(pairs) - 1 - place) for place, unit in enumerate(pairs)) % 2**32


def model(texts: list[str]) -> list[str]:
    """Add to a table of lists that doubles when more than three quarters are full."""
    table: list[list[str]] = [[] for _ in range(16)]

    def place(text: str) -> list[str]:
        value = java_hash(text)
        return table[(value ^ (value >> 16)) % len(table)]

    size = 0
    for text in texts:
        if text in place(text):
            continue
        place(text).append(text)
        size += 1
        if size > len(table) * 3 / 4:
            old = [each for chain in table for each in chain]
            table = [[] for _ in range(2 * len(table))]
            for each in old:
                place(each).append(each)
    return [each for chain in table for each in chain]


@given(st.lists(st.text(max_size=8), max_size=60))
def test_the_order_is_that_of_the_table(texts: list[str]) -> None:
    assert hash_set_order(texts) == model(texts)


def test_hashes_are_those_of_java() -> None:
    known = {"": 0, "a": 97, "hello": 99162322, "Aa": 2112, "BB": 2112, "polygenelubricants": 1 << 31}
    assert {text: string_hash(text) for text in known} == known
    assert string_hash("😀") == 31 * 0xD83D + 0xDE00


def test_colliding_texts_stay_in_the_order_in_which_they_were_added() -> None:
    assert hash_set_order(["BB", "Aa", "BB"]) == ["BB", "Aa"]
