"""Evidence is verified exactly if its command printed its lines, in their order."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.case_study.evidence import EvidenceRecord, check_evidence
from codetaste.case_study.study import Claim, CommandEvidence
from codetaste.transcripts.commands import RecordedCommand

LINES = st.lists(st.text("ab 0.=", max_size=12), max_size=6)


def find_problem(evidence: CommandEvidence, record: EvidenceRecord) -> str:
    (checked,) = check_evidence([evidence], record)
    return checked.problem


def problem_of(excerpt: str, output: str, command: str = "tox run") -> str:
    record = EvidenceRecord([RecordedCommand(command, output)])
    return find_problem(CommandEvidence("tox run", excerpt), record)


def is_printed(quote: list[str], output: list[str]) -> bool:
    """Whether some choice of lines of the output has those of the quote, in their order: by brute force."""
    if not quote:
        return True
    if not output:
        return False
    line, rest = quote[0], output[1:]
    fits = line == output[0] or (len(line) >= 8 and line in output[0])
    return (fits and is_printed(quote[1:], rest)) or is_printed(quote, rest)


@given(LINES, LINES)
def test_a_quote_is_found_exactly_if_its_lines_are_printed(quote: list[str], output: list[str]) -> None:
    words = [" ".join(line.split()) for line in quote]
    wanted = [line for line in words if line and line != "..."]
    printed = is_printed(wanted, [" ".join(line.split()) for line in output])
    found = problem_of("\n".join(quote), "\n".join(output)) == ""
    assert found == (bool(wanted) and printed)


@given(LINES, st.integers(0, 5), st.integers(1, 6))
def test_any_lines_of_the_output_are_evidence(output: list[str], start: int, count: int) -> None:
    piece = output[start : start + count]
    if any(line.split() for line in piece if line.strip() != "..."):
        assert problem_of("\n".join(piece), "\n".join(output)) == ""


@pytest.mark.parametrize(
    ("excerpt", "output", "problem"),
    [
        ("0", "10", "the command did not print this"),
        ("0", "a\n 0 \nb", ""),
        ("first\n[...]\nthird", "first\nsecond\nthird", ""),
        ("third\nfirst", "first\nsecond\nthird", "the command did not print this"),
        ("12 passed", "\x1b[32m12 passed\x1b[0m", ""),
        ("ox run", "tox run", "the command did not print this"),
        ("", "x", "it quotes no output"),
        ("all tests pass now", "[said] all tests pass now", "it shows only what an agent said"),
        (
            "all tests pass now",
            "[said] all tests pass now\nall tests pass now",
            "it shows only what an agent said",
        ),
    ],
)
def test_what_counts_as_printed(excerpt: str, output: str, problem: str) -> None:
    assert problem_of(excerpt, output) == problem


def test_a_command_that_has_the_text_itself_proves_nothing() -> None:
    for command, excerpt, proves in (
        ("echo 'all tests pass'", "all tests pass", False),
        ("printf 0", "0", False),
        ("cd /testbed && echo PASS", "PASS", False),
        ("cd /testbed; echo $?", "0", True),
        ("grep -c 0 x", "0", True),
        ("grep 'all tests' x", "all tests pass", True),
    ):
        record = EvidenceRecord([RecordedCommand(command, excerpt)])
        found = find_problem(CommandEvidence(command, excerpt), record)
        assert found == ("" if proves else "the command has this text itself")


def test_a_command_counts_as_it_was_run() -> None:
    assert problem_of("done", "done", "tox   run") == ""
    assert problem_of("done", "done", shlex.join(["bash", "-lc", "tox run"])) == ""
    assert problem_of("done", "done", "bash -lc 'tox") == "this command was not run"
    assert problem_of("done", "done", "tox run; echo done") == "this command was not run"
    nothing = CommandEvidence(" ", "x")
    assert find_problem(nothing, EvidenceRecord([])) == "it names no command"


def test_a_claim_needs_evidence_and_all_of_it_verified() -> None:
    good, bad = CommandEvidence("a", "b"), CommandEvidence("a", "b", "this command was not run")
    assert Claim("x", (good,)).verified
    assert not Claim("x").verified
    assert not Claim("x", (good, bad)).verified


READ = "cat notes.txt"
PASSED = "all 12 tests pass"


@pytest.mark.parametrize(
    ("earlier", "of_shell", "proves"),
    [
        (f"echo '{PASSED}' >notes.txt", True, False),
        (f"cat >notes.txt <<EOF\n{PASSED}\nEOF", True, False),
        (f"echo '{PASSED}' | tee notes.txt", True, False),
        (f"bash -c \"echo '{PASSED}' >notes.txt\"", True, False),
        (f"python3 -c \"open('notes.txt', 'w').write('{PASSED}')\"", True, False),
        (f"notes.txt\n{PASSED}", False, False),
        (f"grep -i '{PASSED}' notes.txt 2>/dev/null", True, True),
        (f"grep '> {PASSED}' notes.txt", True, True),
        ("tox run >notes.txt", True, True),
    ],
)
def test_what_the_agent_wrote_before_proves_nothing(earlier: str, of_shell: bool, proves: bool) -> None:
    written, read = RecordedCommand(earlier, "", of_shell=of_shell), RecordedCommand(READ, PASSED)
    evidence = CommandEvidence(READ, PASSED)
    planted = "" if proves else "the agent wrote this text itself before"
    assert find_problem(evidence, EvidenceRecord([written, read])) == planted
    assert find_problem(evidence, EvidenceRecord([read, written, read])) == "", "it was there before"


@pytest.mark.parametrize(
    ("command", "proves"),
    [
        ("sed 's/.said. //' /opt/study/trials/a/said.txt", False),
        ("cut -c8- /opt/study/trials/a/s*.txt", False),
        ("cut -c8- /opt/study/trials/a/sa''id.txt", False),
        ("cat $(ls /opt/study/trials/a/* | tail -n 1) | cut -c8-", False),
        ("grep -rhoe 'all .*' /opt/study/trials", False),
        ("cd /testbed && git apply /opt/study/trials/a/prediction.diff && tox run", True),
    ],
)
def test_a_statement_of_a_studied_agent_proves_nothing_without_its_mark(command: str, proves: bool) -> None:
    record = EvidenceRecord([RecordedCommand(command, PASSED)], f"I ran tox and {PASSED}")
    problem = "" if proves else "it may show only what an agent said"
    assert find_problem(CommandEvidence(command, PASSED), record) == problem


def test_a_command_with_two_outputs_proves_nothing() -> None:
    evidence, run = CommandEvidence("tox run", PASSED), RecordedCommand("tox run", PASSED, ambiguous=True)
    assert "two outputs" in find_problem(evidence, EvidenceRecord([run]))
    again = RecordedCommand("tox run", PASSED)
    assert find_problem(evidence, EvidenceRecord([run, again])) == ""


def test_whole_lines_are_filed_so_that_a_part_cannot_turn_their_meaning() -> None:
    output = f"start\n  FAILED: not {PASSED}\n\nend of it\n{'x' * 2000} tail of it"
    quote = CommandEvidence("tox run", f"{PASSED}\nend of it\ntail of it")
    (found,) = check_evidence([quote], EvidenceRecord([RecordedCommand("tox run", output)]))
    assert found.excerpt == f"  FAILED: not {PASSED}\n[…]\nend of it\ntail of it"
    assert found.verified
