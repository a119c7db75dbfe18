"""Make instances of the refactorings of one commit: published fields, and what surrounds their methods."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.files import remove_tree
from codetaste.errors import JavaError, JavaOutcome, SourceError
from codetaste.java.jdt.model import MethodContext, MethodTarget, TargetOutcome
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.enrich.places import find_places
from codetaste.swe_refactor.enrich.published import find_method, published_fields
from codetaste.swe_refactor.enrich.sources import export_java_files, read_changed_sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.java.jdt.model import EnrichedTree, ParsedSources, ProjectStructure
    from codetaste.java.jdt.service import JdtService
    from codetaste.refactorings.model import Refactoring
    from codetaste.source.repository import Repository
    from codetaste.swe_refactor.enrich.sources import ChangedSources

ENRICHED = "enriched"
UNUSABLE = "unusable_detection"
"""The detection names no method of a named class in the changed files."""
JAVA_PREFIX = "jdt_"
"""Before the outcomes of errors of Eclipse JDT: "jdt_timeout", "jdt_memory", "jdt_crash", "jdt_failed"."""


@dataclass(frozen=True, slots=True)
class EnrichedRefactoring:
    """A refactoring after step 3.

    Attributes:
        refactoring: the detection.
        outcome: "enriched", or why not: "unusable_detection", an outcome of JDT's look-up of the method
            ("ambiguous", "unparsable", …), or "jdt_timeout" and the like.
        message: what is wrong; "" if it is enriched.
        instance: the instance, without the fields of the verification; None if it is not enriched.
    """

    refactoring: Refactoring
    outcome: str
    message: str = ""
    instance: RefactoringInstance | None = None


async def enrich_commit(
    jdt: JdtService,
    repository: Repository,
    commit: str,
    refactorings: Sequence[Refactoring],
    *,
    scratch: Path | None = None,
) -> list[EnrichedRefactoring]:
    """Make an instance of each refactoring that was detected in ``commit``, in their order.

    The tree of the commit's first parent is indexed once for all of them; meanwhile it is in ``scratch``, by
    default in the folder for temporary files.

    Raises:
        JavaError: no JVM starts, which is no matter of the commit.
        SourceError: the commit or its parent cannot be read.
        StorageFull: no space left.
    """
    changed = await read_changed_sources(repository, commit)
    try:
        parsed = await jdt.parse(changed.before)
        targets = [_target(each, parsed) for each in refactorings]
        tree = await _ask(jdt, repository, changed.parent, targets, scratch)
    except JavaError as error:
        if error.outcome is JavaOutcome.NO_START:
            raise
        return [EnrichedRefactoring(each, JAVA_PREFIX + error.outcome, str(error)) for each in refactorings]
    contexts = iter(tree.targets)
    return [
        EnrichedRefactoring(each, UNUSABLE, target)
        if isinstance(target, str)
        else _build(each, changed, parsed, tree.structure, next(contexts))
        for each, target in zip(refactorings, targets, strict=True)
    ]


async def _ask(
    jdt: JdtService,
    repository: Repository,
    commit: str,
    targets: Sequence[MethodTarget | str],
    scratch: Path | None,
) -> EnrichedTree:
    """Return what JDT says of those targets that are methods, in the tree of ``commit``."""
    folder = Path(
        await to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="codetaste-sources-", dir=scratch))
    )
    try:
        await export_java_files(repository, commit, folder / "tree")
        return await jdt.enrich(folder / "tree", [each for each in targets if isinstance(each, MethodTarget)])
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(remove_tree, folder)


def _target(refactoring: Refactoring, parsed: ParsedSources) -> MethodTarget | str:
    """Return the method about which JDT is asked, or why there is none."""
    try:
        place = find_places(refactoring).target
        owner, method = find_method(parsed, place)
    except SourceError as error:
        return str(error)
    return MethodTarget(place.path, place.start_line, place.end_line, method.name, owner.name)


def _build(
    refactoring: Refactoring,
    changed: ChangedSources,
    parsed: ParsedSources,
    structure: ProjectStructure,
    context: MethodContext,
) -> EnrichedRefactoring:
    if context.outcome is not TargetOutcome.FOUND:
        return EnrichedRefactoring(refactoring, context.outcome.value, context.message or "")
    try:
        fields = published_fields(
            refactoring, find_places(refactoring), changed, parsed, frozenset(structure.java_files)
        )
    except SourceError as error:
        return EnrichedRefactoring(refactoring, UNUSABLE, str(error))
    instance = RefactoringInstance.from_document(fields).with_context(context, structure)
    return EnrichedRefactoring(refactoring, ENRICHED, instance=instance)
