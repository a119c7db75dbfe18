"""Instances and scripts for tests of environments."""

from __future__ import annotations

from codetaste.benchmark.instance import Instance
from codetaste.environment.scripts import EnvironmentScripts, make_scripts

SETUP_SYSTEM = b"#!/bin/bash\nexit 0\n"
SETUP_SHELL = b"#!/bin/bash\nexport GREETING=hello\n"
RUN_TESTS = b"""#!/bin/bash
echo '{"passed": 12, "failed": 0, "skipped": 0, "total": 12}'
"""


def instance(number: int = 1, owner: str = "Acme", repo: str = "anvil") -> Instance:
    return Instance(owner, repo, f"{number:08x}{0:032x}", f"{number:08x}{1:032x}")


def scripts(setup_shell: bytes = SETUP_SHELL) -> EnvironmentScripts:
    return make_scripts(SETUP_SYSTEM, setup_shell, RUN_TESTS, "# Summary\n")
