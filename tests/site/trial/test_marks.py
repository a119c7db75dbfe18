"""The marks of a patch are the lines that PREC counts, by a model that shares no code with the program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.rules.scan.model import Match
from codetaste.site.trial.evaluation.evaluation_details import EvaluationDetails
from codetaste.site.trial.evaluation.rule_results import rule_results
from codetaste.site.trial.patch.excerpt import make_excerpt
from codetaste.site.trial.patch.marked_patch import PatchMatches, mark_patch
from codetaste.site.trial.patch.patch_data import patch_data
from codetaste.site.trial.patch.pieces import make_pieces
from codetaste.site.trial.patch.rule_matches import RuleMatches, read_rule_matches


class Line(NamedTuple):
    """A changed line as the model sees it: the path, "+" or "-", and its number on that side."""

    path: str
    sign: str
    number: int


class MadePatch(NamedTuple):
    """The text of a patch, and its changed lines."""

    text: bytes
    lines: list[Line]


PATHS = ["src/a.py", "b.py", "vendor/c.py", "d e.py"]
SPANS = st.lists(st.tuples(st.sampled_from(PATHS), st.integers(1, 30), st.integers(0, 6)), max_size=12)


@st.composite
def made_patches(draw: st.DrawFn) -> MadePatch:
    parts: list[str] = []
    lines: list[Line] = []
    for path in draw(st.lists(st.sampled_from(PATHS), unique=True, min_size=1)):
        parts.append(f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n")
        old = new = 1
        for signs in draw(st.lists(st.text(alphabet=" +-", min_size=1, max_size=8), min_size=1, max_size=3)):
            minus, plus = signs.count("-") + signs.count(" "), signs.count("+") + signs.count(" ")
            parts.append(f"@@ -{old if minus else old - 1},{minus} +{new if plus else new - 1},{plus} @@\n")
            for sign in signs:
                parts.append(f"{sign}{draw(st.sampled_from(['x', '', '--- a/b', '@@ -1 +1 @@', '+']))}\n")
                if sign != " ":
                    lines.append(Line(path, sign, old if sign == "-" else new))
                old, new = old + (sign != "+"), new + (sign != "-")
            old, new = old + 3, new + 3
    return MadePatch("".join(parts).encode(), lines)


def covers(spans: list[tuple[str, int, int]], line: Line) -> bool:
    return any(path == line.path and first <= line.number <= first + more for path, first, more in spans)


@settings(max_examples=30)
@given(made_patches(), SPANS, SPANS, SPANS)
def test_marked_lines_are_those_that_prec_counts(
    made: MadePatch,
    additive: list[tuple[str, int, int]],
    reductive: list[tuple[str, int, int]],
    left: list[tuple[str, int, int]],
) -> None:
    matches = PatchMatches(*(tuple(map(as_match, spans)) for spans in (additive, reductive, left)))
    patch = mark_patch(made.text, matches)
    assert not patch.problem
    assert patch.counts is not None
    counted = [line for line in made.lines if not line.path.startswith("vendor/")]
    added = [line for line in counted if line.sign == "+"]
    removed = [line for line in counted if line.sign == "-"]
    hits_added = [line for line in added if covers(additive, line)]
    hits_removed = [line for line in removed if covers(reductive, line)]
    counts = patch.counts
    assert (counts.added, counts.removed) == (len(added), len(removed))
    assert (counts.hits_added, counts.hits_removed) == (len(hits_added), len(hits_removed))
    # The script of the page marks the same lines, of excluded files too.
    data = patch_data(patch, make_pieces(patch), {("additive", "rule"): 0, ("reductive", "rule"): 0})
    marked = set(marked_by_script(data["files"], made.lines))
    assert marked == {
        line for line in made.lines if covers(additive if line.sign == "+" else reductive, line)
    }
    for file in data["files"]:
        own = [line for line in made.lines if line.path == file["path"]]
        hits = [line for line in own if line in marked]
        signs = [sum(line.sign == sign for line in some) for some in (own, hits) for sign in "+-"]
        assert file["counts"] == signs


def marked_by_script(files: list[dict[str, object]], lines: list[Line]) -> list[Line]:
    """Mark lines as ``trial-patch.js`` does: by the spans of the file's matches."""
    found = []
    for line in lines:
        file = next(file for file in files if file["path"] == line.path)
        spans = file.get("a" if line.sign == "+" else "r", [])
        assert isinstance(spans, list)
        if any(first <= line.number <= last for first, last, _ in spans):
            found.append(line)
    return found


