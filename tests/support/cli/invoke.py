"""Run ``codetaste`` with arguments in this process, which saves Python's start."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.cli.app import app


def codetaste(capsys: pytest.CaptureFixture[str], *args: str | Path, code: int = 0) -> str:
    """Return standard output if the expected exit ``code`` is 0, else standard error."""
    capsys.readouterr()
    try:
        exit_code = app([*map(str, args)], exit_on_error=False)
    except SystemExit as error:
        exit_code = error.code
    captured = capsys.readouterr()
    assert (exit_code or 0) == code, captured.err
    return captured.out if code == 0 else captured.err
