"""The jobs before a search: a description of each example and each instance, and one index of the examples.

A description is a paid call; one that an earlier run has stored costs nothing. Finders that ask the same
question share its job: add the jobs of several finders once for each key. The index is built by one job,
which pays for its embeddings where they cost money. A job that searches needs ``ExampleFinder.needs``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.core.hashing import canonical_json
from codetaste.flows.inputs import CODETASTE, digest_of_inputs, digests_of_inputs
from codetaste.orchestration.job import Job
from codetaste.retrieval.index import index_settings
from codetaste.swe_refactor.examples.describe import PROMPT
from codetaste.swe_refactor.examples.find import description_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.orchestration.budget.cost import BudgetPath
    from codetaste.orchestration.job import Handler, JobContext
    from codetaste.orchestration.journal.journal import Json
    from codetaste.swe_refactor.examples.describe import MethodDescriber
    from codetaste.swe_refactor.examples.find import ExampleFinder

DESCRIBE, INDEX = "examples.describe", "examples.index"
"""The kinds of the jobs; a kind has the finder's name behind it, for each finder has its own handlers."""
_VERSION = 1
"""Increment it when the same corpus, models and prompts would give another index."""


async def example_jobs(finder: ExampleFinder, budget: BudgetPath) -> list[Job]:
    """Return the jobs that must have ended before a search, under ``budget``.

    Raises:
        ConfigError: the prompt for descriptions uses a name that it is not given.
    """
    return await to_thread.run_sync(lambda: [*_jobs(finder, budget)])


def example_handlers(finder: ExampleFinder) -> dict[str, Handler]:
    """Return what runs the jobs of ``example_jobs``, by kind."""
    return {
        f"{DESCRIBE}/{finder.name}": lambda job, run: _describe(finder, job.parameters, run),
        f"{INDEX}/{finder.name}": lambda _job, run: _build_index(finder, run),
    }


def _jobs(finder: ExampleFinder, budget: BudgetPath) -> Iterator[Job]:
    if finder.describer is not None:
        yield from _description_jobs(finder, finder.describer, budget)
    inputs = {
        CODETASTE: canonical_json([_VERSION, index_settings(finder.services.embedder_identity)]),
        "examples": canonical_json([[each.id, each.text] for each in finder.corpus.documents({})]),
    }
    paid = finder.services.embeddings
    yield Job(
        finder.index_key,
        f"{INDEX}/{finder.name}",
        budget,
        fingerprint=digest_of_inputs(inputs),
        inputs=digests_of_inputs(inputs),
        needs=finder.description_keys(*(each.id for each in finder.corpus.examples)),
        resources={} if finder.services.encoder is None else {"cpu": 1},
        lane="" if paid is None else paid.model.id,
        title=f"{finder.name}: index of the examples",
        group="indexes of examples",
        costs_nothing=paid is None,
        prerequisite_only=True,
    )


def _description_jobs(finder: ExampleFinder, describer: MethodDescriber, budget: BudgetPath) -> Iterator[Job]:
    for key, method in finder.methods.items():
        inputs = {
            f"prompts/{PROMPT}.md": describer.prompt.text,
            f"models.{describer.model.id}": describer.fingerprint,
            "method": key,
        }
        known = key in finder.known
        yield Job(
            description_key(key),
            f"{DESCRIBE}/{finder.name}",
            budget,
            fingerprint=digest_of_inputs(inputs),
            inputs=digests_of_inputs(inputs),
            parameters=key,
            lane=describer.model.id,
            title=f"{method.title}: description",
            group="methods described",
            costs_nothing=known,
            min_cost=None if known else describer.min_cost(method),
            prerequisite_only=True,
        )


async def _describe(finder: ExampleFinder, key: str, job: JobContext) -> str:
    """The result is the description; "" if the model does not write one."""
    if key in finder.known or finder.describer is None:
        return finder.known[key]
    return await finder.describer.describe(finder.methods[key], job)


async def _build_index(finder: ExampleFinder, job: JobContext) -> Json:
    """The result is the key of the index and the digest of the descriptions, by which it is opened again."""
    described = {each.id: finder.description(each.id, job) for each in finder.corpus.examples}
    descriptions = await job.store_text(
        canonical_json({name: text for name, text in described.items() if text})
    )
    index = await finder.open_index(descriptions, job)
    return {"index": index.key, "descriptions": descriptions}
