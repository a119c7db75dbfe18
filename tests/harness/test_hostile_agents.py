"""Agents that do harm: each ends with a named reason, what it changed is kept, and nothing is left of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.harness.patch.extract import ExtractionLimits
from codetaste.sandbox.base import EndReason, SandboxEnd
from support.harness.hostile_agents import Stage, engine, in_both, in_both_but_seldom_docker, stage
from support.harness.testbed_tree import WorkTree, applied

__all__ = ["engine", "stage"]

pytestmark = pytest.mark.anyio

WORK = "echo work >>a.py\n"
"""What each of them does first, and must not be lost."""


def changes(stage: Stage, patch: bytes, scratch: Path) -> list[str]:
    """What ``patch`` does to R: git's letters and names."""
    tree = applied(stage.base, scratch, patch)
    return (
        WorkTree(scratch)
        .git("diff", "--no-renames", "--name-status", "HEAD", tree.decode())
        .decode()
        .splitlines()
    )


@in_both_but_seldom_docker
async def test_a_fork_bomb_ends_with_its_time(stage: Stage, tmp_path: Path) -> None:
    done = await stage.plays(WORK + "f() { f | f & }; f; sleep 60", wall_s=1.5, processes=100)
    assert done.end.finish_reason in {"timeout", "execution_error"}
    assert done.end.problem
    assert changes(stage, done.harvest.patch, tmp_path / "judge") == ["M\ta.py"]


@in_both
async def test_what_traps_signals_and_forks_away_ends_with_its_time(stage: Stage, tmp_path: Path) -> None:
    script = """
        trap '' TERM INT HUP
        (setsid sh -c 'trap "" TERM; (while :; do echo late >>late; sleep 0.05; done) & exec sleep 600' &)
        (setsid env -i sleep 600 &)
        sleep 600
    """
    done = await stage.plays(WORK + script, wall_s=1.0)
    assert done.end.finish_reason == "timeout", done.end
    assert "it was not finished after" in done.end.problem
    assert changes(stage, done.harvest.patch, tmp_path / "judge") == ["M\ta.py", "A\tlate"]


@in_both_but_seldom_docker
async def test_a_flood_of_output_fills_nothing(stage: Stage, tmp_path: Path) -> None:
    done = await stage.plays(WORK + "yes to all of it; yes >&2", wall_s=1.5)
    assert done.end.finish_reason == "timeout", done.end
    assert done.end.stream_bytes > 1_000_000
    assert changes(stage, done.harvest.patch, tmp_path / "judge") == ["M\ta.py"]


@in_both_but_seldom_docker
async def test_tens_of_thousands_of_files_are_bounded(stage: Stage, tmp_path: Path) -> None:
    script = "mkdir aa many; (cd aa; seq 20000 | xargs touch); (cd many; seq -f '%g.log' 5000 | xargs touch)"
    done = await stage.plays(WORK + script, limits=ExtractionLimits(new_files=2_000))
    assert done.end.finish_reason == "success"
    assert done.harvest.problem == "only 2,000 of 25,000 new files are considered"
    found = changes(stage, done.harvest.patch, tmp_path / "judge")
    assert found[0] == "M\ta.py"
    assert len(found) == 2_001


@pytest.mark.slow
@pytest.mark.timeout(1800)
@in_both_but_seldom_docker
async def test_a_million_files_are_bounded(stage: Stage, tmp_path: Path) -> None:
    done = await stage.plays(WORK + "mkdir aa; cd aa; seq 1000000 | xargs touch", wall_s=600)
    assert done.harvest.problem == "only 200,000 of 1,000,000 new files are considered"
    assert b"+work" in done.harvest.patch


@in_both
async def test_hostile_agent_filling_disk_ends_its_sandbox(stage: Stage, tmp_path: Path) -> None:
    script = "cat /dev/zero >fill; sleep 60"
    done = await stage.plays(
        WORK + script, disk_bytes=48 * 1024**2, limits=ExtractionLimits(file_bytes=10**7)
    )
    assert done.end.finish_reason == "execution_error", done.end
    assert "disk full" in done.end.problem
    assert done.ended == SandboxEnd(EndReason.DISK_FULL)
    assert done.harvest.problem.startswith("1 file ('fill') (")
    assert changes(stage, done.harvest.patch, tmp_path / "judge") == ["M\ta.py"]


