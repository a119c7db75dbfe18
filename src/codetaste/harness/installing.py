"""Making one agent's tree: a script runs in a workshop; what it made is tried, and put into place whole."""

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

from codetaste.atomic import write_atomically
from codetaste.errors import ToolMissing
from codetaste.harness import tree_files
from codetaste.harness.install import RECORD, architecture
from codetaste.harness.registry_settings import npm_settings, registry_variables
from codetaste.harness.workshop import HOME, NODE, Workshop
from codetaste.sandbox.engine import BUBBLEWRAP, probe
from codetaste.sandbox.node import node_runtime

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.harness.install import Installed
    from codetaste.harness.workshop import Ended
    from codetaste.sandbox.node import NodeRuntime

INSTALL_S, VERSION_S = 900.0, 120.0
"""How long an installation, and a program that is asked for its version, may take."""
_SHOWN = 300
_SAYS_WHY = r"npm (error|ERR!) ?\S|E: |error: |ERROR: |(Uncaught )?\w*Error\b.*: "
_NPM = '#!/bin/sh\nexec "$CODETASTE_NODE/bin/node" "$CODETASTE_NODE/{cli}" "$@"\n'


async def install(wanted: Installed, warn: Callable[[str], None]) -> None:
    """Make the tree of ``wanted``; nobody else may be making it.

    Raises:
        ToolMissing: it cannot be made; the reason in one line.
        SandboxError: its script could not be started.
    """
    agents, manifest, node = wanted.tree.parent, wanted.adapter.manifest, node_runtime()
    bubblewrap = await to_thread.run_sync(_bubblewrap)
    if bubblewrap is None and manifest.install:
        warn(f"{wanted.adapter.name}: its install script runs uncontained, as bubblewrap does not work here")
    await to_thread.run_sync(tree_files.sweep, agents)
    prefix = f"{tree_files.WORK_PREFIX}{os.getpid()}-"
    work = Path(await to_thread.run_sync(partial(tempfile.mkdtemp, prefix=prefix, dir=agents)))
    try:
        shop = Workshop(bubblewrap, work / "tree", wanted.inside, work / "scratch", node.root)
        await to_thread.run_sync(_prepare, wanted, shop, node)
        if manifest.install:
            script = f"{shop.seen_at}/{wanted.scripts}/{manifest.install}"
            ended = await shop.run([script], _variables(wanted, shop), network=True, wall_s=INSTALL_S)
            _insist(ended, wanted, f"cannot be installed ({manifest.install}", INSTALL_S)
        said = "" if wanted.adapter.published else await _version_said(wanted, shop)
        await to_thread.run_sync(_finish, wanted, shop, node, said)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(tree_files.remove, work)


def _bubblewrap() -> Path | None:
    working = (report.engine for report in probe() if report.kind == BUBBLEWRAP and report.engine is not None)
    return next((engine.program for engine in working), None)


def _prepare(wanted: Installed, shop: Workshop, node: NodeRuntime) -> None:
    tree_files.copy_scripts((source, shop.tree / target) for source, target in wanted.folders())
    (shop.scratch / "bin").mkdir(parents=True)
    (shop.scratch / "home").mkdir()
    (shop.scratch / "passwd").write_text(f"user:x:{os.getuid()}:{os.getgid()}::{HOME}:/bin/sh\n", "utf-8")
    (shop.scratch / "npmrc").write_text(npm_settings(os.environ), "utf-8")
    # The one in the package's own bin/ does not find its parts.
    npm = shop.scratch / "bin/npm"
    npm.write_text(_NPM.format(cli=node.npm_cli.relative_to(node.root)), "utf-8")
    npm.chmod(0o755)


def _variables(wanted: Installed, shop: Workshop) -> dict[str, str]:
    return {
        **registry_variables(os.environ),
        "CODETASTE_TREE": shop.seen_at,
        "CODETASTE_ADAPTER": f"{shop.seen_at}/{tree_files.ADAPTER}",
        "CODETASTE_VERSION": wanted.version,
        "CODETASTE_ARCH": architecture(),
        "CODETASTE_NODE": NODE if shop.bubblewrap else str(shop.node),
    }


async def _version_said(wanted: Installed, shop: Workshop) -> str:
    """Ask what was installed for its version, where no network is, as where it will work."""
    env = {"CODETASTE_AGENT": shop.seen_at, "CODETASTE_VERSION": wanted.version}
    script = f"{shop.seen_at}/{wanted.scripts}/{wanted.adapter.manifest.run}"
    ended = await shop.run([script, "--version"], env, network=False, wall_s=VERSION_S)
    _insist(ended, wanted, f"does not run ({wanted.adapter.manifest.run} --version", VERSION_S)
    if not re.search(rf"(?<![\w.]){re.escape(wanted.version)}(?![\w.])", ended.output):
        raise ToolMissing(
            f"{wanted.adapter.name} {wanted.version}: {wanted.adapter.manifest.run} --version says "
            f"{_one_line(ended.output)!r}, which is another release"
        )
    return _one_line(ended.output)


def _insist(ended: Ended, wanted: Installed, doing: str, limit_s: float) -> None:
    """Go on if it went well; otherwise say why not, and keep all that was said beside the trees."""
    if ended.exit_code == 0:
        return
    log = wanted.tree.with_name(f"{wanted.id}.log")
    log.write_text(ended.output, "utf-8", "replace")
    how = f"took longer than {limit_s:.0f} s" if ended.exit_code is None else f"ended with {ended.exit_code}"
    raise ToolMissing(
        f"{wanted.adapter.name} {wanted.version} {doing} {how}): {reason(ended.output)}; all of it: {log}"
    )


def reason(output: str) -> str:
    """Return the line or two of a failed script's output that say why it failed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [
        re.sub(r"^npm (error|ERR!) ?", "", line)
        for line in lines
        if re.match(_SAYS_WHY, line) and "complete log" not in line
    ]
    return _one_line("; ".join(errors[:2]) or (lines[-1] if lines else "it said nothing"))


def _one_line(text: str) -> str:
    said = " ".join(text.split())
    return said if len(said) <= _SHOWN else said[: _SHOWN - 1] + "…"


def _finish(wanted: Installed, shop: Workshop, node: NodeRuntime, said: str) -> None:
    tree_files.share(shop.tree / "node/bin/node", node.bin)
    tree_files.make_readable(shop.tree)
    record = {"agent": wanted.adapter.name, "version": wanted.version, "digest": wanted.digest, "says": said}
    # In place of what the script may have put there: a link would lead out of the tree.
    write_atomically(shop.tree / RECORD, json.dumps(record) + "\n")
    tree_files.remove(wanted.tree)  # one without a record is a damaged one
    shop.tree.rename(wanted.tree)
    wanted.tree.with_name(f"{wanted.id}.log").unlink(missing_ok=True)
