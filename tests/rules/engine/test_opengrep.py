"""The real rule engine with ordinary and untrusted input."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from codetaste.errors import EngineError
from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.engine.opengrep import OpenGrep, RuleEngineLimits
from codetaste.rules.rule import Rule, parse_rules
from codetaste.rules.scan.full import FullScanner
from codetaste.rules.scan.model import Match, ScanResult
from support.rules.scan_cases import MakeTree, git, rule, scan

FIGURE_8_RULE = """\
rules:
- id: eui-theme-colors-access
  message: Detected euiTheme.colors property access
  severity: INFO
  languages:
  - typescript
  - javascript
  pattern: $THEME.colors.$PROP
  options:
    symbolic_propagation: true
"""
# The shape of the paper's example: an alias of an alias in line 6, direct access in line 11.
FIGURE_8_EXAMPLE = """\
import { palette } from 'some-kit';

function Aliased() {
  const mine = palette;
  const shades = mine.colors;
  const main = shades.primary;
  return <p style={{ color: main }}>One</p>;
}

function Direct() {
  const main = palette.colors.primary;
  return <p style={{ color: main }}>Two</p>;
}
"""
CALL = rule("call", pattern="foo(...)")
TEXT = rule("text", languages=("generic",), pattern="foo(...)")
# Six ellipses over statements that all look alike: years of matching on a few hundred lines.
HANG = rule("hang", pattern="\n...\n".join(f"$F{n}($X{n})" for n in range(6)))
SLOW_FILE = "".join(f"g{n % 7}(x{n})\n" for n in range(400)) + "foo(1)\n"


def lines(found: ScanResult, name: str) -> list[tuple[str, int]]:
    return [(match.path, match.start_line) for match in found.by_rule.get(name, [])]


def test_rule_of_figure_8_matches_its_example_in_lines_6_and_11(
    engine: RuleEngine, make_tree: MakeTree
) -> None:
    rules = list(parse_rules(FIGURE_8_RULE, source="figure 8"))
    found = scan(engine, rules, make_tree({"example.js": FIGURE_8_EXAMPLE}))
    assert lines(found, "eui-theme-colors-access") == [("example.js", 6), ("example.js", 11)]
    assert found.count("eui-theme-colors-access") == 2
    assert found.coverage("eui-theme-colors-access") == {("example.js", 6), ("example.js", 11)}
    assert not found.partial
    assert found.scanned == {"example.js"}


def test_match_has_start_and_end(engine: RuleEngine, make_tree: MakeTree) -> None:
    found = scan(engine, [CALL], make_tree({"a.py": "x = 1\nfoo(\n  1,\n)\n"}))
    assert found.matches == (Match("call", "a.py", 2, 4, 1, 2),)
    assert found.coverage("call") == {("a.py", 2), ("a.py", 3), ("a.py", 4)}


def test_suppressed_results_count(engine: RuleEngine, make_tree: MakeTree) -> None:
    tree = make_tree({"a.py": "foo(1)  # nosemgrep\nfoo(2)  # nosem: call\nfoo(3)\n"})
    assert scan(engine, [CALL], tree).count("call") == 3


def test_plain_folder_and_work_tree_give_equal_results(engine: RuleEngine, make_tree: MakeTree) -> None:
    files = {
        "a.py": "foo(1)\n",
        "gen/b.py": "foo(1)\n",
        "c.py": "foo(1)\n",
        ".gitignore": "c.py\n",
        ".semgrepignore": "a.py",
    }
    plain, work = make_tree(files), make_tree(files)
    git(work, "init", "-q")
    git(work, "add", "-f", ".")
    found = [scan(engine, [CALL], tree, ignore="gen/\n") for tree in (plain, work)]
    assert found[0] == found[1]
    assert lines(found[0], "call") == [("a.py", 1), ("c.py", 1)]


def test_ignore_rules_of_an_enclosing_repository_have_no_effect(
    engine: RuleEngine, make_tree: MakeTree
) -> None:
    outer = make_tree({".gitignore": "*.py\n", "inner/a.py": "foo(1)\n"})
    git(outer, "init", "-q")
    assert scan(engine, [CALL], outer / "inner").count("call") == 1


def test_paths_of_a_rule_are_relative_to_the_tree(engine: RuleEngine, make_tree: MakeTree) -> None:
    tree = make_tree({"a.py": "foo(1)\n", "sub/a.py": "foo(1)\n", "sub/sub/b.py": "foo(1)\n"})
    some = rule("some", pattern="foo(...)", paths={"include": ["sub/*.py"], "exclude": ["b.py"]})
    assert lines(scan(engine, [some], tree), "some") == [("sub/a.py", 1)]


def test_broken_rules_are_named_and_other_rules_are_answered(engine: RuleEngine, make_tree: MakeTree) -> None:
    broken = [
        rule("pattern", pattern="def foo((:"),
        rule("language", languages=("klingon",), pattern="foo"),
        rule("regex", pattern_regex="fo(("),
        rule("empty"),
        rule("key", patterns=[{"pattern-foo": "x"}]),
        rule(
            "metavariable",
            patterns=[{"pattern": "f($X)"}, {"metavariable-regex": {"metavariable": "$Y", "regex": "(("}}],
        ),
    ]
    found = scan(engine, [broken[0], CALL, *broken[1:]], make_tree({"a.py": "foo(1)\n"}))
    assert found.count("call") == 1
    assert found.partial
    problems = {problem.rule_id: problem for problem in found.problems}
    assert set(problems) == {rule.id for rule in broken}
    assert {problem.kind for problem in problems.values()} == {"rule"}
    assert "invalid language klingon" in problems["language"].message
    assert "missing closing parenthesis" in problems["regex"].message
    assert "Invalid pattern for Python" in problems["pattern"].message
    assert not found.failures("call")
    assert found.failures("language") == (problems["language"],)


def test_rule_for_which_the_engine_refuses_the_whole_set_is_found(
    engine: RuleEngine, make_tree: MakeTree
) -> None:
    refused = Rule("refused", ("python",), {**CALL.body, "id": "refused", "languages": "python"})
    others = [rule(f"other-{n}", pattern=f"foo({n})") for n in range(5)]
    found = scan(engine, [*others[:3], refused, *others[3:]], make_tree({"a.py": "foo(3)\nfoo(4)\n"}))
    assert [match.rule_id for match in found.matches] == ["other-3", "other-4"]
    assert [(p.kind, p.rule_id) for p in found.problems] == [("rule", "refused")]
    assert "list for languages" in found.problems[0].message


def test_rules_are_validated_without_files_to_scan(engine: RuleEngine, make_tree: MakeTree) -> None:
    found = scan(engine, [CALL, rule("language", languages=("klingon",), pattern="x")], make_tree({}))
    assert not found.matches
    assert [p.rule_id for p in found.problems] == ["language"]
    assert scan(engine, [], make_tree({"a.py": "foo(1)"})) == ScanResult(())


def test_unparsable_file_does_not_make_the_scan_partial(engine: RuleEngine, make_tree: MakeTree) -> None:
    tree = make_tree(
        {"bad.py": "foo(1)\ndef def (\n", "good.py": "foo(1)\n", "latin.py": b"foo('\xe4')\n\xff\xfe\n"}
    )
    found = scan(engine, [CALL], tree)
    assert ("good.py", 1) in lines(found, "call")
    assert not found.partial
    assert ("parse", "bad.py", 2) in [(p.kind, p.path, p.line) for p in found.problems]


def test_any_file_name_is_scanned(engine: RuleEngine, make_tree: MakeTree) -> None:
    names = [
        "a b.py", "qu'o\"te.py", "new\nline.py", "-dash.py", "--config", "pct%20.py", "ünï.py",
        "caf\udce9.py", "$HOME.py", "sub/@x.py", "\\.py", "#.py", "tab\t.py", "~", "*.py",
        "a/'/é\udcff/b.py",

    ]  # fmt: skip
    found = scan(engine, [TEXT], make_tree(dict.fromkeys(names, "foo(1)\n")))
    assert lines(found, "text") == sorted((name, 1) for name in names)
    assert found.scanned == set(names)
    assert not found.problems


def test_large_files_and_links_are_skipped(engine: RuleEngine, make_tree: MakeTree) -> None:
    outside = make_tree({"secret.py": "foo(1)\n"})
    tree = make_tree({"a.py": "foo(1)\n"})
    (tree / "loop").symlink_to(".")
    (tree / "self").symlink_to("self")
    (tree / "out").symlink_to(outside)
    (tree / "out.py").symlink_to(outside / "secret.py")
    with (tree / "huge.py").open("wb") as file:
        file.truncate(100 * 1024**2)
    found = scan(engine, [CALL, TEXT], tree)
    assert {match.path for match in found.matches} == {"a.py"}
    assert [(p.kind, p.path) for p in found.problems] == [("skipped", "huge.py")]
    assert not found.partial


def test_files_are_split_over_several_command_lines(
    engine: RuleEngine, make_tree: MakeTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codetaste.rules.engine.opengrep._ARGUMENT_BYTES", 120)
    names = [f"sub/file-{n:02d}.py" for n in range(12)]
    found = scan(engine, [CALL], make_tree(dict.fromkeys(names, "foo(1)\n")))
    assert lines(found, "call") == [(name, 1) for name in names]


@pytest.mark.heavy
def test_rule_that_hangs_on_a_file_is_named_and_the_rest_is_answered(
    engine: RuleEngine, make_tree: MakeTree
) -> None:
    tree = make_tree({"slow.py": SLOW_FILE, "quick.py": "foo(1)\n", "other.py": "f(1)\ng(2)\n"})
    start = time.monotonic()
    found = scan(engine, [CALL, HANG, TEXT], tree, limits=RuleEngineLimits(wall_s=6.0, pair_s=1.0))
    assert time.monotonic() - start < 150
    assert lines(found, "call") == [("quick.py", 1), ("slow.py", 401)]
    assert found.count("text") == 2
    assert [(p.kind, p.rule_id, p.path) for p in found.problems] == [("timeout", "hang", "slow.py")]
    assert found.partial
    assert not found.failures("call")


def test_too_many_matches_make_a_rule_partial(engine: RuleEngine, make_tree: MakeTree) -> None:
    found = scan(engine, [CALL, TEXT], make_tree({"many.py": "foo(1)\n" * 10_001, "few.py": "foo(1)\n"}))
    assert found.failures("call")
    assert found.failures("call")[0].path == "many.py"


def wrap(engine: RuleEngine, folder: Path, script: str) -> RuleEngine:
    """Return the engine behind a misbehaving script; in ``script``, ``$rules`` is the text of the rules."""
    program = folder / "opengrep"
    body = f"""#!/bin/bash
