"""What is typed after ``codetaste``, in this process: most of the time would be Python's start."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.cli.app import app


def codetaste(capsys: pytest.CaptureFixture[str], *args: str | Path, code: int = 0) -> str:
    """Standard output of a command that succeeds, standard error of one that ends with ``code``."""
    capsys.readouterr()
    try:
        ended = app([*map(str, args)], exit_on_error=False)
    except SystemExit as error:
        ended = error.code
    said = capsys.readouterr()
    assert (ended or 0) == code, said.err
    return said.out if code == 0 else said.err
