"""An additive rule is flagged only if none of its matches has an effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.evaluation.evasion.flags import FlagReason
from codetaste.evaluation.output.scores_json import scores_to_json
from codetaste.rules.scan.model import Scanner
from support.evaluation.trees import Files, git_diff, rule, score, write_tree

PYTHON, SCRIPT = rule("new", "new(...)"), rule("new", "new(...)", languages=["javascript"])
GO = rule("new", "new(...)", languages=["go"])
BASE: Files = {
    "app/__init__.py": "",
    "app/main.py": "import os\n",
    "web/index.js": "run()\n",
    "srv/run.go": "package srv\n\nfunc Run() {}\n",
}
SRV = "package srv\n\nfunc Make() {\n\tnew(1)\n}\n"


@pytest.mark.parametrize(
    ("changes", "additive", "reason"),
    [
        ({"app/fresh.py": "new(1)\n"}, PYTHON, FlagReason.UNIMPORTED),
        ({"app/fresh.py": "new(1)\n", "app/main.py": "# fresh\nimport os\n"}, PYTHON, FlagReason.UNIMPORTED),
        ({"app/fresh.py": "new(1)\n", "app/main.py": "import app.fresh\n"}, PYTHON, None),
        ({"app/fresh.py": "new(1)\n", "app/main.py": "load('app.fresh')\n"}, PYTHON, None),
        (
            {
                "app/fresh.py": "new(1)\n",
                "app/via.py": "import app.fresh\n",
                "app/main.py": "import app.via\n",
            },
            PYTHON,
            None,
        ),
        ({"app/fresh.py": "new(1)\n", "app/via.py": "import app.fresh\n"}, PYTHON, FlagReason.UNIMPORTED),
        ({"tests/test_fresh.py": "new(1)\n"}, PYTHON, None),
        ({"app/fresh.py": "#!/usr/bin/env python3\nnew(1)\n"}, PYTHON, None),
        ({"fresh/__init__.py": "new(1)\n", "app/main.py": "import fresh\n"}, PYTHON, None),
        ({"app/main.py": "new(1)\n"}, PYTHON, None),
        ({"app/main.py": "new(1)\n", "dist/a.py": "new(1)\n"}, PYTHON, None),
        ({"dist/a.py": "new(1)\n", "app/main.py": "import a\n"}, PYTHON, FlagReason.EXCLUDED),
        ({"web/fresh.js": "new(1)\n"}, SCRIPT, FlagReason.UNIMPORTED),
        ({"web/fresh.js": "new(1)\n", "web/index.js": "import './fresh.js'\n"}, SCRIPT, None),
        ({"web/fresh/index.js": "new(1)\n", "web/index.js": "require('./fresh')\n"}, SCRIPT, None),
        ({"test/fresh.js": "new(1)\n"}, SCRIPT, None),
        ({"srv/fresh.go": SRV}, GO, FlagReason.UNIMPORTED),
        ({"srv/fresh.go": SRV, "srv/run.go": "package srv\n\nfunc Run() { Make() }\n"}, GO, None),
        ({"srv/fresh.go": SRV.replace("Make", "init")}, GO, None),
        ({"app/main.py": "def f():\n    return 1\n    new(1)\n"}, PYTHON, FlagReason.UNREACHABLE),
        ({"app/main.py": "def f():\n    s = '''\n    return 1'''\n    new(s)\n"}, PYTHON, None),
    ],
)
def test_rule_is_flagged_if_no_match_has_an_effect(
    tmp_path: Path, scanner: Scanner, changes: Files, additive: dict[str, object], reason: FlagReason | None
) -> None:
    base = write_tree(tmp_path / "R", BASE)
    if additive is GO or additive is SCRIPT:
        additive = {**additive, "pattern": "new(1)"}
    evaluation = score(scanner, base, git_diff(tmp_path, BASE, {**BASE, **changes}), [additive], None)
    assert evaluation.unmet_additive == ()
    assert [each.reason for each in evaluation.flagged] == ([reason] if reason else [])


def test_scores_have_ifr_with_and_without_flagged_rules(tmp_path: Path, scanner: Scanner) -> None:
    base = write_tree(tmp_path / "R", BASE)
    after = {**BASE, "app/main.py": "better(1)\n", "dist/a.py": "new(1)\n"}
    rules = [PYTHON, rule("better", "better(...)")]
    reductive = [rule("imports", "import os")]
    scores = scores_to_json(score(scanner, base, git_diff(tmp_path, BASE, after), rules, reductive))
    assert (scores["ifr"], scores["ifr_plus"], scores["flagged_rules"]) == (1.0, 1.0, 1)
    assert (scores["ifr_unflagged"], scores["ifr_plus_unflagged"]) == (pytest.approx(2 / 3), 0.5)
    assert scores["flagged"] == [{"rule": "new", "reason": "excluded", "path": "dist/a.py", "line": 1}]
