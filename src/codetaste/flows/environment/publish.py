"""Write the environments of a run to a folder in the published layout, ``runs/NAME/environment``."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.layout import environment_folder, scripts_folder
from codetaste.environment.images.names import ImageStage, image_name
from codetaste.environment.images.runtime import RuntimeEnvironment
from codetaste.environment.levels import Level
from codetaste.environment.record import (
    Builder,
    EnvironmentDetails,
    EnvironmentRecord,
    GateRecord,
    ImageIdentity,
    NetworkUse,
    RecordedMetrics,
    RecordedRun,
    RunSide,
    new_metadata,
    write_record,
)
from codetaste.evaluation.test_runs.gates import Gate
from codetaste.evaluation.test_runs.recorded import parse_test_counts, write_baseline
from codetaste.flows.environment.result import load_scripts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from codetaste.environment.scripts import EnvironmentScripts
    from codetaste.flows.environment.context import EnvironmentContext
    from codetaste.flows.environment.plan import EnvironmentTask
    from codetaste.flows.environment.result import EnvironmentResult

ENVIRONMENTS_FOLDER = "environment"
"""The folder of a run with its environments."""


def environments_root(context: EnvironmentContext) -> Path:
    """Return the folder of the run with its environments."""
    return context.out / ENVIRONMENTS_FOLDER


async def publish_environment(
    task: EnvironmentTask,
    result: EnvironmentResult | None,
    runtime: Any,  # noqa: ANN401 - JSON
    context: EnvironmentContext,
    load_text: Callable[[str], Awaitable[str]],
) -> Path | None:
    """Write scripts, metadata and test runs of an environment, and return its folder; None without any.

    ``runtime`` is the value of the job that made the runtime image, None without one.

    Raises:
        JournalError: a text cannot be read, or a file not be written; StorageFull is one of these.
    """
    if result is None:
        return None
    scripts = await load_scripts(result.scripts, load_text) if result.scripts else None
    image = None if runtime is None else RuntimeEnvironment.from_json(runtime)
    record = _record(task, result, image, context)
    if result.proven:
        golden, null = (
            [parse_test_counts(run["counts"]) for run in result.runs if run["side"] == side]
            for side in (RunSide.GOLDEN, RunSide.BASE)
        )
        await to_thread.run_sync(write_baseline, environments_root(context), task.instance, golden, null)
    return await to_thread.run_sync(write_environment, environments_root(context), task, record, scripts)


def write_environment(
    root: Path, task: EnvironmentTask, record: EnvironmentRecord, scripts: EnvironmentScripts | None
) -> Path:
    """Write an environment below ``root`` in the published layout, and return its folder; blocking.

    Raises:
        JournalError: a file cannot be written; StorageFull is one of these.
    """
    if scripts is not None:
        scripts.write(scripts_folder(root, task.instance))
    write_record(root, task.instance, record)
    return environment_folder(root, task.instance)


def _record(
    task: EnvironmentTask,
    result: EnvironmentResult,
    image: RuntimeEnvironment | None,
    context: EnvironmentContext,
) -> EnvironmentRecord:
    counts = {side: RecordedMetrics(**each) for side, each in result.counts.items()}
    metadata = new_metadata(
        task.instance,
        golden_metrics=counts.get("golden"),
        base_metrics=counts.get("base"),
        setup_image=image_name(task.instance, ImageStage.SETUP),
        runtime_image=image_name(task.instance, ImageStage.RUNTIME),
        has_execution_environment=result.proven,
        reason_no_execution_environment="" if result.proven else result.failure,
    )
    source, _, built_by = result.source.partition(" ")
    details = EnvironmentDetails(
        level=result.level,
        builder={"agent": Builder.AGENT, "neighbour": Builder.NEIGHBOUR}.get(source, Builder.IMPORT),
        built_by=built_by,
        privileges=result.privileges,
        base_image=ImageIdentity(name=context.base_image),
        setup_image=ImageIdentity(name=metadata.setup_image or "", id=result.setup_image),
        scripts=result.scripts_digest,
        dependencies=result.dependencies,
        gates=_gates(result),
        runs=tuple(RecordedRun.model_validate(each) for each in result.runs),
        cost_usd=Decimal(result.cost_usd),
        attempts=len(result.rounds),
        duration_s=result.duration_s,
        layer_bytes=result.written_bytes,
    )
    if image is not None:
        details = details.model_copy(
            update={
                "level": image.level,
                "network": NetworkUse(needed=image.level is not Level.OFFLINE, hosts=image.refused_hosts),
                "runtime_image": ImageIdentity(name=image.image, id=image.image_id, key=image.key),
            }
        )
    return EnvironmentRecord(metadata, details)


def _gates(result: EnvironmentResult) -> tuple[GateRecord, ...]:
    """Return the gates in their order, up to the one that failed; none that was not tried."""
    if not result.source:
        return ()
    order = [each.value for each in Gate]
    waived = result.waived_gates

    def record(name: str) -> GateRecord:
        return GateRecord(name=name, passed=name not in waived, message=waived.get(name, ""))

    if result.failed_gate:
        # A setup image that is too large is rejected before anything runs in it.
        passed = order[: order.index(result.failed_gate)] if result.runs else []
        failed = GateRecord(name=result.failed_gate, passed=False, message=result.failure)
        return (*map(record, passed), failed)
    return tuple(map(record, order))
