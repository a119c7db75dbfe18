"""Messages of a run: a display on a terminal, plain lines elsewhere, without foreign terminal escapes."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.flows import terminal, tiny_benchmark
from support.flows.terminal import DEFAULT_SIZE, TerminalOutput, TerminalSize
from support.flows.tiny_benchmark import CommandResult, TinyBenchmark, Workspace


def run_on_terminal(
    workspace: Workspace,
    *args: str,
    term: str = "xterm-256color",
    size: TerminalSize = DEFAULT_SIZE,
    until: Callable[[TerminalOutput, int], None] | None = None,
) -> TerminalOutput:
    """Run the command on a pseudo-terminal; call ``until`` with the process id after each read."""
    ours = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    return terminal.run_on_terminal(
        [sys.executable, "-W", "error", "-m", "codetaste.run", str(workspace.config), *args],
        workspace.folder,
        {**ours, "XDG_CACHE_HOME": str(workspace.cache), "TERM": term, **workspace.env},
        size=size,
        until=until,
    )


@pytest.mark.heavy
def test_terminal_shows_jobs_cost_budget_and_time_left(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(
        tmp_path, {"m": "slowly"}, run='budget_usd = 2.0\ntime_limit = "10m"', discover="budget_usd = 1.0"
    )
    shown = run_on_terminal(workspace)
    assert shown.code == 0
    assert b"Traceback" not in shown.raw
    drawn = [line for screen in shown.screens for line in screen]
    assert any(f"{alpha.row.id} additive" in line for line in drawn)
    assert any(re.search(r"\br · \d+s · (\d+m)?(\d+s)? left", line) for line in drawn)
    assert any("of $2.00" in line for line in drawn)
    assert any("additive" in line and "$" in line for line in drawn), "\n".join(drawn)
    assert any("waiting" in line for line in drawn)
    assert "2 of 2 jobs ended well" in shown.last
    assert "run folder: " in shown.last
    assert "waiting" not in shown.last  # the display is removed, the summary remains
    assert b"\x1b[?25h" in shown.raw  # the cursor is shown again


@pytest.mark.heavy
def test_pipe_gets_one_plain_line_per_event(
    uninterrupted_run: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    _, interrupts = uninterrupted_run
    assert "\x1b" not in interrupts.err + interrupts.out
    assert re.search(
        rf"^ +\d+s  {re.escape(alpha.key('m', 'additive'))}: started$", interrupts.err, re.MULTILINE
    )
    assert re.search(
        rf"{re.escape(alpha.key('m', 'additive'))}: done, \$0\.0\d+$", interrupts.err, re.MULTILINE
    )
    assert all(line.isprintable() for line in interrupts.err.splitlines())


def assert_harmless(raw: bytes) -> None:
    """Check that no terminal escape of a model or a tool reached the terminal."""
    for bad in (b"\x1b[31mRED", b"\x1b]0;", b"\x07", b"\x9b2J", b"\xc2\x9b", b"\x1b[31mred"):
        assert bad not in raw, bad


@pytest.mark.heavy
def test_terminal_escapes_of_model_are_neutralized(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "hostile", "b": "broken"}, run="budget_usd = 9.0")
    shown = run_on_terminal(workspace)
    assert shown.code == 1
    assert_harmless(shown.raw)
    assert shown.ever_shown("[bold]not markup[/bold]") or shown.ever_shown("[31mRED")
    assert "a mistake in the script" in shown.last
    piped = Workspace(tmp_path / "piped", workspace.cache, workspace.config).run()
    assert piped.code == 1
    assert_harmless((piped.out + piped.err).encode())
    assert all(line.isprintable() for line in (piped.out + piped.err).splitlines())
    assert "[bold]not markup[/bold]" in piped.err
    assert_harmless(
        Workspace(tmp_path / "piped", workspace.cache, workspace.config).cli("status", "r").out.encode()
    )


@pytest.mark.heavy
def test_ctrl_c_stops_run_and_restores_terminal(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "sleeper"})
    interrupts: list[float] = []

    def interrupt(output: TerminalOutput, pid: int) -> None:
        if not interrupts and output.ever_shown("(sleep 4321"):
            interrupts.append(time.monotonic())
            os.kill(pid, 2)

    shown = run_on_terminal(workspace, until=interrupt)
    assert shown.code == 130
    assert b"Traceback" not in shown.raw
    assert b"\x1b[?25h" in shown.raw
    assert "run the same command again to continue" in shown.last
    assert list(tiny_benchmark.leftover_processes(str(tmp_path))) == []


def test_config_fault_is_one_line_on_terminal(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick"})
    shown = run_on_terminal(workspace, "--set", "run.nome=x")
    assert shown.code == 2
    assert "did you mean 'name'" in shown.last.replace("\n", "")
    (tmp_path / "runs" / "r").mkdir(parents=True)
    (tmp_path / "runs" / "r" / "journal.jsonl").write_text("nonsense\nmore\n")
    shown = run_on_terminal(workspace)
    assert shown.code == 1
    assert b"Traceback" not in shown.raw
    assert "journal.jsonl" in shown.last


@pytest.mark.heavy
def test_dumb_terminal_gets_no_display(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick"})
    shown = run_on_terminal(workspace, term="dumb")
    assert shown.code == 0
    assert "2 of 2 jobs ended well" in shown.last
    assert b"\x1b[" not in shown.raw


@pytest.mark.heavy
@pytest.mark.parametrize("columns", [0, 1, 7])
def test_terminal_without_columns_is_no_fault(tmp_path: Path, alpha: TinyBenchmark, columns: int) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick"})
    for args in (("--dry-run",), ("--set", "run.nome=x"), ()):
        shown = run_on_terminal(workspace, *args, size=TerminalSize(columns, 30))
        assert b"Traceback" not in shown.raw
        assert shown.code == (2 if "--set" in args else 0)
