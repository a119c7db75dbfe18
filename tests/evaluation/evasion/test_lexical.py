"""Literals and comments of a file are found, also where they are not closed."""

from __future__ import annotations

import time

import pytest

from codetaste.evaluation.evasion.encoded_text import ByteBudget, decoded_texts
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
    "backticks and letters": b"`a" * SIZE,
    "here documents": b"<<A <<B\n" * (SIZE // 8),
    "marks of here documents": b"<<A\nx\n" * (SIZE // 8),
    "documentation of Ruby": b"=begin\nx\n" * (SIZE // 8),
    "raw strings": b'r#"x" ' * (SIZE // 8),
    "hashes": b"r" + b"#" * SIZE,
    "open templates": b"`abcdefghijklmno" * (SIZE // 10),
    "open literals": b"'abcd`efghijklmno" * (SIZE // 10),
}


def test_literals_and_comments_are_found() -> None:
    script = b'a = \'x\' + `b\nc` // d\n// e\nf("g\\"") /* h\n*/ i\n'
    found = [script[each.start : each.end] for each in quoted_regions(script, "a.js")]
    assert found == [b"'x'", b"`b\nc`", b"// d\n// e", b'"g\\""', b"/* h\n*/"]
    python = b"a = 3 // 2  # b\n'''c\n# d'''\n"
    assert [each.is_comment for each in quoted_regions(python, "a.py")] == [True, False]
    assert without_regions(python, "a.py", strings=True) == b"a = 3 // 2     \n    \n      \n"
    assert without_regions(python, "a.py", strings=False).endswith(b"'''c\n# d'''\n")


@pytest.mark.parametrize(
    ("path", "content", "found"),
    [
        ("a.rb", b"x = <<~SQL + y\n  a 'b\n  SQL\nz('c')\n", [b"<<~SQL + y\n  a 'b\n  SQL", b"'c'"]),
        ("a.rb", b"class << self\n  a << 'b'\n", [b"'b'"]),
        ("a.rb", b"a\n=begin\nb 'c\n=end\nd\n", [b"=begin\nb 'c\n=end"]),
        ("a.rb", b"a\n__END__\nb\n", [b"__END__\nb\n"]),
        ("a.rb", b"a # b\n'c'\n", [b"# b", b"'c'"]),
        ("a.sh", b"cat <<'EOF'\na\nEOF\nb\n", [b"<<'EOF'\na\nEOF"]),
        ("a.rs", b'f(r#"a "b" c"#, br"d\\", "e")', [b'r#"a "b" c"#', b'br"d\\"', b'"e"']),
        ("a.rs", b'for"a" // r"\n', [b'"a"', b'// r"']),
    ],
)
def test_forms_of_one_language_are_found(path: str, content: bytes, found: list[bytes]) -> None:
    assert [content[each.start : each.end] for each in quoted_regions(content, path)] == found


@pytest.mark.parametrize("name", ["a.py", "a.js", "a.rb", "a.rs"])
@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_takes_no_more_time_than_its_size(content: bytes, name: str) -> None:
    """If a try began anew at every character, this would take hours."""
    assert all(each.start < each.end for each in quoted_regions(content, name))
    decoded_texts(content, ByteBudget(8 * 1024**2))


def processor_time(content: bytes, name: str) -> float:
    def once() -> float:
        start = time.thread_time()
        without_regions(content, name, strings=True)
        decoded_texts(content, ByteBudget(8 * 1024**2))
        return time.thread_time() - start

    return min(once() for _ in range(3))


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", ["a.js", "a.rb", "a.rs"])
def test_time_grows_with_the_size_and_not_with_its_square(content: bytes, name: str) -> None:
    quarter = content[: len(content) // 4]
    assert processor_time(content, name) < 10 * processor_time(quarter, name)


@pytest.mark.parametrize(
    ("path", "suffix"), [("a/b.PY", "py"), ("a.b/c", ""), (".vimrc", ""), ("a.tar.gz", "gz")]
)
def test_suffix_is_that_of_the_name(path: str, suffix: str) -> None:
    assert suffix_of(path) == suffix
