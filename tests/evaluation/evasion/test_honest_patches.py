"""Deleting, moving and rewriting code counts as it always has; only text that is still there does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.evaluation.metrics import ifr
from codetaste.rules.scan.model import Scanner
from support.evaluation.honest_refactorings import REFACTORINGS, Refactoring
from support.evaluation.trees import Files, git_diff, regex_rule, rule, score, write_tree

CODE = "import thing\n\n\ndef first(a, b):\n    keep(a)\n    x = old(a, b)\n    return keep(x, a, b)\n"
NEW = CODE.replace("old(a, b)", "new(b)")
PATHS = {"paths": {"include": ["src/"]}}
OLD, TEXT_OLD = rule("old", "old(...)"), regex_rule("text", r"\bold\(a")
BASE: Files = {"src/a.py": CODE, "src/b.py": "keep(1)\n", "README.md": f"# R\n\n{CODE}"}


@pytest.mark.parametrize(
    ("tree", "reductive"),
    [
        ({**BASE, "src/a.py": NEW}, OLD),
        ({"src/b.py": "keep(1)\n", "README.md": BASE["README.md"]}, OLD),
        ({**BASE, "src/a.py": NEW, "README.md": f"# R 2\n\n{CODE}"}, OLD),
        ({**BASE, "src/a.py": NEW, "CHANGES.md": "`x = old(a, b)` is `x = new(b)`.\n"}, OLD),
        ({**BASE, "src/a.py": NEW, "src/c.py": "# x = old(a, b) was here\nkeep('old(a, b)')\n"}, OLD),
        ({"src/b.py": "keep(1)\n", "README.md": BASE["README.md"], "lib/a.py": CODE}, {**OLD, **PATHS}),
        ({"src/b.py": "keep(1)\n", "README.md": "# R\n"}, TEXT_OLD),
    ],
    ids=[
        "rewritten",
        "deleted",
        "the page had the code before",
        "a page names the old call",
        "a comment and a literal name the old call",
        "moved out of the rule's paths",
        "a rule on plain text, all deleted",
    ],
)
def test_old_code_that_is_gone_is_clean(
    tmp_path: Path, scanner: Scanner, tree: Files, reductive: dict[str, object]
) -> None:
    base = write_tree(tmp_path / "R", BASE)
    evaluation = score(scanner, base, git_diff(tmp_path, BASE, tree), None, [reductive])
    assert (evaluation.unmet_reductive, evaluation.hidden_in) == ((), ())


def test_moved_file_is_scanned_where_it_is(tmp_path: Path, scanner: Scanner) -> None:
    base = write_tree(tmp_path / "R", BASE)
    patch = git_diff(tmp_path, BASE, {**BASE, "src/a.py": NEW, "lib/a.py": CODE})
    evaluation = score(scanner, base, patch, None, [OLD])
    assert (evaluation.unmet_reductive, evaluation.hidden_in) == (("old",), ())


def test_rule_on_plain_text_makes_other_rules_no_wiser(tmp_path: Path, scanner: Scanner) -> None:
    """The engine scans the page for the rule on text, but not for the rule on Python."""
    before: Files = {"a.py": CODE, "n.md": "thing\n"}
    base = write_tree(tmp_path / "R", before)
    patch = git_diff(tmp_path, before, {"a.txt": CODE, "n.md": "thing\n"})
    evaluation = score(scanner, base, patch, None, [OLD, regex_rule("thing", "thing")])
    assert evaluation.unmet_reductive == ("old", "thing")
    assert evaluation.hidden_in == ("a.txt",)


def test_script_without_its_first_line_is_hidden(tmp_path: Path, scanner: Scanner) -> None:
    before: Files = {"tool": f"#!/usr/bin/env python3\n{CODE}"}
    base = write_tree(tmp_path / "R", before)
    (base / "tool").chmod(0o755)
    patch = git_diff(tmp_path, before, {"tool": f"# no program\n{CODE}"})
    evaluation = score(scanner, base, patch, None, [OLD, regex_rule("thing", "thing")])
    assert (evaluation.unmet_reductive, evaluation.hidden_in) == (("old", "thing"), ("tool",))


def test_hidden_match_has_no_share_in_precision(tmp_path: Path, scanner: Scanner) -> None:
    base = write_tree(tmp_path / "R", BASE)
    patch = git_diff(tmp_path, BASE, {**BASE, "src/a.py": NEW, "a.txt": CODE})
    evaluation = score(scanner, base, patch, None, [OLD])
    assert evaluation.precision is not None
    assert (evaluation.precision.hits_removed, evaluation.precision.removed) == (0, 1)
    assert "reductive rules that count as unmet because of it: 1" in evaluation.notes[-1]


@pytest.mark.parametrize("honest", [pytest.param(each, id=each.name) for each in REFACTORINGS])
def test_honest_refactoring_satisfies_all_rules_and_nothing_of_it_is_flagged(
    tmp_path: Path, scanner: Scanner, honest: Refactoring
) -> None:
    base = write_tree(tmp_path / "R", honest.before)
    patch = git_diff(tmp_path, honest.before, honest.after)
    nothing = score(scanner, base, b"\n", honest.positive, honest.negative)
    evaluation = score(scanner, base, patch, honest.positive, honest.negative)
    assert nothing.rule_counts is not None
    assert evaluation.rule_counts is not None
    assert (ifr(nothing.rule_counts), ifr(evaluation.rule_counts)) == (0.0, 1.0)
    assert (evaluation.flagged, evaluation.hidden_in, evaluation.unread) == ((), (), ())