@in_both
async def test_a_memory_eater_is_ended(stage: Stage, tmp_path: Path) -> None:
    eat = "python3 -c 'x = [bytearray(b\"x\" * 2**24) for _ in range(200)]'"
    done = await stage.plays(WORK + eat, memory_bytes=300 * 1024**2)
    assert done.end.finish_reason == "execution_error", done.end
    assert "memory" in f"{done.end.problem} {done.end.stderr} {done.ended}"
    assert changes(stage, done.harvest.patch, tmp_path / "judge") == ["M\ta.py"]


@in_both
async def test_a_program_that_kills_all_it_can_reach_is_ended(stage: Stage, tmp_path: Path) -> None:
    done = await stage.plays(WORK + "kill -KILL -1; kill -9 1; sleep 60", wall_s=5.0)
    assert done.end.finish_reason in {"timeout", "execution_error"}
    assert done.end.problem
    assert changes(stage, done.harvest.patch, tmp_path / "judge") == ["M\ta.py"]


@in_both_but_seldom_docker
async def test_what_replaces_git_and_sh_is_not_believed(stage: Stage, tmp_path: Path) -> None:
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
    done = await stage.plays(WORK + script)
    assert done.end.finish_reason == "success"
    found = changes(stage, done.harvest.patch, tmp_path / "judge")
    assert found == ["M\ta.py", *(f"A\tbin/{name}" for name in ("bash", "git", "node", "sh", "tar"))]


@in_both_but_seldom_docker
async def test_replaced_repository_gives_no_foreign_patch(stage: Stage, tmp_path: Path) -> None:
    script = """
        cd /; rm -rf testbed/* testbed/.[a-z]*; rmdir testbed; ln -sfn /etc testbed; mv testbed gone
        ln -s /etc/passwd testbed/a.py; ln -s / testbed/src; ln /etc/passwd testbed/hard
        exit 0
    """
    done = await stage.plays(script)
    if done.harvest.problem:
        assert "was replaced by" in done.harvest.problem
    else:
        found = changes(stage, done.harvest.patch, tmp_path / "judge")
        assert {"D\t.gitignore", "T\ta.py", "D\tsrc/b.py"} <= set(found)
    assert b"root:" not in done.harvest.patch


@in_both
async def test_nothing_of_a_tree_runs_on_this_machine(stage: Stage, tmp_path: Path) -> None:
    # Both a name out here and one inside: whatever runs it, where, it is seen.
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
    done = await stage.plays(WORK + script)
    assert done.end.finish_reason == "success"
    assert done.harvest.problem == ""
    assert changes(stage, done.harvest.patch, tmp_path / "judge")[:2] == ["A\t.gitattributes", "M\ta.py"]
    assert not canary.exists()


@in_both_but_seldom_docker
async def test_extract_handles_pipes_devices_and_locked_folders(stage: Stage, tmp_path: Path) -> None:
    script = """
        mkfifo pipe src/pipe; mknod null c 1 3
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
        ln -s /dev/zero endless; ln -s /proc/self/mem memory; ln -s . loop
        truncate -s 300M sparse
        mkdir locked; echo in >locked/in; chmod 000 locked a.py
        exit 0
    """
    done = await stage.plays(WORK + script, limits=ExtractionLimits(file_bytes=10**6))
    found = changes(stage, done.harvest.patch, tmp_path / "judge")
    assert found == ["M\ta.py", "A\tendless", "A\tlocked/in", "A\tloop", "A\tmemory"]
    assert done.harvest.problem == "1 file ('sparse') (314,572,800 bytes) left out: too large for a patch"
    assert any("is a named pipe" in note for note in done.harvest.notes)


@in_both_but_seldom_docker
async def test_what_deletes_everything_has_deleted_everything(stage: Stage, tmp_path: Path) -> None:
    done = await stage.plays("rm -rf /* /testbed/.[a-z]* 2>/dev/null; exit 0")
    assert done.end.finish_reason in {"success", "execution_error"}
    assert changes(stage, done.harvest.patch, tmp_path / "judge") == [
        "D\t.gitignore",
        "D\ta.py",
        "D\tsrc/b.py",
    ]


@in_both_but_seldom_docker
async def test_extract_deep_tree_and_long_names_up_to_git_limits(stage: Stage, tmp_path: Path) -> None:
    script = """
        name=$(printf 'n%.0s' $(seq 250))
        for i in 1 2 3 4 5 6; do mkdir $name; cd $name; done; echo deep >$name
        cd /testbed; for i in $(seq 60); do mkdir d; cd d; done; echo deeper >file
    """
    done = await stage.plays(WORK + script)
    assert done.harvest.problem == ""
    assert len(changes(stage, done.harvest.patch, tmp_path / "judge")) == 3
