"""Scripts of made-up test suites, and sandboxes in which they run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from codetaste.environment.scripts import SCRIPTS, make_scripts
from codetaste.harness.testbed.testbed import prepare_testbed, testbed_archive
from codetaste.sandbox.base import Mount, Privileges, Sandbox, SandboxProvider, SandboxSpec
from codetaste.source.tree.store import Tree, tree_digest

SETUP = "#!/bin/bash\nexit 0\n"
RESULT = '{"passed": 12, "failed": 1, "skipped": 2, "total": 15}'
RUN_TESTS = f"#!/bin/bash\necho '{RESULT}'\n"


@asynccontextmanager
async def suite_sandbox(
    provider: SandboxProvider,
    folder: Path,
    *,
    setup_system: str = SETUP,
    setup_shell: str = "#!/bin/bash\n",
    run_tests: str = RUN_TESTS,
    files: Mapping[str, str] | None = None,
    privileges: Privileges = Privileges.NONE,
    image: str = "",
) -> AsyncIterator[Sandbox]:
    """Open a sandbox with these scripts, and with ``files`` in its testbed."""
    tree = folder / "tree"
    for name, content in (files or {".gitignore": "ignored\n", "code.txt": "1\n"}).items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    scripts = make_scripts(*(text.encode() for text in (setup_system, setup_shell, run_tests)))
    scripts.write(folder / "scripts")
    spec = SandboxSpec(
        "test", mounts=(Mount(folder / "scripts", SCRIPTS),), privileges=privileges, image=image
    )
    testbed = await prepare_testbed(Tree(tree, tree_digest(tree)), folder / "cache")
    async with provider.open(spec) as sandbox:
        await sandbox.put(testbed_archive(testbed, {}))
        yield sandbox
