"""Literals and comments of a file are found, also where they are not closed."""

from __future__ import annotations

import pytest

from codetaste.evaluation.evasion.encoded_text import decoded_texts
from codetaste.evaluation.evasion.lexical import quoted_regions, suffix_of, without_regions

SIZE = 100_000
HOSTILE = {
    "comments": b"/*" * SIZE,
    "three quotes": b'"""x' * SIZE,
    "escaped quotes": b'"\\"' * SIZE,
    "quotes of each kind": b"\"'`" * SIZE,
    "escaped backticks": b"`\\" * SIZE,
    "backslashes": b'"""' + b"\\" * SIZE,
    "spaces": b'"' + b" " * SIZE,
    "literals": b'" ' * SIZE,
    "numbers": b"1 ," * SIZE,
    "letters": b"A" * SIZE,
    "escapes": b"\\x41" * SIZE,
}


def test_literals_and_comments_are_found() -> None:
    script = b'a = \'x\' + `b\nc` // d\n// e\nf("g\\"") /* h\n*/ i\n'
    found = [script[each.start : each.end] for each in quoted_regions(script, "a.js")]
    assert found == [b"'x'", b"`b\nc`", b"// d\n// e", b'"g\\""', b"/* h\n*/"]
    python = b"a = 3 // 2  # b\n'''c\n# d'''\n"
    assert [each.is_comment for each in quoted_regions(python, "a.py")] == [True, False]
    assert without_regions(python, "a.py", strings=True) == b"a = 3 // 2     \n    \n      \n"
    assert without_regions(python, "a.py", strings=False).endswith(b"'''c\n# d'''\n")


@pytest.mark.parametrize("name", ["a.py", "a.js"])
@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_takes_no_more_time_than_its_size(content: bytes, name: str) -> None:
    """If a try began anew at every character, this would take hours."""
    assert all(each.start < each.end for each in quoted_regions(content, name))
    decoded_texts(content)


@pytest.mark.parametrize(
    ("path", "suffix"), [("a/b.PY", "py"), ("a.b/c", ""), (".vimrc", ""), ("a.tar.gz", "gz")]
)
def test_suffix_is_that_of_the_name(path: str, suffix: str) -> None:
    assert suffix_of(path) == suffix
