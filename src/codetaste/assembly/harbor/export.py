"""Make Harbor tasks of a benchmark's instances, and write each as a folder."""

from __future__ import annotations

import gzip
import os
import re
import secrets
import tarfile
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.assembly.harbor.task import HarborTask, TaskFile, TestSuite, task_files
from codetaste.benchmark.layout import ENVIRONMENT_SCRIPTS, Track, scripts_folder
from codetaste.core.files import remove_tree, stale_folders, storage_error, sync_directory
from codetaste.environment.images.names import ImageStage, image_name
from codetaste.environment.record import read_record
from codetaste.environment.scripts import read_scripts
from codetaste.errors import ConfigError, JournalError
from codetaste.evaluation.pseudo_agents import golden_patch
from codetaste.evaluation.rule_set import read_rule_set
from codetaste.evaluation.test_runs.recorded import read_baseline
from codetaste.harness.testbed.build import ARCHIVE_FILE
from codetaste.harness.testbed.testbed import prepare_testbed
from codetaste.llm.prompts import load_prompt
from codetaste.sandbox.base import Privileges
from codetaste.source.checkout import checkout_trees
from codetaste.source.tree.store import Tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.source.checkout import Trees

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
"""What Harbor takes as the second part of a task's name."""
_PROMPT = "infer"
"""The prompt of a coding agent that works without a plan."""
_EXECUTABLE, _FILE = 0o755, 0o644
_ARCHIVE_END = b"\0" * 2 * tarfile.BLOCKSIZE


class ExportState(StrEnum):
    """What was done with an instance."""

    WRITTEN = "written"
    UNCHANGED = "unchanged"
    """The folder has the same task already."""
    LEFT_OUT = "left_out"


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What tasks are made of.

    Attributes:
        track: whose description is the task.
        image: an image that R is put into; "" for the runtime image of each instance.
        repository: the repository of the registry with the runtime images, "" for images of the machine.
        rules_only: score rules alone, so that no test scripts and no baseline are needed.
    """

    track: Track = Track.INSTRUCTED
    image: str = ""
    repository: str = ""
    rules_only: bool = False


async def make_task(
    benchmark: Benchmark, instance: Instance, options: ExportOptions, *, cache: Path, scratch: Path
) -> HarborTask:
    """Return the task of ``instance``.

    Args:
        benchmark: with its descriptions, rules and test scripts.
        instance: the instance.
        options: what tasks are made of.
        cache: the folder of trees.
        scratch: an existing folder, left unchanged.

    Raises:
        ConfigError: a description, rules, scripts or baseline are missing or invalid, or the id cannot be a
            name of Harbor's.
        RuleError: a rule file is malformed.
        SourceError: its trees cannot be checked out.
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    if ".." in instance.id or not _NAME.fullmatch(instance.id):
        raise ConfigError(f"{instance.id!r} cannot be the name of a task of Harbor")
    rules = await to_thread.run_sync(read_rule_set, benchmark, instance)
    if not (rules.positive or rules.negative):
        raise ConfigError("it has no rules")
    description = await to_thread.run_sync(benchmark.description, instance, options.track)
    tests = None if options.rules_only else await to_thread.run_sync(_read_suite, benchmark, instance)
    trees = await checkout_trees(benchmark.origin(instance), cache)
    return HarborTask(
        instance,
        options.track,
        load_prompt(_PROMPT).render(task=description.strip()),
        options.image or _runtime_image(instance, options.repository),
        await golden_patch(benchmark, instance, trees, scratch),
        rules,
        benchmark.ignore_text(),
        await _testbed(trees, cache) if options.image else None,
        tests,
    )


def _read_suite(benchmark: Benchmark, instance: Instance) -> TestSuite:
    folder = scripts_folder(benchmark.root, instance)
    if not folder.is_dir():
        raise ConfigError(
            f"it has no test scripts ({', '.join(ENVIRONMENT_SCRIPTS)}); --rules-only needs none"
        )
    thresholds = read_baseline(benchmark, instance).thresholds
    if thresholds is None:
        raise ConfigError("no test results of R and R∘X* are recorded; --rules-only needs none")
    record = read_record(benchmark.root, instance)
    details = record.details if record else None
    return TestSuite(
        read_scripts(folder),
        thresholds,
        setup_as_root=details is None or details.privileges is not Privileges.NONE,
        network=details is None or details.network.needed is not False,
    )


def _runtime_image(instance: Instance, repository: str) -> str:
    name = image_name(instance, ImageStage.RUNTIME)
    if not repository:
        return name
    from codetaste.environment.images.published import remote_name  # noqa: PLC0415 - loads an engine's client

    return remote_name(name, repository)


async def _testbed(trees: Trees, cache: Path) -> bytes:
    """Return R as a repository of one commit in a compressed archive, the same bytes every time."""
    testbed = await prepare_testbed(Tree(trees.base, trees.base_digest), cache)
    archive = testbed.folder / ARCHIVE_FILE
    return await to_thread.run_sync(lambda: gzip.compress(archive.read_bytes() + _ARCHIVE_END, mtime=0))


def write_task(task: HarborTask, into: Path, *, replace: bool) -> tuple[ExportState, tuple[str, ...]]:
    """Write a task to the folder of its instance in ``into``; blocking.

    The folder appears when it is complete.

    Returns:
        What was done, and a line for each file that differs from the one that is there.

    Raises:
        StorageFull: no space left.
        JournalError: it cannot be written.
    """
    folder, wanted = into / task.instance.id, task_files(task)
    conflicts: tuple[str, ...] = ()
    if folder.exists():
        conflicts = tuple(_differences(folder, wanted))
        if not conflicts:
            return ExportState.UNCHANGED, ()
        if not replace:
            return ExportState.LEFT_OUT, conflicts
    prefix = f".{task.instance.id}."
    for left in stale_folders(into, prefix):  # of a killed export
        remove_tree(left)
    staged = into / f"{prefix}{os.getpid()}-{secrets.token_hex(4)}"
    try:
        for name, file in wanted.items():
            path = staged / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content)
            path.chmod(_EXECUTABLE if file.executable else _FILE)
        remove_tree(folder)
        staged.rename(folder)
        sync_directory(into)
    except OSError as error:
        raise storage_error(error, folder, JournalError) from error
    finally:
        remove_tree(staged)
    return ExportState.WRITTEN, conflicts


def _differences(folder: Path, wanted: Mapping[str, TaskFile]) -> list[str]:
    """Return a line for each file of a folder that differs from the task's."""
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not path.is_dir()}
    found = [f"{there[name]}: it is no file of the task" for name in sorted(there.keys() - wanted.keys())]
    found += [f"{folder / name}: missing" for name in sorted(wanted.keys() - there.keys())]
    for name in sorted(wanted.keys() & there.keys()):
        path, file = there[name], wanted[name]
        same_mode = bool(path.stat().st_mode & 0o100) == file.executable
        if path.is_symlink() or not path.is_file() or not same_mode or path.read_bytes() != file.content:
            found.append(f"{path}: differs from the task's")
    return found
