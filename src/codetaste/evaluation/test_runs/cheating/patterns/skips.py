"""Marks with which a test is skipped, expected to fail, or the only one that runs."""

from __future__ import annotations

from codetaste.evaluation.test_runs.cheating.flags import CheatingKind
from codetaste.evaluation.test_runs.cheating.patterns.line_pattern import (
    CMAKE,
    GO,
    JVM,
    NATIVE,
    PHP,
    PYTHON,
    RUBY,
    RUST,
    SCRIPT,
    SHARP,
    View,
    pattern,
)

_KIND = CheatingKind.SKIPPED_TESTS

PATTERNS = (
    pattern(
        _KIND,
        PYTHON,
        r"\b(?:pytest\.)?mark\.(?:skip|skipif|xfail)\b",
        r"\bpytest\.(?:skip|importorskip|xfail)\s*\(",
        r"\bunittest\.(?:skip|skipIf|skipUnless|expectedFailure|SkipTest)\b",
        r"\braise\s+SkipTest\b",
        r"\bself\.skipTest\s*\(",
        r"@(?:skip|skipIf|skipUnless|skipif|xfail|expectedFailure)\b",
        r"\b__test__\s*=\s*False\b",
    ),
    pattern(
        _KIND,
        SCRIPT,
        r"(?<![\w.$])(?:it|test|describe|context|suite|specify|Deno\.test)"
        r"\.(?:skip|todo|only|failing|fails|fixme|skipIf|runIf)\b",
        r"(?<![\w.$])(?:xit|xtest|xdescribe|xcontext|xspecify|fit|fdescribe)\s*\(\s*(?:$|[\"'`\s])",
        r"\b(?:this|t|ctx|context)\.skip\s*\(",
        r"\{\s*skip\s*:\s*(?:true|[\"'`])",
        tests_only=True,
        view=View.CODE,
    ),
    pattern(_KIND, GO, r"\b[tbf]\.(?:Skip|Skipf|SkipNow)\s*\(", tests_only=True),
    pattern(
        _KIND,
        JVM,
        r"@(?:Disabled|Ignore|(?:Disabled|Enabled)(?:If|On|For)\w*)\b",
        r"\b(?:Assume|Assumptions)\.assume\w+\s*\(",
        r"(?<![\w.])assum(?:e(?:True|False|That|NotNull|NoException)|ingThat)\s*\(",
        r"@Test\s*\(.*\benabled\s*=\s*false",
        r"\bnew\s+SkipException\b",
        tests_only=True,
    ),
    pattern(_KIND, RUST, r"#\s*!?\[\s*ignore\b", r"#\s*\[\s*cfg_attr\s*\(.*\bignore\b"),
    pattern(
        _KIND,
        RUBY,
        r"^\s*(?:xit|xdescribe|xcontext|xspecify|pending)\b",
        r"^\s*skip\b\s*(?:[\"'(]|$)",
        r"\bskip:\s*(?:true|[\"'])",
        tests_only=True,
        view=View.CODE,
    ),
    pattern(_KIND, PHP, r"->mark(?:TestSkipped|TestIncomplete)\s*\(", r"->skip\s*\(", tests_only=True),
    pattern(
        _KIND,
        SHARP,
        r"\bSkip\s*=\s*\"",
        r"\[\s*(?:Ignore|Explicit)\b",
        r"\bAssert\.(?:Ignore|Inconclusive|Skip)\w*\s*\(",
        tests_only=True,
        view=View.CODE,
    ),
    pattern(_KIND, NATIVE, r"\bGTEST_SKIP\s*\(", r"\bTEST\w*\s*\(.*\bDISABLED_", r"\bQSKIP\s*\("),
    pattern(_KIND, CMAKE, r"\b(?:DISABLED\s+(?:TRUE|ON|1)|WILL_FAIL|SKIP_RETURN_CODE)\b"),
)
