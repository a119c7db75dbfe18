"""Messages of a run: a display on a terminal, plain lines elsewhere, without foreign terminal escapes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyte
import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import CommandResult, TinyBenchmark, Workspace

COLUMNS, LINES = 110, 30


@dataclass
class TerminalOutput:
    """All bytes that a terminal received, and the screens that it showed."""

    code: int = 0
    raw: bytes = b""
    screens: list[list[str]] = field(default_factory=list)

    def ever_shown(self, text: str) -> bool:
        return any(text in line for screen in self.screens for line in screen)

    @property
    def last(self) -> str:
        return "\n".join(self.screens[-1])


def run_on_terminal(
    workspace: Workspace,
    *args: str,
    term: str = "xterm-256color",
    until: Callable[[TerminalOutput, int], None] | None = None,
) -> TerminalOutput:
    """Run the command on a pseudo-terminal; call ``until`` with the process id after each read."""
    main, sub = pty.openpty()
    fcntl.ioctl(sub, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "codetaste.run", str(workspace.config), *args],
        cwd=workspace.folder,
        env={**os.environ, "XDG_CACHE_HOME": str(workspace.cache), "TERM": term, **workspace.env},
        stdin=sub,
        stdout=sub,
        stderr=sub,
        start_new_session=True,
    )
    os.close(sub)
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    terminal = TerminalOutput()
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        try:
            data = os.read(main, 65536)
        except OSError:
            break
        if not data:
            break
        terminal.raw += data
        stream.feed(data)
        shown = [line.rstrip() for line in screen.display]
        if not terminal.screens or terminal.screens[-1] != shown:
            terminal.screens.append(shown)
        if until is not None:
            until(terminal, process.pid)
    os.close(main)
    terminal.code = process.wait(200)
    return terminal


@pytest.mark.heavy
def test_terminal_shows_jobs_cost_budget_and_time_left(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(
        tmp_path, {"m": "slowly"}, run='budget_usd = 2.0\ntime_limit = "10m"', discover="budget_usd = 1.0"
    )
    terminal = run_on_terminal(workspace)
    assert terminal.code == 0
    assert b"Traceback" not in terminal.raw
    drawn = [line for screen in terminal.screens for line in screen]
    assert any(f"{alpha.row.id} additive" in line for line in drawn)
    assert any(re.search(r"\br · \d+s · (\d+m)?(\d+s)? left", line) for line in drawn)
    assert any("of $2.00" in line for line in drawn)
    assert any("additive" in line and "$" in line for line in drawn), "\n".join(drawn)
    assert any("waiting" in line for line in drawn)
    assert "2 of 2 jobs have a result" in terminal.last
    assert "run folder: " in terminal.last
    assert "waiting" not in terminal.last  # the display is removed, the summary remains
    assert b"\x1b[?25h" in terminal.raw  # the cursor is shown again


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
    terminal = run_on_terminal(workspace)
    assert terminal.code == 1
    assert_harmless(terminal.raw)
    assert terminal.ever_shown("[bold]not markup[/bold]") or terminal.ever_shown("[31mRED")
    assert "a mistake in the script" in terminal.last
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

    def interrupt(terminal: TerminalOutput, pid: int) -> None:
        if not interrupts and terminal.ever_shown("(sleep 4321"):
            interrupts.append(time.monotonic())
            os.kill(pid, 2)

    terminal = run_on_terminal(workspace, until=interrupt)
    assert terminal.code == 130
    assert b"Traceback" not in terminal.raw
    assert b"\x1b[?25h" in terminal.raw
    assert "run the same command again to continue" in terminal.last
    assert list(tiny_benchmark.leftover_processes(str(tmp_path))) == []


def test_config_fault_is_one_line_on_terminal(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick"})
    terminal = run_on_terminal(workspace, "--set", "run.nome=x")
    assert terminal.code == 2
    assert "did you mean 'name'" in terminal.last.replace("\n", "")
    (tmp_path / "runs" / "r").mkdir(parents=True)
    (tmp_path / "runs" / "r" / "journal.jsonl").write_text("nonsense\nmore\n")
    terminal = run_on_terminal(workspace)
    assert terminal.code == 1
    assert b"Traceback" not in terminal.raw
    assert "journal.jsonl" in terminal.last


@pytest.mark.heavy
def test_dumb_terminal_gets_no_display(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick"})
    terminal = run_on_terminal(workspace, term="dumb")
    assert terminal.code == 0
    assert "2 of 2 jobs have a result" in terminal.last
    assert b"\x1b[" not in terminal.raw