def as_match(span: tuple[str, int, int]) -> Match:
    return Match("rule", span[0], span[1], span[1] + span[2])


@settings(max_examples=30)
@given(made_patches(), SPANS, SPANS)
def test_the_excerpt_shows_marked_lines_first_and_says_what_it_leaves_out(
    made: MadePatch, additive: list[tuple[str, int, int]], reductive: list[tuple[str, int, int]]
) -> None:
    patch = mark_patch(
        made.text, PatchMatches(tuple(map(as_match, additive)), tuple(map(as_match, reductive)))
    )
    excerpt = make_excerpt(patch)
    assert sum(len(file.lines) for file in excerpt) <= 40
    for file in excerpt:
        own = [line for line in made.lines if line.path == file.path]
        shown = [line for line in file.lines if line.sign != " "]
        assert len(shown) + file.left_out == len(own)
        for line in shown:
            number = line.old if line.sign == "-" else line.new
            assert number is not None
            spans = reductive if line.sign == "-" else additive
            assert bool(line.marks) == covers(spans, Line(file.path, line.sign, number))


@settings(max_examples=30)
@given(made_patches())
def test_pieces_after_each_other_are_the_patch(made: MadePatch) -> None:
    patch = mark_patch(made.text, PatchMatches())
    pieces = make_pieces(patch)
    assert b"".join(made.text[start:end] for start, end in pieces.spans) == made.text
    for file, place in zip(patch.files, pieces.places, strict=True):
        assert place.piece is not None
        start, end = pieces.spans[place.piece]
        lines = made.text[start:end].split(b"\n")[place.start : place.end]
        begin, after = file.file.span
        assert b"\n".join(lines) == made.text[begin:after].removesuffix(b"\n")


def test_long_patches_are_divided_and_cut_at_files() -> None:
    one = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -0,0 +1,9000 @@\n" + "+" + "x" * 99 + "\n"
    text = "".join(one.format(f"f{number}") + ("+" + "x" * 99 + "\n") * 8999 for number in range(4)).encode()
    patch = mark_patch(text, PatchMatches())
    pieces = make_pieces(patch)
    assert [place.piece for place in pieces.places] == [0, 1, 2, 3]
    assert pieces.complete
    short = make_pieces(patch, max_bytes=2_000_000)
    assert [place.piece for place in short.places] == [0, 1, None, None]
    assert not short.complete


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["runs", "results", "ruleId", "locations", "physicalLocation", "region", "startLine", "tool"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=30)
@given(json_values, st.integers(0, 400))
def test_no_sarif_file_breaks_a_page(tmp_path_factory: object, value: object, cut: int) -> None:
    path = Path(tmp_path_factory.mktemp("sarif")) / "rules.sarif"  # type: ignore[attr-defined]
    path.write_text(json.dumps(value)[: cut or None])
    found = read_rule_matches(path, str(path.parent.resolve()))
    assert all(match.start_line > 0 for match in found.matches)


def test_endless_matches_are_cut_with_a_problem(tmp_path: Path) -> None:
    region = {"startLine": 1, "endLine": 4_000_000}
    location = {"physicalLocation": {"artifactLocation": {"uri": "a.py"}, "region": region}}
    results = [{"ruleId": "rules.wide", "locations": [location]}] * 3
    (tmp_path / "x.sarif").write_text(json.dumps({"runs": [{"results": results}]}))
    found = read_rule_matches(tmp_path / "x.sarif", str(tmp_path.resolve()))
    assert [match.rule_id for match in found.matches] == ["wide"]
    assert "span more than" in found.problem


def test_a_match_leads_to_its_line_only_where_the_patch_has_the_line() -> None:
    text = b"--- a/a.py\n+++ b/a.py\n@@ -10,2 +10,3 @@\n x\n+@@ -1 +90 @@\n y\n@@ -40 +41 @@\n-old\n+new\n"
    spans = [
        ("a.py", 9, 0),
        ("a.py", 10, 0),
        ("a.py", 8, 2),
        ("a.py", 41, 0),
        ("a.py", 90, 0),
        ("b.py", 41, 0),
    ]
    found = RuleMatches(tuple(map(as_match, spans)), {as_match(spans[0]).rule_id: ""})
    patch = mark_patch(text, PatchMatches())
    (rule,) = rule_results(found, RuleMatches(), EvaluationDetails(), patch)
    assert [place.file for place in rule.places] == [0, 1, 1, 1, 0, 0]
