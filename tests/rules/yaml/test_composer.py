"""Rule files read by libyaml: what it accepts is exactly what the complete reader returns."""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.errors import RuleError
from codetaste.rules import rule as rule_files
from codetaste.rules.rule import parse_rules
from codetaste.rules.yaml import reader as yaml_reader

if TYPE_CHECKING:
    from pathlib import Path

WORDS = "a 1 0o7 0x1 1e3 1:20 on ~ null true .5 .inf 2001-01-01 é $X << ="
SIGNS = ": - { } [ ] # ' \" \\ \\n '' | |- > |+ >2 |1 ! !a % @ ` ... ---"
PIECES = (
    *f"{WORDS} {SIGNS}".split(),
    *("b: ", "- ", "? ", ", ", " #", "&x ", "*x", "!!str ", "\t", "x: |\n  ", "- - "),
    *("\n", "\n ", "\n  ", "\n    ", "\n\n", " ", "  ", "\n- ", "\nk: ", "\n  k: "),
)


def plain(root: Any) -> tuple[str, list[int]]:
    return repr(yaml_reader.NodeReader(2_000).to_plain(root)), list(lines(root))


def lines(node: Any) -> Any:
    """Lines of the mappings: those that rules keep."""
    if yaml_reader.is_mapping(node):
        yield yaml_reader.line_of(node)
        for _, value in node.value:
            yield from lines(value)
    elif yaml_reader.is_sequence(node):
        for child in node.value:
            yield from lines(child)


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=14).map("".join))
def test_what_libyaml_accepts_is_what_ruamel_reads(text: str) -> None:
    root = yaml_reader.compose_fast("x: 1\n" + text)
    if root is None:
        return
    try:
        fast = plain(root)
    except RuleError:  # then the file is read again by the complete reader
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an anchor that is defined twice
        assert plain(yaml_reader.compose("x: 1\n" + text)) == fast


def test_published_rules_are_read_fast_and_alike(
    published_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [file.read_bytes() for file in sorted(published_data.rglob("rules_*.yml"))]
    fast = [parse_rules(text, source="x") for text in texts]
    assert all(yaml_reader.compose_fast(yaml_reader.decode(text)) for text in texts)
    monkeypatch.setattr(rule_files, "_read_fast", lambda _: ())
    assert fast == [parse_rules(text, source="x") for text in texts]


def test_libyaml_reads_deep_text_in_a_thread() -> None:
    text = "rules:\n- id: " + "[" * 990 + "]" * 990
    caught: list[RuleError] = []

    def read() -> None:
        root = yaml_reader.compose_fast(text)
        try:
            assert root is None or yaml_reader.NodeReader().to_plain(root)
        except RuleError as error:
            caught.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert "deeper than 64" in str(caught[0])
