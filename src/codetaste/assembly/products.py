"""The products of a run, by instance: what its folders in the published layout have of each.

A run writes what each flow makes to a folder of its own: ``describe/``, ``discover/MODEL/``,
``environment/``. A part of an instance, such as its rules, is taken whole from one folder: that of the flow
that makes such parts, else another of the run, else the benchmark that the run read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.benchmark.benchmark import Benchmark, open_benchmark
from codetaste.benchmark.layout import (
    BASELINES_FOLDER,
    EVENTS_FOLDER,
    IGNORE_FILE,
    INSTANCES_FILE,
    OUTPUTS_FOLDER,
    TRANSCRIPTS_FOLDER,
    Track,
    description_path,
    environment_folder,
    golden_path,
    rules_path,
)
from codetaste.benchmark.publish import with_absolute_origin
from codetaste.environment.record import read_record
from codetaste.errors import ConfigError
from codetaste.rules.registration import Direction

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from codetaste.benchmark.instance import Instance

_RUN_BENCHMARK = "the run's benchmark"
_OTHER_FOLDERS = frozenset({OUTPUTS_FOLDER, TRANSCRIPTS_FOLDER, EVENTS_FOLDER})
_LEFTOVERS = ("__pycache__",)
MAX_FILES = 200
"""At most so many files of one part of an instance."""


class Part(StrEnum):
    """A part of an instance, which is one folder of the published layout."""

    DESCRIPTIONS = "descriptions"
    RULES = "rules"
    GOLDEN_PATCH = "golden patch"
    BASELINE = "baseline"
    ENVIRONMENT = "environment"


_MAKERS = {
    Part.DESCRIPTIONS: "describe",
    Part.RULES: "discover",
    Part.BASELINE: "environment",
    Part.ENVIRONMENT: "environment",
}
"""The flow that makes a part, which is the first name of its folder in a run."""


@dataclass(frozen=True, slots=True)
class ProductFolder:
    """A folder of a run with products: its path in the run, and the rows of its table, none without one."""

    name: str
    root: Path
    instances: tuple[Instance, ...] = ()

    @property
    def is_product(self) -> bool:
        """Whether the run has made it."""
        return self.name != _RUN_BENCHMARK

    @property
    def maker(self) -> str:
        """The flow that wrote it."""
        return self.name.partition("/")[0] if self.is_product else ""

    @property
    def ignore_file(self) -> Path | None:
        """The ignore file of its benchmark, None without one."""
        path = self.root / IGNORE_FILE
        return path if path.is_file() else None


@dataclass(frozen=True, slots=True)
class PartFiles:
    """The files of a part, by their paths in a benchmark; ``source`` names the folder that they are from."""

    source: str
    files: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class InstanceProducts:
    """What a run has of an instance.

    Attributes:
        instance: its row, with an origin that does not depend on a benchmark's folder.
        parts: the files by part.
        notes: why a part that the run has is left out, a line each.
    """

    instance: Instance
    parts: Mapping[Part, PartFiles] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def files(self) -> dict[str, Path]:
        """All files, by their paths in a benchmark."""
        return {name: path for part in self.parts.values() for name, path in part.files.items()}


def part_folder(root: Path, instance: Instance, part: Part) -> Path:
    """Return the folder of a part of ``instance`` in the benchmark ``root``."""
    match part:
        case Part.DESCRIPTIONS:
            return description_path(root, instance, Track.INSTRUCTED).parent
        case Part.RULES:
            return rules_path(root, instance, Direction.ADDITIVE).parent
        case Part.GOLDEN_PATCH:
            return golden_path(root, instance).parent
        case Part.BASELINE:
            return root / BASELINES_FOLDER / instance.path
        case Part.ENVIRONMENT:
            return environment_folder(root, instance)


def find_product_folders(run: Path, benchmark: Benchmark | None) -> tuple[ProductFolder, ...]:
    """Return the folders of ``run`` in the published layout, then the ``benchmark`` that it read; blocking.

    Raises:
        ConfigError: the run has no products, or the table of a folder has errors.
    """
    found: list[ProductFolder] = []
    for folder in sorted(path for path in (*run.glob("*"), *run.glob("*/*")) if path.is_dir()):
        name = folder.relative_to(run).as_posix()
        if name.partition("/")[0] in _OTHER_FOLDERS:
            continue
        if (folder / INSTANCES_FILE).is_file():
            found.append(ProductFolder(name, folder, _absolute_rows(open_benchmark(folder))))
        elif any((folder / each).is_dir() for each in ("instance_images", "assets", BASELINES_FOLDER)):
            found.append(ProductFolder(name, folder))
    if not found:
        raise ConfigError(f"{run}: the run has made nothing that a benchmark can adopt")
    if benchmark is not None:
        found.append(ProductFolder(_RUN_BENCHMARK, benchmark.root, _absolute_rows(benchmark)))
    return tuple(found)


def collect_products(
    folders: Sequence[ProductFolder], rows: Sequence[Instance] = (), rules_of: str = ""
) -> tuple[InstanceProducts, ...]:
    """Return what the run has of each instance, in the order of its tables; blocking.

    Args:
        folders: of the run.
        rows: of another table, for instances that no table of the run has.
        rules_of: the model whose rules are taken, "" where no instance has rules of several.

    Raises:
        ConfigError: several models have rules of an instance and none is named, the named one has none, or a
            folder has a link or too many files.
    """
    models = [each.name.partition("/")[2] for each in folders if each.maker == _MAKERS[Part.RULES]]
    if rules_of and rules_of not in models:
        raise ConfigError(
            f"--rules-of: the run has rules of {', '.join(models) or 'no model'}, not {rules_of!r}"
        )
    known: dict[str, Instance] = {}
    for instance in (*(row for each in folders for row in each.instances), *rows):
        known.setdefault(instance.id, instance)
    products = [each for each in folders if each.is_product]
    return tuple(
        _collect(instance, folders, rules_of)
        for instance in known.values()
        if any(part_folder(each.root, instance, part).is_dir() for each in products for part in Part)
        or any(instance.id == row.id for each in products for row in each.instances)
    )


def _collect(instance: Instance, folders: Sequence[ProductFolder], rules_of: str) -> InstanceProducts:
    parts: dict[Part, PartFiles] = {}
    notes: list[str] = []
    for part in Part:
        having = [each for each in folders if _has_files(part_folder(each.root, instance, part))]
        having.sort(key=lambda each: (each.maker != _MAKERS.get(part), not each.is_product))
        if part is Part.RULES:
            having = _choose_model(instance, having, rules_of)
        if not having:
            continue
        chosen = having[0]
        if part is Part.ENVIRONMENT and (why := _unproven(chosen, instance)):
            notes.append(f"environment left out: {why}")
            continue
        parts[part] = PartFiles(
            chosen.name, dict(_files(chosen.root, part_folder(chosen.root, instance, part)))
        )
    return InstanceProducts(instance, parts, tuple(notes))


def _choose_model(instance: Instance, having: Sequence[ProductFolder], rules_of: str) -> list[ProductFolder]:
    """Return the folders that rules may be taken from."""
    by_model = [each for each in having if each.maker == _MAKERS[Part.RULES]]
    if rules_of:
        return [each for each in having if each not in by_model or each.name.partition("/")[2] == rules_of]
    if len(by_model) > 1:
        models = ", ".join(each.name.partition("/")[2] for each in by_model)
        raise ConfigError(f"several models have rules of {instance.id}: name one with --rules-of: {models}")
    return list(having)


def _unproven(folder: ProductFolder, instance: Instance) -> str:
    """Return why the environment of an instance is no proven one, "" if it is."""
    try:
        record = read_record(folder.root, instance)
    except ConfigError as error:
        return str(error)
    if record is None:
        return "it has scripts, but no metadata"
    if record.metadata.has_execution_environment:
        return ""
    return record.metadata.reason_no_execution_environment or "it is not proven"


def _absolute_rows(benchmark: Benchmark) -> tuple[Instance, ...]:
    return tuple(with_absolute_origin(instance, benchmark) for instance in benchmark.instances)


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and next(_names(folder), None) is not None


def _files(root: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    for number, path in enumerate(_names(folder)):
        if number == MAX_FILES:
            raise ConfigError(f"{folder}: more than {MAX_FILES} files")
        if path.is_symlink() or not path.is_file():
            raise ConfigError(f"{path}: not a regular file; a benchmark may have no other")
        yield path.relative_to(root).as_posix(), path


def _names(folder: Path) -> Iterator[Path]:
    """Yield what is in a folder and is no folder; temporary files of a killed writer are left out."""
    for path in sorted(folder.rglob("*")):
        is_leftover = path.name.endswith(".tmp") or any(name in path.parts for name in _LEFTOVERS)
        if not is_leftover and (path.is_symlink() or not path.is_dir()):
            yield path


def with_part(products: InstanceProducts, part: Part, files: PartFiles) -> InstanceProducts:
    """Return ``products`` with another part."""
    return replace(products, parts={**products.parts, part: files})


def find_unlisted(folders: Sequence[ProductFolder], products: Sequence[InstanceProducts]) -> tuple[str, ...]:
    """Return ``owner/repo/hash8`` of the environments of the run that no table has a row for; blocking."""
    listed = {each.instance.path for each in products}
    found = {
        path.relative_to(each.root / "instance_images").as_posix()
        for each in folders
        if each.is_product
        for path in each.root.glob("instance_images/*/*/*")
    }
    return tuple(sorted(found - listed))


def with_note(products: InstanceProducts, note: str) -> InstanceProducts:
    """Return ``products`` with another note."""
    return replace(products, notes=(*products.notes, note))
