"""``EnvironmentRecord``: what is known of an instance's environment, in two files of its folder.

``instance_metadata.json`` has the published keys. ``environment.json`` beside it has what codetaste knows in
addition; published environments lack it. Unknown keys of both are kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from codetaste.benchmark.layout import (
    ENVIRONMENT_FILE,
    INSTANCE_METADATA_FILE,
    environment_folder,
    scripts_folder,
)
from codetaste.core.files import read_text_file, write_atomically
from codetaste.core.section import validation_messages
from codetaste.core.units import Usd
from codetaste.environment.levels import Level
from codetaste.errors import ConfigError
from codetaste.sandbox.base import Privileges

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance

FORMAT = 1
"""Of ``environment.json``; increased when an earlier codetaste would misread it."""
_MAX_BYTES = 4 * 1024**2
_MAX_TESTS = 10**9
_Count = Annotated[int, Field(ge=0, le=_MAX_TESTS)]


class _Model(BaseModel):
    # Infinite values are refused in keys that are known, and stay what they are in others.
    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False, ser_json_inf_nan="constants")


class RecordedMetrics(_Model):
    """Counts of one test run as published; a crashed run has -1 failed tests and an ``error``."""

    passed: _Count
    failed: Annotated[int, Field(ge=-1, le=_MAX_TESTS)]
    skipped: _Count = 0
    total: _Count
    error: str | None = None


class InstanceMetadata(_Model):
    """The content of ``instance_metadata.json``: the published keys, in their order."""

    owner: str
    repo: str
    base_hash: str
    golden_hash: str
    golden_metrics: RecordedMetrics | None = None
    base_metrics: RecordedMetrics | None = None
    setup_image: str | None = None
    runtime_image: str | None = None
    has_execution_environment: bool | None = None
    reason_no_execution_environment: str = ""


class ImageIdentity(_Model):
    """An image: its name, its id in the engine that made it, and the content key that it was made for."""

    name: str
    id: str = ""
    key: str = ""


class NetworkUse(_Model):
    """Whether the tests need the network (None: not tried without), and the hosts that were asked for."""

    needed: bool | None = None
    hosts: tuple[str, ...] = ()


class GateRecord(_Model):
    """The result of one gate; ``message`` says why it failed, or what was measured."""

    name: str
    passed: bool
    message: str = ""


class RunSide(StrEnum):
    """The tree on which tests ran."""

    BASE = "base"
    """R"""
    GOLDEN = "golden"
    """R∘X*"""


class RecordedRun(_Model):
    """One test run; times in seconds. Without a result ``counts`` is None, and ``problem`` says why."""

    side: RunSide
    counts: RecordedMetrics | None = None
    problem: str = ""
    exit_code: int | None = None
    setup_s: float = 0.0
    duration_s: float = 0.0
    network: bool = False
    """Whether the network could be reached."""


class Builder(StrEnum):
    """Where the scripts come from."""

    AGENT = "agent"
    """A setup agent."""
    NEIGHBOUR = "neighbour"
    """The environment of another commit of the repository."""
    IMPORT = "import"
    """They were there, as published."""


class EnvironmentDetails(_Model):
    """The content of ``environment.json``. Costs in US dollars, None if unknown; times in seconds.

    Attributes:
        format: ``FORMAT`` of the codetaste that wrote it.
        level: what was proven.
        builder: where the scripts come from; ``built_by`` is the id of the agent, or of the neighbour.
        privileges: what the scripts need.
        network: whether the tests need it, and what was asked for.
        base_image: the image that the setup began with.
        setup_image: what the setup left.
        runtime_image: where trials and tests run.
        scripts: digest of the scripts that were proven.
        dependencies: digest of what R depends on (``dependencies_digest``).
        gates: the results of the last attempt, in their order.
        runs: all test runs of the last attempt.
        cost_usd: of all attempts.
        attempts: rounds of the setup agent, or neighbours that were tried.
        duration_s: of all attempts.
        layer_bytes: size of the writable layer of the setup.
    """

    format: int = FORMAT
    level: Level = Level.NONE
    builder: Builder = Builder.IMPORT
    built_by: str = ""
    privileges: Privileges = Privileges.SYSTEM
    network: NetworkUse = NetworkUse()
    base_image: ImageIdentity | None = None
    setup_image: ImageIdentity | None = None
    runtime_image: ImageIdentity | None = None
    scripts: str = ""
    dependencies: str = ""
    gates: tuple[GateRecord, ...] = ()
    runs: tuple[RecordedRun, ...] = ()
    cost_usd: Usd | None = None
    attempts: _Count = 0
    duration_s: Annotated[float, Field(ge=0)] = 0.0
    layer_bytes: Annotated[int, Field(ge=0)] | None = None


@dataclass(frozen=True, slots=True)
class EnvironmentRecord:
    """Both files; ``details`` is None where only the published one is there."""

    metadata: InstanceMetadata
    details: EnvironmentDetails | None = None

    @property
    def level(self) -> Level:
        """The level that is recorded. A published environment has passed the published gates."""
        if self.details is not None:
            return self.details.level
        return Level.GATES_PASS if self.metadata.has_execution_environment else Level.NONE


def new_metadata(instance: Instance, **published: Any) -> InstanceMetadata:  # noqa: ANN401 - fields
    """Return the metadata of ``instance`` with these published keys."""
    return InstanceMetadata(
        owner=instance.owner,
        repo=instance.repo,
        base_hash=instance.commit_hash,
        golden_hash=instance.golden_commit_hash,
        **published,
    )


def names_environment(benchmark: Benchmark, instance: Instance) -> bool:
    """Whether the benchmark has scripts for the instance, or names its runtime image."""
    if scripts_folder(benchmark.root, instance).is_dir():
        return True
    try:
        metadata = benchmark.metadata(instance) or {}
    except ConfigError:
        return False  # the job that needs it reports why
    return bool(metadata.get("has_execution_environment") and metadata.get("runtime_image"))


def read_record(root: Path, instance: Instance) -> EnvironmentRecord | None:
    """Read what the benchmark ``root`` knows of the environment of ``instance``; None if nothing; blocking.

    Raises:
        ConfigError: a file is damaged, made by a newer codetaste, or is about another instance; one line for
            each problem.
    """
    folder = environment_folder(root, instance)
    path = folder / INSTANCE_METADATA_FILE
    metadata = _read(path, InstanceMetadata)
    if metadata is None:
        return None  # environment.json is written first: alone it is the rest of a killed write
    of = f"{metadata.owner}/{metadata.repo}@{metadata.base_hash}"
    if of.lower() != f"{instance.owner}/{instance.repo}@{instance.commit_hash}".lower():
        raise ConfigError(f"{path}: it is about {of}, not {instance.id}; restore the file")
    return EnvironmentRecord(metadata, _read(folder / ENVIRONMENT_FILE, EnvironmentDetails))


def read_records(root: Path) -> Iterator[EnvironmentRecord]:
    """Read all environments below ``root`` that have details, in the order of their paths; blocking.

    Raises:
        ConfigError: a file is damaged, or made by a newer codetaste.
    """
    for path in sorted(root.glob(f"instance_images/*/*/*/{INSTANCE_METADATA_FILE}")):
        metadata, details = (
            _read(path, InstanceMetadata),
            _read(path.parent / ENVIRONMENT_FILE, EnvironmentDetails),
        )
        if metadata is not None and details is not None:
            yield EnvironmentRecord(metadata, details)


def write_record(root: Path, instance: Instance, record: EnvironmentRecord) -> None:
    """Write the record of ``instance`` to the folder ``root`` in the published layout; blocking.

    Raises:
        StorageFull: no space left.
        JournalError: it cannot be written.
    """
    folder = environment_folder(root, instance)
    if record.details is not None:
        write_atomically(folder / ENVIRONMENT_FILE, f"{_to_json(record.details)}\n")
    else:
        (folder / ENVIRONMENT_FILE).unlink(missing_ok=True)
    # As published: without a line end.
    write_atomically(folder / INSTANCE_METADATA_FILE, _to_json(record.metadata))


_AnyModel = TypeVar("_AnyModel", bound=_Model)


def _read(path: Path, model: type[_AnyModel]) -> _AnyModel | None:
    try:
        raw = json.loads(read_text_file(path, _MAX_BYTES))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not JSON: {error}; restore the file") from None
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: expected a JSON object; restore the file")
    written = raw.get("format", FORMAT)
    if model is EnvironmentDetails and isinstance(written, int | float) and written > FORMAT:
        raise ConfigError(f"{path}: format {written} is of a newer codetaste; update this one")
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(*(f"{path}: {line}" for line in validation_messages(error, raw, model))) from None


def _to_json(model: _Model) -> str:
    return json.dumps(model.model_dump(mode="json"), indent=4)
