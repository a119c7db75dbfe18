"""Addresses: one portable name a text, and none that is the name of another file of the site."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.site.html.address import file_name


@given(st.text(max_size=90))
def test_names_are_portable(text: str) -> None:
    name = file_name(text)
    assert re.fullmatch(r"[a-z0-9_-][a-z0-9._-]{0,76}", name)
    assert not name.endswith(".")


@pytest.mark.parametrize("text", ["index.html", "trials.csv", "list.csv", "tables.csv", "a.json", "a.js"])
def test_no_folder_is_named_like_a_file_of_the_site(text: str) -> None:
    assert re.fullmatch(r"[a-z]+-[0-9a-f]{16}", file_name(text))


@pytest.mark.parametrize("text", ["con", "aux.1", "NUL", "com1", "lpt9.txt"])
def test_no_name_is_a_device_of_windows(text: str) -> None:
    assert re.fullmatch(r"[a-z0-9]+-[0-9a-f]{16}", file_name(text))


def test_texts_that_differ_in_case_or_in_what_is_left_out_have_their_own_names() -> None:
    texts = ["gpt", "GPT", "Gpt", "..", ".", "", "gpt.", "g\ud800", "g/../pt", "x" * 61, "x" * 62]
    assert len({file_name(text) for text in texts}) == len(texts)
    assert file_name("gpt-5.2") == "gpt-5.2"


@given(st.text(max_size=70))
def test_no_text_can_take_the_name_of_another_one(text: str) -> None:
    name = file_name(text)
    assert name == text or file_name(name) != name


def test_a_key_in_a_name_is_not_in_its_address() -> None:
    # Composed, so that this file is not taken for one with a key.
    key = "ghp" + "_" + "aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0vW1xY2"
    names = [file_name(each) for each in (key, f"agent {key}", key[:-1])]
    assert all(re.fullmatch(r"[0-9a-f]{16}", name) for name in names[:2])
    assert len(set(names)) == len(names)
