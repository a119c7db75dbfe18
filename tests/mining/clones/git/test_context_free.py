import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.mining.clones.git.context_free import ContextFreeText

DIFF = b"""\
diff --git a/a.py b/a.py
index 1234567..89abcde 100644
--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@ class A:
 index of it
-index 12
+@@ -1 +1 @@ not a hunk
 last
\\ No newline at end of file
diff --git a/p b/p
index 1234567..89abcde 100644
Binary files a/p and b/p differ
"""
EXPECTED = b"""\
diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@
-index 12
+@@ -1 +1 @@ not a hunk
\\ No newline at end of file
diff --git a/p b/p
Binary files a/p and b/p differ
"""


@given(st.lists(st.integers(0, len(DIFF)), max_size=6).map(sorted))
def test_context_and_hashes_are_removed_wherever_the_pieces_end(cuts: list[int]) -> None:
    text = ContextFreeText()
    for start, end in zip([0, *cuts], [*cuts, len(DIFF)], strict=True):
        text.add(DIFF[start:end])
    compressed = text.finish()
    assert gzip.decompress(compressed) == EXPECTED
    assert compressed == gzip.compress(EXPECTED, 6, mtime=0)
    assert text.size == len(EXPECTED)


@pytest.mark.parametrize(("sign", "stays"), [(b"+", True), (b" ", False)])
def test_a_line_of_any_length_is_passed_on_or_removed(sign: bytes, stays: bool) -> None:
    text = ContextFreeText()
    line = sign + b"x" * 3_000_000 + b"\n"
    for start in range(0, len(line), 1 << 18):
        text.add(line[start : start + (1 << 18)])
    text.add(b"+y\n")
    assert gzip.decompress(text.finish()) == (line if stays else b"") + b"+y\n"
