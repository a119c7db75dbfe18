"""Bad input gives one error that names the cause; other jobs continue, and finished work is reused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.flows import discovery_models, tiny_benchmark
from support.flows.tiny_benchmark import Bench, CommandResult, Row, Workspace, make_workspace


def tool_results(workspace: Workspace, direction: str = "additive") -> list[str]:
    """The results of the tool calls of a pass, in order."""
    (path,) = (workspace.out / "transcripts").rglob(f"{direction}.jsonl")
    messages = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return [
        block["content"]
        for message in messages
        if message["role"] == "user"
        for block in message["content"]
        if "content" in block
    ]


@pytest.mark.heavy
def test_register_bad_rule_reports_fault_and_good_rule_is_accepted(
    tmp_path: Path, alpha: tiny_benchmark.TinyBenchmark
) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "bad_yaml"})
    result = workspace.run("--json", "--only", "*/additive")
    assert result.code == 0
    (job,) = result.json["jobs"]
    assert (job["status"], job["value"]["rules"]) == ("done", 1)
    replies = tool_results(workspace)
    assert len(replies) == len(discovery_models.BAD_TEXTS) + 2
    hints = [
        *("line 3", "must be a mapping", "must be a mapping", "nested too deeply", "twice", "not allowed"),
        *("no rules", "cobol", "klingon", "pattern", "expected a list", "must be 1 to 128"),
    ]
    for hint, answer in zip(hints, replies[: len(hints)], strict=True):
        assert hint in answer, (hint, answer)
        assert len(answer) < 25_000
    assert not Path("/tmp/owned").exists()
    assert not list(tmp_path.parent.rglob("escape*"))


@pytest.mark.heavy
def test_hanging_rule_is_named_and_other_rules_are_registered(tmp_path: Path, tools: None) -> None:
    bench = Bench(tmp_path)
    bench.add(base={**tiny_benchmark.BASE, "slow.py": discovery_models.SLOW_FILE})
    workspace = make_workspace(
        tmp_path, bench, tmp_path / "cache", {"m": "hanging"}, more='[rules]\nscan_timeout = "15s"'
    )
    result = workspace.run("--json", "--only", "*/additive")
    assert result.code == 0, result.err
    (job,) = result.json["jobs"]
    assert job["value"]["rules"] == 1
    reply = tool_results(workspace)[0]
    assert "hangs" in reply
    assert "time" in reply
    ((_, text),) = workspace.rules().items()
    assert b"calls-new" in text
    assert b"hangs" not in text


@pytest.fixture(scope="module")
def faulty_run(
    tmp_path_factory: pytest.TempPathFactory, tools: None
) -> tuple[Workspace, CommandResult, dict[str, Row]]:
    """A run on instances without available sources, a good instance, and one with unusual files."""
    folder = tmp_path_factory.mktemp("faulty")
    bench = Bench(folder)
    rows = {"good": bench.add()}
    row = bench.add("no-commit")
    bench.rows.remove(row)
    rows["no-commit"] = bench.enter(Row("no-commit", "1" * 40, "2" * 40))
    whole = bench.add("shallow")
    clone = bench.repos / "tiny" / "shallow"
    tiny_benchmark.git(
        clone, "clone", "--quiet", "--depth", "1", f"file://{clone}", str(clone.with_name("once"))
    )
    shutil.rmtree(clone)
    clone.with_name("once").rename(clone)
    rows["shallow"] = whole
    bench.rows.append(Row("no-repository", "3" * 40, "4" * 40))
    rows["no-repository"] = bench.enter(bench.rows.pop())
    (bench.repos / "tiny" / "no-repository").mkdir()

    def add_odd_files(clone: Path) -> None:
        (clone / "loop").symlink_to("loop")
        (clone / "deep").mkdir()
        (clone / "deep" / "up").symlink_to("../deep")
        (clone / "out").symlink_to("/etc/shadow")
        (clone / "out_dir").symlink_to("../../../../../..")
        Path(os.fsdecode(os.fsencode(clone) + b"/caf\xe9.py")).write_text("print(fetch_old('latin'))\n")
        (clone / "new\nline \x1b[31m.py").write_text("print(fetch_old('line'))\n")
        (clone / "nul.py").write_bytes(b"x = '\x00'\nfetch_old(1)\n")
        with (clone / "big.py").open("wb") as file:
            file.seek(100 * 1024**2)
            file.write(b"\nfetch_old('big')\n")

    rows["odd"] = bench.add("odd", between=add_odd_files)
    workspace = make_workspace(folder, bench, folder / "cache", {"m": "quick"}, run="budget_usd = 20.0")
    return workspace, workspace.run("--json"), rows


@pytest.mark.heavy
def test_sources_unavailable_each_give_one_error_and_rest_runs(
    faulty_run: tuple[Workspace, CommandResult, dict[str, Row]],
) -> None:
    _, result, rows = faulty_run
    assert result.code == 1
    jobs = result.jobs
    for name, expected in (("no-commit", "1111111"), ("shallow", "shallow"), ("no-repository", "repository")):
        error = jobs[f"sources/{rows[name].id}"]["error"]
        assert jobs[f"sources/{rows[name].id}"]["cause"] == "source"
        assert expected in error, error
        assert "\n" not in error
        for direction in ("additive", "reductive"):
            job = jobs[f"discover/m/{rows[name].id}/{direction}"]
            assert (job["status"], job["cause"]) == ("skipped", "need")
    for name in ("good", "odd"):
        for direction in ("additive", "reductive"):
            assert jobs[f"discover/m/{rows[name].id}/{direction}"]["status"] == "done"


@pytest.mark.heavy
def test_patch_with_odd_names_links_and_huge_file_counts_correctly(
    faulty_run: tuple[Workspace, CommandResult, dict[str, Row]],
) -> None:
    """Matches in files with unprintable or non-UTF-8 names count; a 100 MB file is skipped."""
    workspace, result, rows = faulty_run
    assert result.jobs[f"discover/m/{rows['odd'].id}/reductive"]["value"]["rules"] >= 0
    text = next(
        text for path, text in workspace.rules().items() if "odd" in path and path.endswith("negative.yml")
    )
    # R∘X* has the same files, so the rule matches on both sides and is rejected.
    assert b"calls-old" not in text
    (path,) = (workspace.out / "transcripts").rglob(f"{rows['odd'].id}/reductive.jsonl")
    transcript = path.read_text()
    assert "calls-old: rejected (6 matches in the base code, 3 matches in the refactored code)" in transcript
    assert "\\u001b[31m" not in result.out


@pytest.mark.heavy
def test_same_command_retries_only_failed_jobs(
    faulty_run: tuple[Workspace, CommandResult, dict[str, Row]],
) -> None:
    workspace, _, rows = faulty_run
    again = workspace.run("--json")
    assert again.code == 1
    resumed = {key for key, job in again.jobs.items() if job["resumed"]}
    assert resumed == {
        f"discover/m/{rows[name].id}/{direction}"
        for name in ("good", "odd")
        for direction in ("additive", "reductive")
    }
    tiny_benchmark.assert_no_call_billed_twice(workspace.ledger("m"))


@pytest.mark.heavy
def test_missing_descriptions_are_all_reported_before_any_call(tmp_path: Path, tools: None) -> None:
    bench = Bench(tmp_path)
    bench.add()
    for name in ("one", "two"):
        row = bench.add(name)
        shutil.rmtree(bench.root / "assets/descriptions" / row.path)
    workspace = make_workspace(tmp_path, bench, tmp_path / "cache", {"m": "quick"}, run="budget_usd = 20.0")
    result = workspace.run()
    lines = result.err.splitlines()
    assert result.code == 2
    assert len(lines) == 2
    assert not workspace.out.exists()
    for name in ("one", "two"):
        assert any(f"tiny/{name}/" in line and "description" in line for line in lines)
    assert workspace.run("--set", 'benchmark.instances=["tiny__alpha-*"]').code == 0


@pytest.fixture
def own_mounts(require: Callable[..., None]) -> list[str]:
    command = ["unshare", "--mount", "--map-root-user"]
    mount = subprocess.run([*command, "mount", "-t", "tmpfs", "t", "/mnt"], capture_output=True, check=False)
    require("unshare", ok=mount.returncode == 0, reason=f"cannot mount a tmpfs: {mount.stderr.decode()}")
    return command


FULL = """
set -eu
mount -t tmpfs -o size="$1" tmpfs runs
shift
status=0; "$@" || status=$?
mkdir -p copy; rm -rf copy/*; cp -a runs/. copy/
exit $status
"""


@pytest.mark.parametrize(
    "size",
    [*(pytest.param(size, marks=pytest.mark.heavy) for size in ("4k", "16k", "40k")), "72k"],
)
def test_full_disk_is_one_error_and_finished_work_is_reused(
    tmp_path: Path,
    alpha: tiny_benchmark.TinyBenchmark,
    uninterrupted_run: tuple[Workspace, CommandResult],
    own_mounts: list[str],
    size: str,
) -> None:
    uninterrupted, _ = uninterrupted_run
    workspace = alpha.make_workspace(tmp_path, {"m": "slowly"})
    (tmp_path / "runs").mkdir()
    full = workspace.run(before=[*own_mounts, "sh", "-c", FULL, "sh", size])
    assert full.code == 1, full.err
    assert "no space left on" in (full.err + full.out).lower()
    shutil.rmtree(tmp_path / "runs")
    (tmp_path / "copy").rename(tmp_path / "runs")
    billed = len(workspace.ledger("m"))
    result = workspace.run("--json")
    assert result.code == 0, result.err
    assert workspace.rules() == uninterrupted.rules()
    assert len(workspace.ledger("m")) >= billed
    tiny_benchmark.assert_no_call_billed_twice(workspace.ledger("m"))


def test_unwritable_run_directory_is_one_line(tmp_path: Path, alpha: tiny_benchmark.TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick"})
    (tmp_path / "runs").write_text("a file instead of a folder")
    result = workspace.run()
    assert result.code == 1
    assert "runs" in result.err.splitlines()[-1]
    assert result.err.splitlines()[-1].startswith("codetaste: ")


@pytest.mark.parametrize(
    ("version", "inner"), [(1, ""), pytest.param(99, "outputs/open/direct", marks=pytest.mark.heavy)]
)
def test_journal_of_another_format_is_refused_by_every_command(
    tmp_path: Path, alpha: tiny_benchmark.TinyBenchmark, version: int, inner: str
) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick"})
    (workspace.out / inner).mkdir(parents=True)
    text = f'{{"event": "journal", "format": {version}, "t": 1}}\n{{"event": "obeyed", "limits": {{}}}}\n'
    (workspace.out / "journal.jsonl").write_text(text)
    run = str(workspace.out)
    commands = (["status", run], ["limit", run, "--jobs", "2"], ["settle", run], ["report", run])
    for result in (
        workspace.run(),
        workspace.run("--dry-run"),
        *(workspace.cli(*words) for words in (*commands, ["import", run, "--name", "x"])),
    ):
        assert result.code == 1
        (line,) = [line for line in result.err.splitlines() if line.startswith("codetaste: ")]
        assert f"journal.jsonl has journal format {version}, this codetaste reads and writes format 2" in line
        assert "use the version of codetaste that made the run, or start a new run" in line
    assert (workspace.out / "journal.jsonl").read_text() == text


def benchmark_faults() -> dict[str, tuple[Callable[[Bench], Any], str]]:
    def table(change: Callable[[str], str]) -> Callable[[Bench], Any]:
        return lambda bench: (bench.root / "instances.csv").write_text(
            change((bench.root / "instances.csv").read_text())
        )

    return {
        "no table": (lambda bench: (bench.root / "instances.csv").unlink(), "instances.csv"),
        "no column": (
            table(lambda text: text.replace("golden_commit_hash", "golden_hash")),
            "golden_commit_hash",
        ),
        "language": (table(lambda text: text.replace("python", "pythn")), "python"),
        "traversal": (table(lambda text: text.replace("tiny,", "../..,")), "owner"),
        "binary": (lambda bench: (bench.root / "instances.csv").write_bytes(b"\xff\xfe\x00"), "UTF-8"),
        "empty": (table(lambda _: ""), "empty"),
        "no instance": (table(lambda text: text.splitlines()[0] + "\n"), "no instance"),
        "ignore file": (
            lambda bench: (bench.root / "assets/default.semgrepignore").write_bytes(b"\xff\xfe"),
            "UTF-8",
        ),
    }


@pytest.mark.parametrize("fault", list(benchmark_faults()))
def test_damaged_benchmark_error_names_file(tmp_path: Path, tools: None, fault: str) -> None:
    bench = Bench(tmp_path)
    bench.add()
    workspace = make_workspace(tmp_path, bench, tmp_path / "cache", {"m": "quick"})
    spoil, expected = benchmark_faults()[fault]
    spoil(bench)
    result = workspace.run()
    assert result.code == 2
    assert result.out == ""
    assert expected in result.err
    assert all(line.startswith("codetaste: ") for line in result.err.splitlines())


@pytest.mark.heavy
def test_cache_unwritable_warns_once_and_run_continues(
    tmp_path: Path, alpha: tiny_benchmark.TinyBenchmark
) -> None:
    """Even root can create no folder below a file."""
    (tmp_path / "file").write_text("")
    (tmp_path / "t").mkdir()
    workspace = make_workspace(tmp_path, alpha.bench, tmp_path / "file", {"m": "quick"})
    workspace.env["TMPDIR"] = str(tmp_path / "t")
    result = workspace.run("--json")
    assert result.code == 0, result.err
    assert result.err.count(str(tmp_path / "file")) == 1
    assert f"{tmp_path / 't'}/codetaste-{os.getuid()} is used instead" in result.err
    product = workspace.out / "discover" / "m"
    check = workspace.cli("rules", "check", "--benchmark", str(product), "--repos", str(alpha.bench.repos))
    assert check.code == 0, check.err
    assert check.err.count(str(tmp_path / "file")) == 1