rules="$(cat "$(printf '%s\\n' "$@" | grep -A1 -x -e --config | tail -1)")"
{script}
exec {engine.program} scan --experimental --project-root . --x-ignore-semgrepignore-files "${{@:2}}"
"""
    program.write_text(body)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return replace(engine, program=program, is_core=False)


CRASH = 'if [[ "$rules" == *"crash me"* && "$*" == *bad.py* ]]; then kill -SEGV $$; sleep 9; fi'


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not on this machine")
def test_crash_is_attributed_to_its_rule_and_file(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path
) -> None:
    if not engine.is_core:
        pytest.skip("this engine has no core for the crashing wrapper")
    rules = [rule(f"fine-{n}", pattern="foo(...)") for n in range(6)]
    rules.insert(3, Rule("crashing", ("python",), {**CALL.body, "message": "crash me"}))
    tree = make_tree({f"{name}.py": "foo(1)\n" for name in ("a", "b", "bad", "c", "d")})
    found = scan(wrap(engine, tmp_path, CRASH), rules, tree)
    assert [(p.kind, p.rule_id, p.path) for p in found.problems] == [("engine", "crashing", "bad.py")]
    assert "SIGSEGV" in found.problems[0].message
    assert {name: found.count(name) for name in ("fine-0", "fine-5", "crashing")} == {
        "fine-0": 5,
        "fine-5": 5,
        "crashing": 4,
    }


@pytest.mark.heavy
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not on this machine")
def test_rule_that_hangs_before_any_file_takes_bounded_time(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path
) -> None:
    if not engine.is_core:
        pytest.skip("this engine has no core for the hanging wrapper")
    hanging = Rule("hanging", ("python",), {**CALL.body, "message": "hang me"})
    program = wrap(engine, tmp_path, 'if [[ "$rules" == *"hang me"* ]]; then sleep 99; fi')
    start = time.monotonic()
    found = scan(
        program, [CALL, hanging, TEXT], make_tree({"a.py": "foo(1)\n"}), limits=RuleEngineLimits(wall_s=4.0)
    )
    assert time.monotonic() - start < 150
    assert found.count("call") == 1
    assert [(p.kind, p.rule_id) for p in found.problems] == [("timeout", "hanging")]


def alive(marker: str) -> bool:
    """Return whether another process has ``marker`` on its command line."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in command and int(entry.name) != os.getpid():
                return True
    return False


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
def test_cancelling_kills_the_engine_and_leaves_no_files(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path
) -> None:
    tree = make_tree({"slow-cancelled.py": SLOW_FILE})
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    async def main() -> float:
        scanner = FullScanner(OpenGrep(engine, scratch=scratch))
        with anyio.move_on_after(1.5):
            await scanner.scan([HANG], tree)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(scanner.scan, [HANG], tree)
                with anyio.fail_after(200):
                    while not alive("slow-cancelled.py"):  # noqa: ASYNC110  (another process)
                        await anyio.sleep(0.05)
                scope.cancel()
                start = time.monotonic()
        return time.monotonic() - start

    assert anyio.run(main) < 60
    deadline = time.monotonic() + 200  # a killed process may take a while to go
    while alive("slow-cancelled.py"):
        assert time.monotonic() < deadline, "the engine was not killed"
        time.sleep(0.05)
    assert not list(scratch.iterdir())


