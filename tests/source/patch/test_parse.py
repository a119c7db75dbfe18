"""Parsing a patch gives the lines that it removes and adds, in every format."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from codetaste.errors import PatchError, PatchTooLarge, SourceError
from codetaste.source.patch.model import FileDiff
from codetaste.source.patch.parse import parse_patch, read_patch


def only(content: bytes) -> FileDiff:
    (file,) = parse_patch(content).files
    return file


def test_lines_are_numbered_in_the_old_and_in_the_new_file() -> None:
    patch = parse_patch(
        b"diff --git a/s/x.py b/s/x.py\nindex 1234567..89abcde 100755\n--- a/s/x.py\n+++ b/s/x.py\n"
        b"@@ -3,4 +3,3 @@ def f():\n one\n-two\n-three\n+drei\n four\n"
        b"@@ -10 +9,2 @@\n-ten\n+neun\n+zehn\n"
    )
    (file,) = patch.files
    assert (file.old, file.new) == ("s/x.py", "s/x.py")
    assert file.removed == (4, 5, 10)
    assert file.added == (4, 9, 10)
    assert (file.old_blob, file.new_blob, file.old_mode, file.new_mode) == (
        *("1234567", "89abcde"),
        *(0o100755, 0o100755),
    )
    assert patch.removed == {("s/x.py", 4), ("s/x.py", 5), ("s/x.py", 10)}
    assert patch.added == {("s/x.py", 4), ("s/x.py", 9), ("s/x.py", 10)}
    assert (patch.removed_count, patch.added_count) == (3, 3)


@pytest.mark.parametrize("odd", [b"\x0c", b"\x0b", b"\r", b"\x85", b"\xe2\x80\xa8", b"\x1e", b"\0", b"\xff"])
def test_only_a_newline_ends_a_line(odd: bytes) -> None:
    file = only(
        b"--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-a%bb\n-%b\n+%bb%b\n+%b\n c%bd\n"
        % (odd, odd, odd, odd, odd, odd)
    )
    assert (file.removed, file.added) == ((1, 2), (1, 2))


def test_hunk_lines_that_look_like_headers_are_content() -> None:
    first, second = parse_patch(
        b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,4 +1,5 @@\n--- a/y\n+++ b/y\n diff --git a/z b/z\n"
        b"-@@ -1 +1 @@\n+@@ -1,9 +1 @@\n+GIT binary patch\n -- \n"
        b"--- a/y\n+++ b/y\n@@ -1 +0,0 @@\n-end\n"
    ).files
    assert (first.removed, first.added) == ((1, 3), (1, 3, 4))
    assert (second.old, second.removed, second.added) == ("y", (1,), ())


def test_a_plain_diff_may_follow_lines_that_look_like_its_header() -> None:
    first, second = parse_patch(
        b"--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n a\n-b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d\n"
    ).files
    assert (first.removed, second.new, second.removed) == ((2,), "y", (1,))


def test_missing_final_newlines_are_not_counted() -> None:
    file = only(
        b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ Kein Zeilenende\n"
    )
    assert (file.removed, file.added) == ((2,), (2,))


def test_empty_context_line_may_lack_its_space() -> None:
    assert only(b"--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n").removed == (3,)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (b'diff --git "a/t\\tq\\"\\303\\244\\\\ \\377" "b/t\\tq\\"\\303\\244\\\\ \\377"', 't\tq"ä\\ \udcff'),
        (b"diff --git a/x y b/x y", "x y"),
        (b"diff --git a/x b/x b/x b/x", "x b/x"),
        (b"diff --git a/x b/x", "x"),
        (b"diff --git i/x w/x", "x"),
        (b"diff --git old/a/x new/a/x", "a/x"),
        (b"diff --git x y x y", "x y"),
        (b"diff --git a/x a/x", "a/x"),
        (b"diff --git x x\r", "x"),
        (b"diff --git one prefix/x y/z other prefix/x y/z", "x y/z"),
        (b'diff --git "a/x\\ty" b/x\ty', "x\ty"),
        (b'diff --git a/x\ty "b/x\\ty"', "x\ty"),
    ],
)
def test_names_on_one_line_are_separated(header: bytes, name: str) -> None:
    mode_only = only(header + b"\nold mode 100644\nnew mode 100755\n")
    assert (mode_only.old, mode_only.new) == (name, name)
    assert (mode_only.old_mode, mode_only.new_mode) == (0o100644, 0o100755)
    empty = only(header + b"\nnew file mode 100644\nindex 0000000..e69de29\n")
    assert (empty.old, empty.new, empty.added) == (None, name, ())
    binary = only(header + b"\nindex 1234567..89abcde 100644\nBinary files a and b differ\n")
    assert (binary.new, binary.binary) == (name, True)


def test_tab_ends_a_name_with_blanks_and_quote_ends_a_quoted_name() -> None:
    content = b"diff --git a/x y b/x y\n--- a/x y\t\n+++ b/x y\t\n@@ -1 +1 @@\n-a\n+b\n"
    assert only(content).new == "x y"
    quoted = b'diff --git "a/x\\ny" "b/x\\ny"\n--- "a/x\\ny"\n+++ "b/x\\ny"\n@@ -1 +1 @@\n-a\n+b\n'
    assert only(quoted).new == "x\ny"


@pytest.mark.parametrize("kind", [b"rename", b"copy"])
def test_renames_and_copies_have_two_names(kind: bytes) -> None:
    head = b"diff --git a/o/x b/n/y\nsimilarity index 90%%\n%b from o/x\n%b to n/y\n" % (kind, kind)
    pure = only(head)
    assert (pure.old, pure.new, pure.removed, pure.added) == ("o/x", "n/y", (), ())
    assert (pure.renamed, pure.copied) == (kind == b"rename", kind == b"copy")
    edited = parse_patch(head + b"index 1..2 100644\n--- a/o/x\n+++ b/n/y\n@@ -2 +2 @@\n-a\n+b\n")
    assert edited.removed == {("o/x", 2)}
    assert edited.added == {("n/y", 2)}


def test_a_file_that_is_new_or_deleted_has_one_name() -> None:
    new, gone = parse_patch(
        b"diff --git a/n b/n\nnew file mode 120000\nindex 0000000..1234567\n--- /dev/null\n+++ b/n\n"
        b"@@ -0,0 +1 @@\n+target\n\\ No newline at end of file\n"
        b"diff --git a/g b/g\ndeleted file mode 100755\nindex 1234567..0000000\n--- a/g\n+++ /dev/null\n"
        b"@@ -1,2 +0,0 @@\n-a\n-b\n"
    ).files
    assert (new.old, new.new, new.new_mode, new.added) == (None, "n", 0o120000, (1,))
    assert (gone.old, gone.new, gone.old_mode, gone.removed) == ("g", None, 0o100755, (1, 2))


def test_submodule_is_recognised_by_mode() -> None:
    file = only(
        b"diff --git a/sub b/sub\nindex 1234567..89abcde 160000\n--- a/sub\n+++ b/sub\n@@ -1 +1 @@\n"
        b"-Subproject commit 1\n+Subproject commit 2\n"
    )
    assert file.submodule
    assert (file.removed, file.added) == ((1,), (1,))


def test_binary_contents_have_no_lines_but_a_size() -> None:
    literal = b"GIT binary patch\nliteral 3\nKcmZQzWMT#Y01f~L\n\nliteral 0\nHcmV?d00001\n\n"
    first, second = parse_patch(
        b"diff --git a/x b/x\nindex 1..2 100644\n"
        + literal
        + b"diff --git a/y b/y\nindex 1..2 100644\n"
        + literal
    ).files
    assert (first.binary, first.removed, first.added, first.declared_bytes) == (True, (), (), 3)
    assert second.old == "y"


def test_mail_around_a_patch_is_ignored() -> None:
    patch = parse_patch(
        b"From 1234 Mon Sep 17 00:00:00\nFrom: A <a@example.org>\nSubject: [PATCH] x\n\n--- not a header\n"
        b"text\n---\n x | 2 +-\n 1 file changed\n\n"
        b"diff --git a/x b/x\nindex 1234..5678 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n-- \n2.39.5\n\n"
    )
    assert (patch.removed, patch.added) == ({("x", 1)}, {("x", 1)})


def test_plain_diff_names_files_and_detects_new_by_epoch_time() -> None:
    new, both = parse_patch(
        b"diff -ruN old/n new/n\n--- old/n\t1970-01-01 00:00:00.000000000 +0000\n"
        b"+++ new/n\t2024-01-02 03:04:05.000000000 +0100\n@@ -0,0 +1 @@\n+a\n"
        b"Only in old: z\n--- old/s/b\t2024-01-02 03:04:05 +0000\n+++ new/s/b\t2024-01-02 03:04:05 +0000\n"
        b"@@ -1 +1 @@\n-a\n+b\n"
    ).files
    assert (new.old, new.new) == (None, "n")
    assert (both.old, both.new) == ("s/b", "s/b")
    assert only(b"--- x.py.orig\n+++ x.py\n@@ -1 +1 @@\n-a\n+b\n").new == "x.py"


def test_lines_and_headers_may_end_in_cr_lf() -> None:
    content = (
        b"diff --git a/x b/x\nindex 1234..5678 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n"
        b"diff --git a/y b/z\nsimilarity index 100%\nrename from y\nrename to z\n"
    )
    patch = parse_patch(content.replace(b"\n", b"\r\n"))
    assert patch.added == parse_patch(content).added == {("x", 3)}
    assert (patch.files[1].old, patch.files[1].new) == ("y", "z")


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\t\n"])
def test_a_blank_patch_changes_nothing(content: bytes) -> None:
    patch = parse_patch(content)
    assert (patch.files, patch.added, patch.removed) == ((), frozenset(), frozenset())


X = b"diff --git a/x b/x\nindex 1234..5678 100644\n--- a/x\n+++ b/x\n"


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"hello\nworld\n", 0, "no file header"),
        (b"PK\x03\x04\0\0", 0, "no file header"),
        (
            X + b"@@ -1,3 +1,3 @@\n a\n-b\n",
            8,
            "ends here; the hunk at line 5 is missing 1 old and 2 new lines",
        ),
        (X + b"@@ -1,2 +1,2 @@\n a\n-b\n+c", 8, "in the middle of a line"),
        (X + b"@@ -1,2 +1,2 @@\n a\n-b\n*c\n", 8, "unexpected line"),
        (X + b"@@ -1 +1 @@\n-a\n-b\n+c\n", 7, "unexpected line"),
        (X + b"@@ -1 +1 @\n-a\n+b\n", 5, "invalid hunk header"),
        (X + b"@@ -99999999999 +1 @@\n-a\n+b\n", 5, "invalid hunk header"),
        (X, 1, "nothing after it"),
        (b"diff --git a/x b/x\nindex 1..2\n", 1, "nothing after it"),
        (b"text\n@@ -1 +1 @@\n-a\n+b\n", 2, "without a file header"),
        (b"diff --cc x\nindex 1,2..3\n", 1, "combined"),
        (b"diff --combined x\n", 1, "combined"),
        (X + b"@@@ -1,2 -1,2 +1,3 @@@\n  a\n", 1, "nothing after it"),
        (b"diff --git a/x b/x\nnew file mode none\n", 2, "invalid file header"),
        (b"diff --git a/x b/y\nold mode 100644\nnew mode 100755\n", 1, "cannot be determined"),
        (b"diff --git a/x b/x\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", 1, "two names"),
        (b"diff --git a/x b/x\nrename from x\n", 1, "without both names"),
        (b"diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 9\n", 4, "binary contents"),
        (b"diff --git a/x b/x\nindex 1..2\nGIT binary patch\ndelta 9\nzzz\n\n", 4, "damaged"),
        (
            X + b"@@ -1 +1 @@\n-a\n+b\ndiff --git y y\n--- y\n+++ y\n@@ -1 +1 @@\n-a\n+b\n",
            8,
            "some have none",
        ),
    ],
)
def test_error_of_an_invalid_patch_names_the_line(content: bytes, line: int, message: str) -> None:
    with pytest.raises(PatchError) as caught:
        parse_patch(content)
    assert message in str(caught.value)
    assert caught.value.line == line
    assert "\n" not in str(caught.value)


def test_long_lines_are_parsed_in_linear_time() -> None:
    """Parsing in quadratic time would reach the time limit of a test."""
    blanks = b" /" * 500_000
    for content in (
        b"diff --git a/%b b/%b\nold mode 100644\n" % (blanks, blanks),
        b"--- %b\n+++ %b\n@@ -1 +1 @@\n-a\n+b\n" % (blanks, blanks * 2),
        b"--- x%b2024-01-02 03:04:05/\n" % blanks * 2,
        b'diff --git "%b\nold mode 100644\n' % (b"\\" * 1_000_001),
    ):
        with suppress(PatchError):
            parse_patch(content)


def test_counts_do_not_list_the_lines() -> None:
    many = 300_000
    patch = parse_patch(b"--- a/x\n+++ b/x\n@@ -0,0 +1,%d @@\n" % many + b"+\n" * many)
    assert patch.added_count == many
    assert patch.files[0].added_runs == (range(1, many + 1),)


def test_patch_with_too_many_files_is_refused() -> None:
    with pytest.raises(PatchTooLarge, match="200,000"):
        parse_patch(b"diff --git a/x b/x\nnew file mode 100644\n" * 200_002)


@pytest.mark.slow
def test_patch_with_too_many_places_is_refused() -> None:
    hunk = b"@@ -1,300000 +1,300000 @@\n" + b"-\n+\n" * 300_000
    with pytest.raises(PatchTooLarge, match="2,000,000 places"):
        parse_patch((b"--- a/x\n+++ b/x\n" + hunk) * 4)


def test_a_large_patch_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.diff"
    with path.open("wb") as file:
        file.truncate(300_000_000)
    with pytest.raises(PatchTooLarge, match=r"300,000,000 bytes"):
        read_patch(path)
    path.write_bytes(b"12345")
    assert read_patch(path, limit=5) == b"12345"
    with pytest.raises(PatchTooLarge, match="5 bytes"):
        read_patch(path, limit=4)


def test_patch_that_is_not_a_regular_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"none\.diff"):
        read_patch(tmp_path / "none.diff")
    with pytest.raises(SourceError, match="cannot be read"):
        read_patch(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match="not a regular file"):
        read_patch(tmp_path / "pipe")
