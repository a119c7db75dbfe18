"""The runtime image of an instance: found in the engine, or built from scripts that passed the gates.

At last the tests run in it once without a network. Those that need one are marked, with the hosts that they
asked for, and reach the registries in later runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from anyio import from_thread, to_thread

from codetaste.core.text import one_line
from codetaste.environment.images.copies import find_copies
from codetaste.environment.images.existing import find_image, find_published_image, trusted_layers
from codetaste.environment.images.names import ImageStage, image_name
from codetaste.environment.images.runtime import RuntimeEnvironment
from codetaste.environment.images.runtime_image import RuntimeRecipe, build_runtime_image
from codetaste.environment.leak_search.golden import golden_traces
from codetaste.environment.leak_search.image import LeakTerms
from codetaste.environment.levels import Level
from codetaste.environment.project import read_project_names
from codetaste.environment.record import read_record
from codetaste.errors import ConfigError, SandboxError, SandboxMissing
from codetaste.evaluation.test_runs.gates import NOT_PUBLISHED, Gate, Side, judge_run
from codetaste.evaluation.test_runs.suite import run_suite
from codetaste.flows.environment.candidates import Candidate, find_candidates
from codetaste.flows.environment.result import EnvironmentResult, load_scripts, store_scripts
from codetaste.flows.environment.suites import SuiteSandbox, open_suite_sandbox, repeat_while_faulty
from codetaste.harness.testbed.status import clean_testbed, untracked_files
from codetaste.harness.testbed.testbed import prepare_testbed, testbed_archive
from codetaste.orchestration.shortfall import Shortfall
from codetaste.sandbox.base import Privileges
from codetaste.sandbox.egress import open_allowlist_egress
from codetaste.source.checkout import checkout_trees
from codetaste.source.tree.store import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.evaluation.test_runs.gates import GateFailure
    from codetaste.flows.environment.context import EnvironmentContext
    from codetaste.flows.environment.plan import EnvironmentTask
    from codetaste.flows.environment.suites import SuiteServices
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json
    from codetaste.sandbox.proxy.server import HostRequest


@dataclass(frozen=True, slots=True)
class _Source:
    """What an image is built from: scripts, their image, the privileges that they need."""

    candidate: Candidate
    privileges: Privileges


async def make_runtime_image(task: EnvironmentTask, context: EnvironmentContext, job: JobContext) -> Json:
    """Return the ``RuntimeEnvironment`` of an instance as the job's value, None where there is none.

    Without an image an instance has no tests, but its patches are scored by rules: the job does not fail.
    """

    async def attempt() -> Json | SandboxError:
        try:
            return await _make(task, context, job)
        except SandboxMissing:
            raise  # it would not be there the next moment either
        except SandboxError as error:
            return error

    def fault(made: Json | SandboxError) -> str:
        return one_line(made) if isinstance(made, SandboxError) else ""

    try:
        made = await repeat_while_faulty(attempt, fault, job, "image")
    except ConfigError as error:
        job.fall_short(Shortfall("no_environment", one_line(error)))
        return None
    except SandboxMissing as error:
        made = error
    if isinstance(made, SandboxError):
        job.fall_short(Shortfall("no_image", one_line(made), transient=True))
        return None
    return made


async def _make(task: EnvironmentTask, context: EnvironmentContext, job: JobContext) -> Json:
    """Make or find the image, and find out whether its tests need a network.

    Raises:
        ConfigError: the benchmark's scripts cannot be used.
        SandboxError: only the machine is to blame that there is no image.
    """
    source = await _source(task, context, job)
    if source is None:
        if task.builds and not task.proves:
            job.fall_short(Shortfall("no_environment", "the benchmark has no scripts of the instance"))
        return None
    name, sandboxes = image_name(task.instance, ImageStage.RUNTIME), context.suites.sandboxes
    if not task.builds:
        ident = await find_image(sandboxes, name)
        if not ident:
            job.note(f"{name} is not in the container engine: trials have the image of [sandbox]")
            return None
        return (await _existing(name, ident, context, source, job)).to_json()
    published = "" if task.proves else await find_published_image(sandboxes, name)
    if published:
        job.note(f"{name} is used as it is: others made it")
        environment = await _existing(name, published, context, source, job)
    else:
        built = await _build(task, context, source, job)
        if built is None:
            return None
        environment = built
    return (await _try_offline(context, source, environment, job)).to_json()


async def _source(task: EnvironmentTask, context: EnvironmentContext, job: JobContext) -> _Source | None:
    if task.proves:
        result = EnvironmentResult.from_json(job.needs[task.key])
        if not result.proven:
            return None
        scripts = await load_scripts(result.scripts, job.load_text)
        return _Source(Candidate(result.source, result.setup_image, scripts), result.privileges)
    candidates = await find_candidates(task, context)
    if not candidates:
        return None
    record = await to_thread.run_sync(read_record, context.benchmark.root, task.instance)
    details = None if record is None else record.details
    # Scripts of which nothing is known were made for a container with sudo.
    return _Source(candidates[0], Privileges.SUDO if details is None else details.privileges)


async def _existing(
    name: str, ident: str, context: EnvironmentContext, source: _Source, job: JobContext
) -> RuntimeEnvironment:
    """Return the environment whose runtime image is in the engine."""
    return RuntimeEnvironment(
        image=name,
        image_id=ident,
        testbed_commit="",  # not known
        privileges=source.privileges,
        hosts=context.hosts,
        scripts=await store_scripts(source.candidate.scripts, job),
    )


async def _build(
    task: EnvironmentTask, context: EnvironmentContext, source: _Source, job: JobContext
) -> RuntimeEnvironment | None:
    suites = context.suites
    trees = await checkout_trees(context.benchmark.origin(task.instance), suites.cache)
    testbed = await prepare_testbed(Tree(trees.base, trees.base_digest), suites.cache)
    golden = await to_thread.run_sync(
        golden_traces, trees.base, trees.golden, task.instance.golden_commit_hash, from_thread.check_cancelled
    )
    setup_image = await find_image(suites.sandboxes, source.candidate.image)
    recipe = RuntimeRecipe(
        job=job.key,
        name=image_name(task.instance, ImageStage.RUNTIME),
        setup_image=setup_image or source.candidate.image,
        scripts=source.candidate.scripts,
        testbed_commit=testbed.commit,
        privileges=source.privileges,
        egress=suites.network,
        within_s=suites.limits.setup_s,
        terms=LeakTerms(golden, context.secrets),
        names=await to_thread.run_sync(read_project_names, trees.base, trees.golden),
        trusted_layers=await trusted_layers(suites.sandboxes, context.base_image),
    )
    built = await build_runtime_image(
        suites.sandboxes, suites.sandbox_config, recipe, lambda: testbed_archive(testbed, suites.home)
    )
    for note in built.notes:
        job.note(note)
    if built.problem:
        job.fall_short(Shortfall("no_image", built.problem))
        return None
    return RuntimeEnvironment(
        image=recipe.name,
        image_id=built.image_id,
        testbed_commit=testbed.commit,
        privileges=source.privileges,
        hosts=context.hosts,
        key=built.key,
        scripts=await store_scripts(source.candidate.scripts, job),
    )


async def _try_offline(
    context: EnvironmentContext,
    source: _Source,
    environment: RuntimeEnvironment,
    job: JobContext,
) -> RuntimeEnvironment:
    """Return ``environment`` as it is known after a test run on R that reaches nothing.

    Only whether the tests run and pass says something about the network: published scripts may leave files
    that git does not ignore.
    """
    refused: list[HostRequest] = []
    scripts = await context.suites.mount_scripts(environment, job.load_text)

    async def run() -> Json:
        async with open_allowlist_egress((), note=refused.append) as egress:
            wanted = SuiteSandbox(job.key, environment.image_id, scripts, source.privileges, egress)
            failure, copies, untracked = await _run_tests(context.suites, wanted)
        hides_proxy = False
        if failure is not None and failure.gate is Gate.SETUP:
            network = context.suites.network
            failed = await _run_tests(context.suites, replace(wanted, egress=network), hidden=network.env)
            hides_proxy = failed.failure is None
        named: list[Json] = [*sorted({f"{each.host}:{each.port}" for each in refused})]
        return {
            "failure": "" if failure is None else str(failure),
            "hosts": named,
            "copies": list(copies),
            "untracked": list(untracked),
            "hides_proxy": hides_proxy,
        }

    result: Any = await job.effect(f"offline/{environment.key or environment.image_id}", run)
    hosts = tuple(result["hosts"])
    environment = replace(
        environment,
        copies=tuple(result["copies"]),
        untracked=tuple(result["untracked"]),
        hides_proxy=result["hides_proxy"],
    )
    if environment.copies:
        names = ", ".join(environment.copies)
        job.note(f"each test run sets up again, as the setup installs a copy of the code: {names}")
    if environment.untracked:
        names = ", ".join(environment.untracked)
        job.note(f"left out of patches, as the setup makes it and git does not ignore it: {names}")
    if not result["failure"]:
        return replace(environment, level=Level.OFFLINE, hosts=(), refused_hosts=hosts)
    job.note(f"needs the network ({', '.join(hosts) or 'no host named'}): {result['failure']}")
    return replace(environment, refused_hosts=hosts)


class _Tried(NamedTuple):
    """The result of a test run on R, the copies of R that were installed before, and untracked files."""

    failure: GateFailure | None
    copies: tuple[str, ...]
    untracked: tuple[str, ...]


async def _run_tests(suites: SuiteServices, wanted: SuiteSandbox, hidden: Iterable[str] = ()) -> _Tried:
    """Run the tests on R, again if they fail: a flaky test must not open the network for all later runs.

    Raises:
        SandboxError: only the machine is to blame that there is no result.
    """
    for _ in range(2):
        async with open_suite_sandbox(suites, wanted) as sandbox:
            untracked = await untracked_files(sandbox)
            if copies := await find_copies(sandbox):
                await clean_testbed(sandbox)
            found = await run_suite(sandbox, wanted.privileges, suites.limits, hidden=hidden)
        failure = judge_run(found, Side.BASE, NOT_PUBLISHED)
        if failure is not None and failure.infrastructure:
            raise SandboxError(f"the tests could not be run: {failure.message}")
        if failure is None or failure.gate is Gate.SETUP:
            break
    return _Tried(failure, copies, untracked)
