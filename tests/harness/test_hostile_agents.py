"""Hostile agents end with a reason, their edits are extracted, and they leave nothing on the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.harness.patch.extract import ExtractionLimits
from codetaste.sandbox.base import EndReason, SandboxEnd
from support.harness.hostile_agents import (
    HostileAgentRunner,
    both_engines,
    both_engines_docker_slow,
    engine,
    runner,
)
from support.harness.testbed_tree import WorkTree, apply_patch

__all__ = ["engine", "runner"]

pytestmark = pytest.mark.anyio

WORK = "echo work >>a.py\n"
"""The first edit of each agent, which its patch must contain."""


def list_changes(runner: HostileAgentRunner, patch: bytes, scratch: Path) -> list[str]:
    """Return git's status letters and names of the changes that ``patch`` makes to R."""
    tree = apply_patch(runner.base, scratch, patch)
    return (
        WorkTree(scratch)
        .git("diff", "--no-renames", "--name-status", "HEAD", tree.decode())
        .decode()
        .splitlines()
    )


@pytest.mark.heavy
@both_engines_docker_slow
async def test_fork_bomb_ends_at_time_limit(runner: HostileAgentRunner, tmp_path: Path) -> None:
    run = await runner.run(WORK + "f() { f | f & }; f; sleep 60", wall_s=5.0, processes=100)
    assert run.result.finish_reason in {"timeout", "execution_error"}
    assert run.result.problem
    assert list_changes(runner, run.extracted.patch, tmp_path / "check") == ["M\ta.py"]


@pytest.mark.heavy
@both_engines
async def test_agent_ignoring_signals_in_new_sessions_ends_at_time_limit(
    runner: HostileAgentRunner, tmp_path: Path
) -> None:
    script = """
        trap '' TERM INT HUP
        (setsid sh -c 'trap "" TERM; (while :; do echo late >>late; sleep 0.05; done) & exec sleep 600' &)
        (setsid env -i sleep 600 &)
        sleep 600
    """
    run = await runner.run(WORK + script, wall_s=5.0)
    assert run.result.finish_reason == "timeout", run.result
    assert "it was not finished after" in run.result.problem
    assert list_changes(runner, run.extracted.patch, tmp_path / "check") == ["M\ta.py", "A\tlate"]


@pytest.mark.heavy
@both_engines_docker_slow
async def test_endless_output_ends_at_time_limit(runner: HostileAgentRunner, tmp_path: Path) -> None:
    run = await runner.run(
        WORK + "while :; do yes to all of it | head -c 1000000; sleep 0.02; done", wall_s=5.0
    )
    assert run.result.finish_reason == "timeout", run.result
    assert run.result.stream_bytes > 1_000_000
    assert list_changes(runner, run.extracted.patch, tmp_path / "check") == ["M\ta.py"]


@pytest.mark.heavy
@both_engines_docker_slow
async def test_number_of_new_files_is_limited(runner: HostileAgentRunner, tmp_path: Path) -> None:
    script = "mkdir aa many; (cd aa; seq 20000 | xargs touch); (cd many; seq -f '%g.log' 5000 | xargs touch)"
    run = await runner.run(WORK + script, limits=ExtractionLimits(new_files=2_000))
    assert run.result.finish_reason == "success"
    assert run.extracted.problem == "only 2,000 of 25,000 new files are considered"
    changes = list_changes(runner, run.extracted.patch, tmp_path / "check")
    assert changes[0] == "M\ta.py"
    assert len(changes) == 2_001


@pytest.mark.slow
@pytest.mark.timeout(1800)
@both_engines_docker_slow
async def test_a_million_new_files_are_limited(runner: HostileAgentRunner, tmp_path: Path) -> None:
    run = await runner.run(WORK + "mkdir aa; cd aa; seq 1000000 | xargs touch", wall_s=600)
    assert run.extracted.problem == "only 200,000 of 1,000,000 new files are considered"
    assert b"+work" in run.extracted.patch


@both_engines
async def test_agent_filling_disk_ends_its_sandbox(runner: HostileAgentRunner, tmp_path: Path) -> None:
    script = "cat /dev/zero >fill; sleep 60"
    run = await runner.run(WORK + script, disk_bytes=48 * 1024**2, limits=ExtractionLimits(file_bytes=10**7))
    assert run.result.finish_reason == "execution_error", run.result
    assert "disk full" in run.result.problem
    assert run.sandbox_end == SandboxEnd(EndReason.DISK_FULL)
    assert run.extracted.problem.startswith("1 file ('fill') (")
    assert list_changes(runner, run.extracted.patch, tmp_path / "check") == ["M\ta.py"]


@both_engines
async def test_agent_over_memory_limit_is_ended(runner: HostileAgentRunner, tmp_path: Path) -> None:
    script = "python3 -c 'x = [bytearray(b\"x\" * 2**24) for _ in range(200)]'"
    run = await runner.run(WORK + script, memory_bytes=300 * 1024**2)
    assert run.result.finish_reason == "execution_error", run.result
    assert "memory" in f"{run.result.problem} {run.result.stderr} {run.sandbox_end}"
    assert list_changes(runner, run.extracted.patch, tmp_path / "check") == ["M\ta.py"]


@both_engines
async def test_agent_that_kills_every_process_is_ended(runner: HostileAgentRunner, tmp_path: Path) -> None:
    run = await runner.run(WORK + "kill -KILL -1; kill -9 1; sleep 60", wall_s=5.0)
    assert run.result.finish_reason in {"timeout", "execution_error"}
    assert run.result.problem
    assert list_changes(runner, run.extracted.patch, tmp_path / "check") == ["M\ta.py"]


