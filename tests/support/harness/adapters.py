"""Adapters for tests: folders with an agent.toml and scripts of a few lines."""

from __future__ import annotations

import json
from pathlib import Path

from codetaste.harness.adapter import Adapter, read_adapter

END_EVENTS = """
[[end_events]]
when = { type = "end", ok = true }
outcome = "success"
message = "text"
failure_prefixes = ["error:"]

[[end_events]]
when = { type = "end" }
outcome = "error"
message = "text"
"""
PLAIN_MANIFEST = 'protocol = "none"\nversions = ["1"]\ndefault = "1"\n'
PRINT_VERSION = 'if [ "${1-}" = --version ]; then echo version 1; exit; fi\n'


def make_adapter(
    folder: Path,
    run: str = "",
    install: str = "",
    *,
    end_events: bool = True,
    toml: str = PLAIN_MANIFEST,
    extra_toml: str = "",
) -> Adapter:
    """Make an adapter that runs the shell script ``run``; ``end_events`` adds them to its manifest."""
    folder.mkdir(parents=True)
    manifest_end = f"{extra_toml}\ninstall = {json.dumps('install.sh' if install else '')}\n"
    (folder / "agent.toml").write_text(toml + manifest_end + (END_EVENTS if end_events else ""))
    (folder / "run.sh").write_text(f"#!/bin/sh\n{PRINT_VERSION}{run}")
    if install:
        (folder / "install.sh").write_text(f"#!/bin/sh\n{install}")
    return read_adapter(folder)


def make_published_adapter(
    folder: Path, run_agent: str, setup: str | None = None, provider: str = "local"
) -> Adapter:
    """Make an agent folder in the layout of the published harness."""
    folder.mkdir(parents=True)
    config = {
        "id": "theirs-1",
        "agent": {"name": "theirs", "version": "v1.0", "provider": provider, "additional": None},
        "model": {"name": "some-model", "provider": provider, "additional": {"effort": "medium"}},
    }
    (folder / "agent_config.json").write_text(json.dumps(config))
    (folder / "run_agent").write_text(f"#!/bin/bash\n{run_agent}")
    if setup is not None:
        (folder / "setup_system.sh").write_text(f"#!/bin/bash\n{setup}")
    return read_adapter(folder)
