"""Adapters made by tests: folders with an agent.toml and scripts of a few lines."""

from __future__ import annotations

import json
from pathlib import Path

from codetaste.harness.adapter import Adapter, read_adapter

ENDS = """
[[end_events]]
when = { type = "end", ok = true }
outcome = "success"
message = "said"
failure_prefixes = ["error:"]

[[end_events]]
when = { type = "end" }
outcome = "error"
message = "said"
"""
PLAIN = 'protocol = "none"\nversions = ["1"]\ndefault = "1"\n'
SAYS_VERSION = 'if [ "${1-}" = --version ]; then echo version 1; exit; fi\n'


def made_agent(
    folder: Path, run: str = "", install: str = "", *, ends: bool = True, toml: str = PLAIN, more: str = ""
) -> Adapter:
    """An adapter whose program is the shell script ``run``; it says how it ended if ``ends``."""
    folder.mkdir(parents=True)
    script = f"{more}\ninstall = {json.dumps('install.sh' if install else '')}\n"
    (folder / "agent.toml").write_text(toml + script + (ENDS if ends else ""))
    (folder / "run.sh").write_text(f"#!/bin/sh\n{SAYS_VERSION}{run}")
    if install:
        (folder / "install.sh").write_text(f"#!/bin/sh\n{install}")
    return read_adapter(folder)


def published_agent(
    folder: Path, run_agent: str, setup: str | None = None, provider: str = "local"
) -> Adapter:
    """An agent of the published harness."""
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
