"""The journal: group commits, recovery from torn lines, one owner, and concurrent readers."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.core.files import MAX_LINE_BYTES, storage_error
from codetaste.core.jsonl import JsonlFile
from codetaste.errors import JournalError, RunBusy, SourceError, StorageFull
from codetaste.orchestration.journal.blobs import Blobs
from codetaste.orchestration.journal.journal import CommitGroup, Journal, open_journal
from codetaste.orchestration.journal.run_lock import lock_directory, lock_owner
from support.orchestration.journal_lines import read_journal

pytestmark = pytest.mark.anyio


async def write(directory: Path, *lines: dict[str, Any]) -> list[dict[str, Any]]:
    """Append lines and return the earlier ones."""
    found: list[dict[str, Any]] = []
    async with open_journal(directory, found.append) as journal:
        for line in lines:
            await journal.append(line)
    return found


def line(number: int) -> dict[str, Any]:
    return {"event": "test-note", "number": number, "text": "Grüße ∘ \udcff"}


async def test_appended_lines_are_read_in_order(tmp_path: Path) -> None:
    await write(tmp_path / "run", line(1), line(2))
    found = await write(tmp_path / "run", line(3))
    assert found[0]["event"] == "journal"
    assert found[1:] == [line(1), line(2)]
    assert [entry.get("number") for entry in read_journal(tmp_path / "run" / "journal.jsonl")] == [
        None,
        1,
        2,
        3,
    ]


async def test_journal_torn_at_any_byte_loses_only_the_unfinished_line(tmp_path: Path) -> None:
    await write(tmp_path, {"event": "a"}, {"event": "ü"}, {"event": "c"})
    path = tmp_path / "journal.jsonl"
    whole = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        complete = sum(end <= cut for end in ends)
        assert len(list(read_journal(path))) == complete
        found: list[dict[str, Any]] = []
        async with open_journal(tmp_path, found.append) as journal:
            assert len(found) == complete
            assert bool(journal.repaired) == (cut not in {0, *ends})
            await journal.append(line(4))
        assert list(read_journal(path))[-1] == line(4)


@pytest.mark.parametrize(
    "tail", [b'{"event": "no', b"\0\0\0\0\n", b"not json\n", b"\xff\xfe\n", b"[1]\n", b"{}\n"]
)
async def test_invalid_last_line_is_removed(tmp_path: Path, tail: bytes) -> None:
    await write(tmp_path, line(1))
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes() + tail)
    assert len(await write(tmp_path, line(2))) == 2
    assert list(read_journal(path))[1:] == [line(1), line(2)]


async def test_damaged_line_in_the_middle_is_an_error_with_its_number(tmp_path: Path) -> None:
    await write(tmp_path, line(1), line(2), line(3))
    path = tmp_path / "journal.jsonl"
    rows = path.read_bytes().splitlines(keepends=True)
    rows[2] = rows[2][:9] + b"\n"
    path.write_bytes(b"".join(rows))
    with pytest.raises(JournalError, match=r"journal\.jsonl, line 3: not a journal line"):
        await write(tmp_path)
    assert path.read_bytes() == b"".join(rows)


@pytest.mark.parametrize("version", [1, 99])
async def test_journal_of_another_format_is_refused_and_unchanged(tmp_path: Path, version: int) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(f'{{"event":"journal","format":{version}}}\n{{"event":"another kind"}}\n')
    before = path.read_bytes()
    message = rf"journal\.jsonl has journal format {version}, this codetaste reads and writes format 2; use "
    with pytest.raises(JournalError, match=message):
        await write(tmp_path)
    with pytest.raises(JournalError, match=message):
        list(read_journal(path))
    assert path.read_bytes() == before


async def test_other_file_named_like_the_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text('{"event":"login"}\n{"event":"logout"}\n')
    with pytest.raises(JournalError, match="does not start like a codetaste journal"):
        await write(tmp_path)


async def test_lock_error_names_the_owner(tmp_path: Path) -> None:
    program = (
        "import fcntl, os, sys\n"
        "from pathlib import Path\n"
        "from codetaste.orchestration.journal.run_lock import lock_directory\n"
        "lock_directory(Path(sys.argv[1])); print('locked', flush=True); sys.stdin.read()\n"
    )
    owner = subprocess.Popen(  # noqa: ASYNC220  # no other task runs
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        assert lock_owner(tmp_path).startswith(f"process {owner.pid} on ")
        with pytest.raises(RunBusy, match=rf"is in use by process {owner.pid} on "):
            await write(tmp_path)
        owner.kill()
    assert lock_owner(tmp_path) == lock_owner(tmp_path / "missing") == ""
    assert await write(tmp_path, line(1)) == []


async def test_pipe_in_place_of_the_lock_is_named_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    assert lock_owner(tmp_path) == ""
    with pytest.raises(JournalError, match="cannot be the run directory"):
        lock_directory(tmp_path)


async def test_same_process_cannot_open_a_run_twice(tmp_path: Path) -> None:
    async with open_journal(tmp_path, lambda _: None):
        with pytest.raises(RunBusy):
            await write(tmp_path)


async def test_concurrent_appends_share_few_fsyncs(tmp_path: Path) -> None:
    groups: list[CommitGroup] = []

    async with open_journal(tmp_path, lambda _: None) as journal:

        async def append(number: int) -> None:
            groups.append(journal.queue(line(number)))
            await groups[-1].wait_durable()

        async with anyio.create_task_group() as tasks:
            for number in range(1000):
                tasks.start_soon(append, number)
    assert len(set(groups)) <= 5
    assert len(list(read_journal(tmp_path / "journal.jsonl"))) == 1001


async def test_append_returns_after_its_line_is_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    async with open_journal(tmp_path, lambda _: None) as journal:

        async def check(number: int) -> None:
            await journal.append(line(number))
            assert number in {entry.get("number") for entry in read_journal(path)}

        async with anyio.create_task_group() as tasks:
            for number in range(30):
                tasks.start_soon(check, number)


async def test_deferrable_line_joins_next_commit_or_is_written_alone(tmp_path: Path) -> None:
    async with open_journal(tmp_path, lambda _: None) as journal:
        group = journal.queue(line(1), deferrable=True)
        assert journal.queue(line(2)) is group
        await group.wait_durable()
        alone = journal.queue(line(3), deferrable=True)
        assert alone is not group
        await alone.wait_durable()
        journal.queue(line(4), deferrable=True)
    assert [entry.get("number") for entry in read_journal(tmp_path / "journal.jsonl")] == [None, 1, 2, 3, 4]


async def test_cancelled_append_is_still_written(tmp_path: Path) -> None:
    with anyio.CancelScope() as scope:
        async with open_journal(tmp_path, lambda _: None) as journal:
            scope.cancel()
            await journal.append(line(1))
    assert list(read_journal(tmp_path / "journal.jsonl"))[1:] == [line(1)]


async def test_error_in_the_context_is_raised_unchanged(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with open_journal(tmp_path, lambda _: None):
            raise ZeroDivisionError


async def test_non_json_value_is_refused_and_the_journal_continues(tmp_path: Path) -> None:
    async with open_journal(tmp_path, lambda _: None) as journal:
        with pytest.raises(TypeError):
            await journal.append({"event": "x", "value": object()})  # type: ignore[dict-item]
        with pytest.raises(ValueError, match="JSON compliant"):
            await journal.append({"event": "x", "value": float("nan")})
        await journal.append(line(1))


async def test_failing_fsync_stops_the_journal_and_leaves_it_valid(tmp_path: Path) -> None:
    """A descriptor whose fsync fails simulates a failing disk."""
    await write(tmp_path, line(1))
    path = tmp_path / "journal.jsonl"
    size = path.stat().st_size
    reader, writer = os.pipe()  # a pipe takes the bytes and cannot be synced
    journal = Journal(path, writer, size, "")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(journal.run)
        for _ in range(2):
            with pytest.raises(JournalError, match="Invalid argument"):
                await journal.append(line(2))
        assert journal.failed.is_set()
        journal.close()
    os.close(reader)
    os.close(writer)
    assert list(read_journal(path))[1:] == [line(1)]


async def test_long_texts_are_stored_once_and_loaded_exactly(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    text = "long ∘ text \udcff\n" * 1000
    digests = set[str]()

    async def store() -> None:
        digests.add(await blobs.store(text))

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(store)
    (digest,) = digests
    files = [path for path in tmp_path.rglob("*") if path.is_file()]  # noqa: ASYNC240  # a tiny tree
    assert files == [blobs.path(digest)]
    assert blobs.path(digest).parent.name == digest[:2]
    assert await Blobs(tmp_path / "blobs").load(digest) == text


async def test_damaged_or_missing_text_is_an_error(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    digest = await blobs.store("text")
    blobs.path(digest).write_text("other")
    with pytest.raises(JournalError, match="damaged"):
        await blobs.load(digest)
    with pytest.raises(JournalError, match="is missing; restore it"):
        await blobs.load("ab" * 32)


@pytest.mark.parametrize("digest", ["", "../" * 21 + "a", "AB" * 32])
async def test_only_a_digest_names_a_stored_text(tmp_path: Path, digest: str) -> None:
    with pytest.raises(JournalError, match="is not the digest of a stored text"):
        await Blobs(tmp_path).load(digest)


async def test_uncreatable_run_directory_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match=r"directory: Not a directory; it must be readable and writable$"):
        await write(tmp_path / "file" / "run")


async def test_file_size_limit_is_reported_like_a_full_disk(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(StorageFull, match="File too large; check that disk and its limits, then repeat"):
            await Blobs(tmp_path).store("x" * 20_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []  # noqa: ASYNC240  # a tiny tree


def test_io_error_is_storage_full_only_for_the_journal(tmp_path: Path) -> None:
    failing = OSError(errno.EIO, os.strerror(errno.EIO))
    assert isinstance(storage_error(failing, tmp_path, JournalError), StorageFull)
    assert type(storage_error(failing, tmp_path, SourceError)) is SourceError


def test_deeply_nested_line_is_damaged(tmp_path: Path) -> None:
    deep = '{"event":"note","key":' + "[" * 100_000 + "]" * 100_000 + "}"
    header = '{"event":"journal","format":2,"t":1}'
    (tmp_path / "journal.jsonl").write_text(f'{header}\n{deep}\n{{"event":"drain"}}\n')
    with pytest.raises(JournalError, match="line 2: not a journal line"):
        list(read_journal(tmp_path / "journal.jsonl"))


def settled(**changed: object) -> str:
    return json.dumps({"event": "settled", "call": "a", "usd": "0.5", "tokens": 3} | changed)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (settled(usd="-1"), "usd"),
        (settled(usd="NaN"), "usd"),
        (settled(usd="Infinity"), "usd"),
        (settled(usd="1e20"), "usd"),
        (settled(usd="1_0"), "usd"),
        (settled(usd="1E-999999"), "usd"),
        (settled(usd=0.5), "usd"),
        (settled(tokens=-1), "tokens"),
        (settled(tokens=10**30), "tokens"),
        (settled(tokens=True), "tokens"),
        (settled(call=[]), "call"),
        ('{"event":"clocks","nodes":[[["a"],1e999,0]]}', "nodes.0.1"),
        ('{"event":"limits","limits":[1,null,null,null]}', "limits.0"),
        ('{"event":"limits","limits":["1",null,null,"x"]}', "limits.3"),
    ],
)
async def test_impossible_value_is_refused_with_file_and_line(line: str, key: str, tmp_path: Path) -> None:
    header = '{"event":"journal","format":2,"t":1}'
    (tmp_path / "journal.jsonl").write_text(f"{header}\n{settled()}\n{line}\n")
    with pytest.raises(
        JournalError, match=rf"journal\.jsonl, line 3: a damaged .* {re.escape(key)}: .*repair"
    ):
        async with open_journal(tmp_path, lambda _: None):
            pass


@pytest.mark.parametrize("content", [None, "", '{"event":"jou', "not a line\n"])
async def test_run_with_products_does_not_begin_its_budget_anew(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "journal.jsonl").write_text(content)
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "prediction.diff").touch()
    with pytest.raises(JournalError, match="first line is missing or damaged, but the run has outputs"):
        async with open_journal(tmp_path, lambda _: None):
            pass
    assert content is None or (tmp_path / "journal.jsonl").read_text() == content


async def test_run_with_products_whose_journal_lost_all_jobs_is_refused(tmp_path: Path) -> None:
    await write(tmp_path)
    header = (tmp_path / "journal.jsonl").read_text()
    assert [line["event"] for line in await write(tmp_path)] == ["journal"], "nothing is lost"
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "prediction.diff").touch()
    with pytest.raises(JournalError, match="no job has started in it, but the run has outputs"):
        await write(tmp_path)
    assert (tmp_path / "journal.jsonl").read_text() == header


async def test_run_that_ended_before_its_first_job_is_continued(tmp_path: Path) -> None:
    await write(tmp_path)
    (tmp_path / ".sandboxes").mkdir()
    (tmp_path / ".sandboxes" / "cacerts.jks").touch()
    assert [line["event"] for line in await write(tmp_path)] == ["journal"]


async def test_line_longer_than_any_that_is_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"event":"journal","format":2,"t":1}\n')
    os.truncate(path, 10 * MAX_LINE_BYTES)  # of zeros that take no space
    for read in (lambda: list(read_journal(path)), lambda: list(JsonlFile(path).read())):
        with pytest.raises(JournalError, match=r"journal\.jsonl, line 2: longer than .* bytes"):
            read()


@pytest.mark.parametrize("format_", ["true", '"2"', "2.0", "null"])
def test_format_that_is_no_number_is_refused(format_: str, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(f'{{"event":"journal","format":{format_},"t":1}}\n')
    with pytest.raises(JournalError, match="does not start like a codetaste journal"):
        list(read_journal(path))


async def test_journal_whose_lines_are_all_torn_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text(settled() * 10)
    with pytest.raises(JournalError, match=r"bytes follow, .*restore the journal"):
        async with open_journal(tmp_path, lambda _: None):
            pass
