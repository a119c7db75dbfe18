"""Install an agent: run its install script in a sandbox, check its version, move its tree into place."""

from __future__ import annotations

import json
import os
import re
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.files import locked, remove_tree, write_atomically
from codetaste.core.text import one_line
from codetaste.errors import ToolMissing
from codetaste.harness.install import files as tree_files
from codetaste.harness.install.registries import npm_settings, registry_variables
from codetaste.harness.install.sandbox import HOME_PATH, NODE_MOUNT, InstallSandbox
from codetaste.harness.install.store import RECORD_FILE, is_installed, node_architecture, planned_install
from codetaste.sandbox.containment.engine import BUBBLEWRAP, probe_engines
from codetaste.sandbox.supervisor.node import node_runtime

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.harness.adapter import Adapter
    from codetaste.harness.install.sandbox import ScriptResult
    from codetaste.harness.install.store import InstalledAgent
    from codetaste.sandbox.supervisor.node import NodeRuntime

INSTALL_TIMEOUT_S, VERSION_TIMEOUT_S = 900.0, 120.0
"""Time limits of an install script, and of the ``--version`` call."""

_ERROR_LINE = r"npm (error|ERR!) ?\S|E: |error: |ERROR: |(Uncaught )?\w*Error\b.*: "
_NPM_SCRIPT = '#!/bin/sh\nexec "$CODETASTE_NODE/bin/node" "$CODETASTE_NODE/{cli}" "$@"\n'


async def install_agent(
    adapter: Adapter, version: str | None, cache: Path, warn: Callable[[str], None]
) -> InstalledAgent:
    """Return a release of ``adapter``, and install it if necessary; safe to call from several processes.

    Args:
        adapter: the agent's adapter.
        version: the release, or None for the adapter's default.
        cache: the cache folder; trees are in its folder ``agents``.
        warn: receives warnings for the user.

    Raises:
        ConfigError: ``version`` is not a valid release name.
        ToolMissing: it cannot be installed; the message has the reason in one line and the log's path.
        SandboxError: the install script could not be started.
    """
    wanted = planned_install(adapter, version, cache)
    if await to_thread.run_sync(is_installed, wanted):
        return wanted
    try:
        await anyio.Path(wanted.tree.parent).mkdir(parents=True, exist_ok=True)
        async with locked(wanted.tree.with_name(f".{wanted.id}.lock"), ToolMissing):
            if not await to_thread.run_sync(is_installed, wanted):
                await _build_agent(wanted, warn)
    except OSError as error:
        reason = error.strerror or error
        raise ToolMissing(f"{wanted.id} cannot be installed in {wanted.tree.parent}: {reason}") from error
    return wanted


async def _build_agent(wanted: InstalledAgent, warn: Callable[[str], None]) -> None:
    """Build the tree of ``wanted``; the caller holds its lock.

    Raises:
        ToolMissing: it cannot be built; the message has the reason in one line.
        SandboxError: its script could not be started.
    """
    agents, manifest, node = wanted.tree.parent, wanted.adapter.manifest, node_runtime()
    bubblewrap = await to_thread.run_sync(_bubblewrap)
    if bubblewrap is None and manifest.install:
        warn(f"{wanted.adapter.name}: its install script runs uncontained, as bubblewrap does not work here")
    await to_thread.run_sync(tree_files.remove_stale, agents)
    prefix = f"{tree_files.WORK_PREFIX}{os.getpid()}-"
    work = Path(await to_thread.run_sync(partial(tempfile.mkdtemp, prefix=prefix, dir=agents)))
    try:
        sandbox = InstallSandbox(bubblewrap, work / "tree", wanted.mount_path, work / "scratch", node.root)
        await to_thread.run_sync(_prepare, wanted, sandbox, node)
        if manifest.install:
            script = f"{sandbox.tree_path}/{wanted.script_folder}/{manifest.install}"
            result = await sandbox.run(
                [script], _variables(wanted, sandbox), network=True, wall_s=INSTALL_TIMEOUT_S
            )
            _check_exit(result, wanted, f"cannot be installed ({manifest.install}", INSTALL_TIMEOUT_S)
        version_output = "" if wanted.adapter.published else await _check_version(wanted, sandbox)
        await to_thread.run_sync(_finish, wanted, sandbox, node, version_output)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(remove_tree, work)


def _bubblewrap() -> Path | None:
    working = (
        report.engine for report in probe_engines() if report.kind == BUBBLEWRAP and report.engine is not None
    )
    return next((engine.program for engine in working), None)


