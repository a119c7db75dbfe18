"""Prove that no repository in a sandbox has golden objects, with everything that git offers to find them.

The repository in ``/testbed`` has one commit, R, and nothing else. It was made of R alone, so this fails only
if the setup scripts have fetched or committed something. Other repositories, such as those of package
managers, may have any other objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.core.text import plural, printable
from codetaste.errors import SandboxError
from codetaste.sandbox.base import TESTBED, CommandLimits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from codetaste.sandbox.base import Sandbox

_GIT = ("git", "-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
_ENV = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "LC_ALL": "C",
}
_GIT_S = 300.0
_OUTPUT_BYTES = 64 * 1024**2
_BRANCH = "refs/heads/main"
_LEFTOVERS = (
    *("FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "AUTO_MERGE", "shallow"),
    *(
        "logs",
        "lost-found",
        "worktrees",
        "rr-cache",
        "objects/info/alternates",
        "objects/info/http-alternates",
    ),
)
"""Of a repository, where other commits are named; the repository of a testbed has none of them."""
_SCRUB = f"""
set -u
cd {TESTBED}/.git || exit 1
git remote | xargs -r -n 1 git remote remove
git for-each-ref --format='%(refname)' | grep -vxF {_BRANCH} | sed 's/^/delete /' | git update-ref --stdin
rm -rf -- {" ".join(_LEFTOVERS)}
git reflog expire --expire=now --all
rm -rf -- logs
if [ -n "$(git fsck --connectivity-only --unreachable --no-reflogs --no-progress 2>/dev/null)" ]; then
    git gc --quiet --prune=now
fi
"""
_FIND = (
    r"find / -xdev \( -path /proc -o -path /sys -o -path /dev \) -prune"
    r" -o -type d -name objects -print0 2>/dev/null"
)


@dataclass(frozen=True, slots=True)
class GitFinding:
    """Something that a repository must not have; ``check`` is the command that found it."""

    repository: str
    check: str
    found: str

    def __str__(self) -> str:
        """Return it as one line."""
        return f"{self.repository}: {self.check}: {printable(self.found)}"


async def scrub_testbed(sandbox: Sandbox) -> None:
    """Remove remotes, other branches, tags, notes, stashes, reflogs and unreachable objects from /testbed.

    Raises:
        SandboxError: git failed, or the sandbox is gone.
    """
    limits = CommandLimits(wall_s=_GIT_S)
    done = await sandbox.run(["bash", "-c", _SCRUB], limits=limits, env=_ENV)
    if done.exit_code != 0:
        raise SandboxError(f"git cannot clean {TESTBED}: {_tail(done.stderr) or done.exit_code}")


async def check_testbed(sandbox: Sandbox, commit: str, golden: Collection[str]) -> tuple[GitFinding, ...]:
    """Return what the repository in /testbed has that it must not have.

    Args:
        sandbox: in which it is.
        commit: its only commit.
        golden: ids (hex) of the golden commit and of contents that only R∘X* has.

    Raises:
        SandboxError: git cannot read it, or the sandbox is gone.
    """
    git = _Git(sandbox, ("-C", TESTBED))
    findings: list[GitFinding] = []

    def expect(check: str, found: str, expected: str = "") -> None:
        if found.strip() != expected:
            findings.append(GitFinding(TESTBED, f"git {check}", found or "nothing"))

    expect("rev-parse HEAD", await git.output("rev-parse", "HEAD"), commit)
    expect("symbolic-ref HEAD", await git.output("symbolic-ref", "HEAD"), _BRANCH)
    expect(
        "for-each-ref",
        await git.output("for-each-ref", "--format=%(objectname) %(refname)"),
        f"{commit} {_BRANCH}",
    )
    expect("rev-list --all", await git.output("rev-list", "--all", "--reflog"), commit)
    expect("reflog", await git.output("reflog", "--all"))
    expect("remote", await git.output("remote", "-v"))
    expect("stash list", await git.output("stash", "list"))
    worktrees = (await git.output("worktree", "list", "--porcelain")).count("worktree ")
    expect("worktree list", plural(worktrees, "work tree"), "1 work tree")
    fsck = ("fsck", "--full", "--unreachable", "--no-reflogs", "--no-progress")
    expect("fsck", await git.output(*fsck, may_fail=True))
    every = set((await git.output("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")).split())
    reachable = {line[:40] for line in (await git.output("rev-list", "--objects", "HEAD")).splitlines()}
    if extra := sorted(every - reachable):
        findings.append(GitFinding(TESTBED, "git cat-file --batch-all-objects", " ".join(extra[:5])))
    findings += [GitFinding(TESTBED, "git cat-file", identity) for identity in sorted(every & set(golden))]
    expect("status", await git.output("status", "--porcelain=v1", "--untracked-files=no"))
    findings += [GitFinding(TESTBED, "ls .git", name) for name in await _leftovers(sandbox)]
    return tuple(findings)


async def check_other_repositories(sandbox: Sandbox, golden: Collection[str]) -> tuple[GitFinding, ...]:
    """Return golden objects that any repository in the sandbox has; it needs privileges.

    Raises:
        SandboxError: the sandbox is gone.
    """
    wanted = "".join(f"{identity}\n" for identity in sorted(golden)).encode()
    findings: list[GitFinding] = []
    for folder in await _repositories(sandbox):
        git = _Git(sandbox, (f"--git-dir={folder}",), root=True)
        found = await git.output("cat-file", "--batch-check", stdin=wanted, may_fail=True)
        present = [line for line in found.splitlines() if line and not line.endswith("missing")]
        findings += [GitFinding(folder, "git cat-file --batch-check", line) for line in present]
    return tuple(findings)


@dataclass(frozen=True, slots=True)
class _Git:
    """Runs git in a sandbox on one repository."""

    sandbox: Sandbox
    where: tuple[str, ...]
    root: bool = False

    async def output(self, *args: str, stdin: bytes = b"", may_fail: bool = False) -> str:
        done = await self.sandbox.run(
            [*_GIT, *self.where, *args],
            limits=CommandLimits(wall_s=_GIT_S, output_bytes=_OUTPUT_BYTES),
            stdin=stdin,
            env=_ENV,
            workdir="/",
            root=self.root,
        )
        if done.timed_out or done.truncated or (done.exit_code != 0 and not may_fail):
            reason = (
                "took too long" if done.timed_out else _tail(done.stderr) or f"ended with {done.exit_code}"
            )
            raise SandboxError(f"git {' '.join((*self.where, args[0]))} in a sandbox: {reason}")
        return done.stdout.decode("utf-8", "backslashreplace")


async def _leftovers(sandbox: Sandbox) -> Iterable[str]:
    command = [
        "bash",
        "-c",
        f'cd {TESTBED}/.git && for name; do [ -e "$name" ] && echo "$name"; done; true',
        "ls",
    ]
    done = await sandbox.run([*command, *_LEFTOVERS])
    return done.stdout.decode().split()


async def _repositories(sandbox: Sandbox) -> list[str]:
    """Return the folders of all git repositories in the sandbox."""
    limits = CommandLimits(wall_s=_GIT_S, output_bytes=_OUTPUT_BYTES)
    done = await sandbox.run(["bash", "-c", _FIND], limits=limits, workdir="/", root=True)
    folders = [path.decode("utf-8", "surrogateescape") for path in done.stdout.split(b"\0") if path]
    return [folder.removesuffix("/objects") for folder in folders if folder.endswith("/objects")]


def _tail(stderr: bytes) -> str:
    return printable(" ".join(stderr.decode(errors="replace").split())[-300:])
