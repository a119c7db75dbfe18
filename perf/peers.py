"""Other programs for the same work, each installed into a separate environment at run time."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path


def peer_python(package: str, *more: str) -> Path:
    """Return the Python of an environment that has ``package`` and ``more``, made on first use.

    Environments stay in ``$CODETASTE_PERF_PEERS``, by default ``~/.cache/codetaste-perf``.
    """
    folder = Path(os.environ.get("CODETASTE_PERF_PEERS") or Path.home() / ".cache" / "codetaste-perf")
    home = folder / f"{package}-{sys.version_info.major}.{sys.version_info.minor}"
    python = home / "bin" / "python"
    done = home / "installed"
    if not done.exists():
        print(f"installing {package} into {home}", file=sys.stderr, flush=True)
        venv.create(home, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", package, *more]
        subprocess.run(pip, check=True, stdout=sys.stderr)
        done.touch()
    return python
