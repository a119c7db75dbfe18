"""Copies of the project that a setup has installed, as ``pip install .`` or an installed wheel does.

Tests that import such a copy test R whatever a patch changes, and setup scripts may leave it as it is once it
is there. So everything that git does not have is removed before the patch is applied, as the contract does.
"""

from __future__ import annotations

from codetaste.errors import SandboxError
from codetaste.sandbox.base import CommandLimits, Sandbox

_WITHIN_S = 300.0
_MAX_NAMED = 20
_END = ".dist-info"
# Installers record where a package came from, and whether it is a link to the code (PEP 610). In editable
# installs it is one.
_FIND = """
find / -xdev -type f -path '*.dist-info/direct_url.json' -print0 2>/dev/null |
    xargs -0r grep -lsZE '"file://(localhost)?/testbed[/"]' | xargs -0r grep -LsZE '"editable": *true'
exit 0
"""


async def find_copies(sandbox: Sandbox) -> tuple[str, ...]:
    """Return the names, with versions, of Python packages that are installed as copies of /testbed.

    At most twenty are named. Packages of other languages are not looked for.

    Raises:
        SandboxError: the sandbox is gone, or the search took longer than five minutes.
    """
    done = await sandbox.run(["/bin/sh", "-c", _FIND], limits=CommandLimits(wall_s=_WITHIN_S), workdir="/")
    if done.exit_code != 0:
        raise SandboxError("the search for installed copies of the code did not end")
    folders = [path.split("/")[-2] for path in done.stdout.decode(errors="replace").split("\0") if path]
    return tuple(sorted({folder.removesuffix(_END) for folder in folders}))[:_MAX_NAMED]
