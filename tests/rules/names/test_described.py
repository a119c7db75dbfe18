"""Which names of a description rules mention."""

from __future__ import annotations

from codetaste.rules.names.described import MAX_NAMES, described_names, names_without_rule

DESCRIPTION = """Rename `Canvas.paint(colour)` to `fill`, and drop old_colour and colourDepth.

```python
from theme import PALETTE
```

The rest of the code stays as it is; `if` and `self` are no names. HTTPServer is one.
"""


def test_names_are_words_of_code_and_identifiers_elsewhere() -> None:
    names = ("Canvas", "paint", "colour", "fill", "old_colour", "colourDepth", "theme", "PALETTE")
    assert described_names(DESCRIPTION) == (*names, "HTTPServer")


def test_number_of_names_is_bounded() -> None:
    assert len(described_names("`" + " ".join(f"name_{number}" for number in range(999)) + "`")) == MAX_NAMES


def test_a_name_counts_where_a_pattern_has_it_as_a_word() -> None:
    rules = [
        {"id": "fill", "message": "fill", "metadata": {"a": "fill"}, "pattern": "repaint($X)"},
        {"id": "b", "patterns": [{"pattern": "$C.paint(...)"}, {"pattern-not": "PALETTE"}]},
    ]
    assert names_without_rule(("paint", "fill", "PALETTE", "theme"), rules) == ("fill", "theme")
    assert names_without_rule(("paint",), []) == ("paint",)