@pytest.mark.heavy
def test_bundle_without_its_core_gives_equal_results(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not engine.is_core:
        pytest.skip("this engine is the bundle")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tree = make_tree(
        {
            "a.py": "foo(1)  # nosem\nfoo(2)\n",
            "a b/ü.py": "foo(1)\n",
            "bad.js": "foo(1)\n))",
            "big.py": "#" * 1_000_001,
        }
    )
    rules = [
        CALL,
        TEXT,
        rule("broken", pattern="foo(("),
        rule("js", languages=("javascript",), pattern="foo(1)"),
    ]
    bundle = replace(engine, program=engine.source_file, is_core=False)
    of_bundle, of_core = scan(bundle, rules, tree), scan(engine, rules, tree)
    assert of_bundle.matches == of_core.matches
    assert of_bundle.count("call") == 3
    assert {(p.kind, p.rule_id, p.path) for p in of_bundle.problems} == {
        (p.kind, p.rule_id, p.path) for p in of_core.problems
    }
    assert not scan(bundle, rules[:1], make_tree({})).problems


def test_missing_engine_is_an_error(engine: RuleEngine, make_tree: MakeTree, tmp_path: Path) -> None:
    gone = replace(engine, program=tmp_path / "gone")
    with pytest.raises(EngineError, match="cannot be run"):
        scan(gone, [CALL], make_tree({"a.py": "foo(1)\n"}))


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not on this machine")
def test_full_disk_is_an_error_with_its_reason(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path
) -> None:
    program = wrap(engine, tmp_path, "echo 'write: No space left on device' >&2; exit 2")
    with pytest.raises(EngineError, match="no space left in"):
        scan(program, [CALL], make_tree({"a.py": "foo(1)\n"}))


def test_memory_is_bounded(engine: RuleEngine, make_tree: MakeTree) -> None:
    if not engine.is_core:
        pytest.skip("only the core is a single process")
    tree = make_tree({f"{n}.py": SLOW_FILE * 20 for n in range(3)})
    found = scan(
        engine, [HANG, CALL], tree, limits=RuleEngineLimits(wall_s=20, pair_s=2, memory_bytes=300 * 1024**2)
    )
    assert found.partial or found.count("call") == 60


def test_engine_needs_no_network(engine: RuleEngine, make_tree: MakeTree, tmp_path: Path) -> None:
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("no network namespace is available")
    if not engine.is_core:
        pytest.skip("only the core is known to use no network")
    program = tmp_path / "offline"
    program.write_text(f'#!/bin/sh\nexec unshare -rn {engine.program} "$@"\n')
    program.chmod(0o755)
    found = scan(replace(engine, program=program), [CALL], make_tree({"a.py": "foo(1)\n"}))
    assert found.count("call") == 1