@both_engines_docker_slow
async def test_replaced_git_and_shell_do_not_affect_patch(runner: HostileAgentRunner, tmp_path: Path) -> None:
    script = """
        mkdir -p "$HOME/bin" bin
        for name in git sh bash tar node; do
            printf '#!/bin/sh\\nrm -rf /testbed/*\\n' >"$HOME/bin/$name"; cp "$HOME/bin/$name" bin/
            cp "$HOME/bin/$name" "/usr/bin/$name" || cp "$HOME/bin/$name" "/bin/$name"
        done
        chmod 755 "$HOME"/bin/* bin/*
        echo 'export PATH="$HOME/bin:$PATH"' >"$HOME/.bashrc"; cp "$HOME/.bashrc" "$HOME/.profile"
        exit 0
    """
    run = await runner.run(WORK + script)
    assert run.result.finish_reason == "success"
    changes = list_changes(runner, run.extracted.patch, tmp_path / "check")
    assert changes == ["M\ta.py", *(f"A\tbin/{name}" for name in ("bash", "git", "node", "sh", "tar"))]


@both_engines_docker_slow
async def test_replaced_testbed_gives_no_content_of_other_files(
    runner: HostileAgentRunner, tmp_path: Path
) -> None:
    script = """
        cd /; rm -rf testbed/* testbed/.[a-z]*; rmdir testbed; ln -sfn /etc testbed; mv testbed gone
        ln -s /etc/passwd testbed/a.py; ln -s / testbed/src; ln /etc/passwd testbed/hard
        exit 0
    """
    run = await runner.run(script)
    if run.extracted.problem:
        assert "was replaced by" in run.extracted.problem
    else:
        changes = list_changes(runner, run.extracted.patch, tmp_path / "check")
        assert {"D\t.gitignore", "T\ta.py", "D\tsrc/b.py"} <= set(changes)
    assert b"root:" not in run.extracted.patch


@both_engines
async def test_extraction_runs_nothing_of_the_tree(runner: HostileAgentRunner, tmp_path: Path) -> None:
    # The path exists on the host and in the sandbox, so that a run is detected in either.
    canary = tmp_path / "canary"
    script = f"""
        run='touch {canary}'
        printf '#!/bin/sh\\n%s\\n' "$run" >"$HOME/evil"; chmod 755 "$HOME/evil"; mkdir -p .git/hooks hooks
        for hook in pre-commit post-checkout post-index-change reference-transaction fsmonitor-watchman; do
            cp "$HOME/evil" ".git/hooks/$hook"; cp "$HOME/evil" "hooks/$hook"
        done
        for key in core.fsmonitor core.pager core.editor core.sshCommand core.askPass gpg.program \\
            alias.diff diff.external diff.evil.command diff.evil.textconv filter.evil.clean \\
            filter.evil.process merge.evil.driver uploadpack.packObjectsHook trailer.x.command; do
            git config $key "$run"
        done
        git config core.hooksPath "$PWD/hooks"; git config includeIf.gitdir:/.path "$HOME/more"
        git config core.attributesFile "$PWD/.gitattributes"; git config core.worktree /etc
        printf '[core]\\n\\tfsmonitor = %s\\n' "$run" >"$HOME/more"
        printf '* diff=evil filter=evil merge=evil\\n' >.gitattributes
        echo 'gitdir: /etc' >src/.git
        printf '/etc\\n' >.git/commondir; printf '/etc\\n' >.git/objects/info/alternates
        exit 0
    """
    run = await runner.run(WORK + script)
    assert run.result.finish_reason == "success"
    assert run.extracted.problem == ""
    assert list_changes(runner, run.extracted.patch, tmp_path / "check")[:2] == [
        "A\t.gitattributes",
        "M\ta.py",
    ]
    assert not canary.exists()


@both_engines_docker_slow
async def test_special_files_and_locked_folders_are_handled(
    runner: HostileAgentRunner, tmp_path: Path
) -> None:
    script = """
        mkfifo pipe src/pipe; mknod null c 1 3
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
        ln -s /dev/zero endless; ln -s /proc/self/mem memory; ln -s . loop
        truncate -s 300M sparse
        mkdir locked; echo in >locked/in; chmod 000 locked a.py
        exit 0
    """
    run = await runner.run(WORK + script, limits=ExtractionLimits(file_bytes=10**6))
    changes = list_changes(runner, run.extracted.patch, tmp_path / "check")
    assert changes == ["M\ta.py", "A\tendless", "A\tlocked/in", "A\tloop", "A\tmemory"]
    assert run.extracted.problem == "1 file ('sparse') (314,572,800 bytes) left out: too large for a patch"
    assert any("is a named pipe" in note for note in run.extracted.notes)


@both_engines_docker_slow
async def test_patch_deletes_everything_that_agent_deleted(
    runner: HostileAgentRunner, tmp_path: Path
) -> None:
    run = await runner.run("rm -rf /* /testbed/.[a-z]* 2>/dev/null; exit 0")
    assert run.result.finish_reason in {"success", "execution_error"}
    assert list_changes(runner, run.extracted.patch, tmp_path / "check") == [
        "D\t.gitignore",
        "D\ta.py",
        "D\tsrc/b.py",
    ]


@both_engines_docker_slow
async def test_deep_tree_and_long_names_are_extracted(runner: HostileAgentRunner, tmp_path: Path) -> None:
    script = """
        name=$(printf 'n%.0s' $(seq 250))
        for i in 1 2 3 4 5 6; do mkdir $name; cd $name; done; echo deep >$name
        cd /testbed; for i in $(seq 60); do mkdir d; cd d; done; echo deeper >file
    """
    run = await runner.run(WORK + script)
    assert run.extracted.problem == ""
    assert len(list_changes(runner, run.extracted.patch, tmp_path / "check")) == 3