def _prepare(wanted: InstalledAgent, sandbox: InstallSandbox, node: NodeRuntime) -> None:
    tree_files.copy_scripts((source, sandbox.tree / target) for source, target in wanted.copied_folders())
    (sandbox.scratch / "bin").mkdir(parents=True)
    (sandbox.scratch / "home").mkdir()
    sandbox.passwd.write_text(f"user:x:{os.getuid()}:{os.getgid()}::{HOME_PATH}:/bin/sh\n", "utf-8")
    (sandbox.scratch / "npmrc").write_text(npm_settings(os.environ), "utf-8")
    # The script in the package's own bin/ does not find its modules.
    npm = sandbox.scratch / "bin/npm"
    npm.write_text(_NPM_SCRIPT.format(cli=node.npm_cli.relative_to(node.root)), "utf-8")
    npm.chmod(0o755)


def _variables(wanted: InstalledAgent, sandbox: InstallSandbox) -> dict[str, str]:
    return {
        **registry_variables(os.environ),
        "CODETASTE_TREE": sandbox.tree_path,
        "CODETASTE_ADAPTER": f"{sandbox.tree_path}/{tree_files.ADAPTER_FOLDER}",
        "CODETASTE_VERSION": wanted.version,
        "CODETASTE_ARCH": node_architecture(),
        "CODETASTE_NODE": NODE_MOUNT if sandbox.bubblewrap else str(sandbox.node),
    }


async def _check_version(wanted: InstalledAgent, sandbox: InstallSandbox) -> str:
    """Run the installed agent with --version, without network as in its later sandbox; return the output."""
    env = {"CODETASTE_AGENT": sandbox.tree_path, "CODETASTE_VERSION": wanted.version}
    script = f"{sandbox.tree_path}/{wanted.script_folder}/{wanted.adapter.manifest.run}"
    result = await sandbox.run([script, "--version"], env, network=False, wall_s=VERSION_TIMEOUT_S)
    _check_exit(result, wanted, f"does not run ({wanted.adapter.manifest.run} --version", VERSION_TIMEOUT_S)
    if not re.search(rf"(?<![\w.]){re.escape(wanted.version)}(?![\w.])", result.output):
        raise ToolMissing(
            f"{wanted.adapter.name} {wanted.version}: {wanted.adapter.manifest.run} --version says "
            f"{one_line(result.output)!r}, which is another release"
        )
    return one_line(result.output)


def _check_exit(result: ScriptResult, wanted: InstalledAgent, doing: str, limit_s: float) -> None:
    """Raise ``ToolMissing`` unless the script exited with 0; its whole output is written beside the trees."""
    if result.exit_code == 0:
        return
    log = wanted.tree.with_name(f"{wanted.id}.log")
    log.write_text(result.output, "utf-8", "replace")
    how = (
        f"took longer than {limit_s:.0f} s" if result.exit_code is None else f"ended with {result.exit_code}"
    )
    raise ToolMissing(
        f"{wanted.adapter.name} {wanted.version} {doing} {how}): {script_failure_reason(result.output)}; "
        f"full output: {log}"
    )


def script_failure_reason(output: str) -> str:
    """Return the one or two lines of a failed script's output that explain the failure."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [
        re.sub(r"^npm (error|ERR!) ?", "", line)
        for line in lines
        if re.match(_ERROR_LINE, line) and "complete log" not in line
    ]
    return one_line("; ".join(errors[:2]) or (lines[-1] if lines else "no output"))


def _finish(wanted: InstalledAgent, sandbox: InstallSandbox, node: NodeRuntime, version_output: str) -> None:
    adapter = sandbox.tree / tree_files.ADAPTER_FOLDER
    if adapter.is_symlink() or not adapter.is_dir():  # a mount of it would show what the link names
        raise ToolMissing(
            f"{wanted.adapter.name} {wanted.version}: its install script replaced its own folder "
            f"{adapter.name}/; mend the script"
        )
    tree_files.hard_link(sandbox.tree / "node/bin/node", node.bin)
    tree_files.make_readable(sandbox.tree)
    record = {
        "agent": wanted.adapter.name,
        "version": wanted.version,
        "digest": wanted.digest,
        "version_output": version_output,
    }
    # Replaces what the script may have put there; writing through a link would leave the tree.
    write_atomically(sandbox.tree / RECORD_FILE, json.dumps(record) + "\n")
    remove_tree(wanted.tree)  # a tree without a record is incomplete
    sandbox.tree.rename(wanted.tree)
    wanted.tree.with_name(f"{wanted.id}.log").unlink(missing_ok=True)
