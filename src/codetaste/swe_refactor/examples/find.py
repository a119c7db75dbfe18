"""The examples that the prompt of an instance gets, and the record of the search that found them.

::

    async with open_example_finder(config, …) as finder:
        session.add_handlers(example_handlers(finder))
        session.add(*await example_jobs(finder, budget))      # examples/jobs.py
        # a job with needs=finder.needs(instance):
        found = await finder.find(instance, job)
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.core.text import one_line
from codetaste.errors import ConfigError
from codetaste.retrieval.services import open_services
from codetaste.swe_refactor.answers.prompt import PromptExample
from codetaste.swe_refactor.examples.corpus import read_corpus
from codetaste.swe_refactor.examples.describe import PROMPT, MethodDescriber, description_store
from codetaste.swe_refactor.examples.example import RERANK_PROMPT, search_text
from codetaste.swe_refactor.examples.method import method_of_example, method_of_instance

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from codetaste.flows.context import ModelSet
    from codetaste.llm.prompts import Prompts
    from codetaste.orchestration.job import JobContext
    from codetaste.retrieval.config import RetrievalConfig
    from codetaste.retrieval.index import Document, RetrievalIndex
    from codetaste.retrieval.services import RetrievalServices
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.examples.corpus import ExampleCorpus
    from codetaste.swe_refactor.examples.example import RefactoringExample
    from codetaste.swe_refactor.examples.method import DescribedMethod

_KEY_CHARS = 24


@dataclass(frozen=True, slots=True)
class FoundExamples:
    """The examples of a prompt, the best one first; fewer than ``top`` if the corpus has no more that fit.

    ``record`` is JSON: ids, ranks and scores of the examples, how many were searched, whether the instance
    has a description, and all that decides the search.
    """

    examples: tuple[PromptExample, ...]
    record: dict[str, Any]


@dataclass(frozen=True)
class ExampleFinder:
    """Finds examples for instances; made by ``open_example_finder``, shared by all jobs of a run.

    Attributes:
        name: of the strategy; part of the keys of its jobs.
        config: the section.
        corpus: what is searched.
        services: encoder and endpoints.
        cache: the folder with the index.
        describer: None without descriptions.
        questions: the describer's key of each example and instance, by id; empty without descriptions.
        methods: what is described, by these keys; several examples may have one method.
        known: descriptions of earlier runs, by these keys.
    """

    name: str
    config: RetrievalConfig
    corpus: ExampleCorpus
    services: RetrievalServices
    cache: Path
    describer: MethodDescriber | None = None
    questions: Mapping[str, str] = field(default_factory=dict)
    methods: Mapping[str, DescribedMethod] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)
    _documents: dict[str, tuple[Document, ...]] = field(default_factory=dict)

    @property
    def index_key(self) -> str:
        """The key of the job that builds the index."""
        return f"examples/{self.name}/index"

    def description_keys(self, *ids: str) -> tuple[str, ...]:
        """Return the keys of the jobs that describe examples or instances; none without descriptions."""
        return tuple(dict.fromkeys(description_key(self.questions[each]) for each in ids if self.describer))

    def needs(self, instance: RefactoringInstance) -> tuple[str, ...]:
        """Return the keys of the jobs that a job which calls ``find`` must need."""
        return (self.index_key, *self.description_keys(instance.unique_id))

    def description(self, method_id: str, job: JobContext) -> str:
        """Return the description of an example or an instance from what ``job`` needs; "" if it has none."""
        return "".join(str(job.needs[key]) for key in self.description_keys(method_id))

    async def find(self, instance: RefactoringInstance, job: JobContext) -> FoundExamples:
        """Return the examples that are most like the target of ``instance``, of its type if so configured.

        ``job`` pays for embeddings and reranking by a provider; everything else costs nothing.

        Raises:
            ConfigError: the local model fails.
            ModelError: a provider has no usable reply.
            BudgetExceeded: a call does not fit into the budget.
            JournalError: the descriptions cannot be read again.
        """
        built: Any = job.needs[self.index_key]
        index = await self.open_index(built["descriptions"], job)
        description = self.description(instance.unique_id, job)
        retriever = self.services.retriever(index, job)
        among = self._searched(instance.type)
        query = search_text(instance.source_code_before_refactoring, description)
        found = await retriever.search(query, among=among) if among else ()
        record = {
            "examples": [asdict(each) for each in found],
            "searched": len(among),
            "described": bool(description),
            "retriever": {**retriever.identity, "same_type": self.config.same_type},
        }
        return FoundExamples(tuple(_prompt_example(self._by_id[each.id]) for each in found), record)

    async def open_index(self, descriptions: str, job: JobContext) -> RetrievalIndex:
        """Return the index, opened once; ``descriptions`` is the digest of a text with those of the examples.

        Raises:
            CodetasteError: see ``find`` and ``retrieval/index.py``.
        """
        if descriptions not in self._documents:
            texts = json.loads(await job.load_text(descriptions))
            made = await to_thread.run_sync(self.corpus.documents, texts)
            self._documents.setdefault(descriptions, made)
        return await self.services.index(self._documents[descriptions], self.cache, job)

    def _searched(self, refactoring_type: str) -> frozenset[str]:
        return self._of_type.get(refactoring_type, frozenset()) if self.config.same_type else self._all

    @cached_property
    def _by_id(self) -> dict[str, RefactoringExample]:
        return {each.id: each for each in self.corpus.examples}

    @cached_property
    def _all(self) -> frozenset[str]:
        return frozenset(self._by_id)

    @cached_property
    def _of_type(self) -> dict[str, frozenset[str]]:
        types = {each.type for each in self.corpus.examples}
        return {
            name: frozenset(each.id for each in self.corpus.examples if each.type == name) for name in types
        }


def description_key(question: str) -> str:
    """Return the key of the job for a describer's key; finders that ask the same share the job."""
    return f"examples/describe/{question[:_KEY_CHARS]}"


@asynccontextmanager
async def open_example_finder(
    config: RetrievalConfig,
    *,
    name: str,
    base_dir: Path,
    cache: Path,
    instances: Sequence[RefactoringInstance],
    prompts: Prompts,
    models: ModelSet,
) -> AsyncIterator[ExampleFinder]:
    """Read the corpus without what overlaps with ``instances``, and open what the config names.

    Args:
        config: the section.
        name: of the strategy that uses it, unique in the run.
        base_dir: paths in the config are relative to it.
        cache: the cache folder.
        instances: all that the run has, for which examples are found.
        prompts: of the run.
        models: the open models of the run.

    Raises:
        ConfigError: the corpus is not usable or no example is left, a model is unknown, or the folder has no
            sentence encoder.
        ToolMissing: the extra ``retrieval`` is not installed.
        JournalError: the stored descriptions cannot be read.
    """
    path = base_dir / config.examples.expanduser()
    corpus = await to_thread.run_sync(read_corpus, path, instances)
    describer = _describer(config, path, prompts, models)
    known, questions = dict[str, str](), dict[str, str]()
    methods: dict[str, DescribedMethod] = {}
    if describer is not None:
        known = await to_thread.run_sync(describer.stored)
        questions, methods = await to_thread.run_sync(_questions, describer, corpus, instances)
    opening = open_services(
        config,
        base_dir=base_dir,
        prompt=prompts.load(RERANK_PROMPT),
        models=models.models,
        model_configs=models.configs,
    )
    async with opening as services:
        yield ExampleFinder(name, config, corpus, services, cache, describer, questions, methods, known)


def _describer(
    config: RetrievalConfig, corpus: Path, prompts: Prompts, models: ModelSet
) -> MethodDescriber | None:
    """Return what describes methods; None without it.

    Raises:
        ConfigError: there is no such model or prompt.
    """
    if config.describe is None:
        return None
    if config.describe not in models.models:
        raise ConfigError(f"describe: there is no model {one_line(config.describe)!r} in [[models]]")
    model, fingerprint = models.models[config.describe], models.fingerprints[config.describe]
    prompt, store = prompts.load(PROMPT), description_store(corpus)
    return MethodDescriber(model, fingerprint, prompt, store, config.describe_max_output_tokens)


def _questions(
    describer: MethodDescriber, corpus: ExampleCorpus, instances: Sequence[RefactoringInstance]
) -> tuple[dict[str, str], dict[str, DescribedMethod]]:
    """Return the describer's key of each example and instance, by id, and its method, by key."""
    methods = [*map(method_of_example, corpus.examples), *map(method_of_instance, instances)]
    keys = {each.id: describer.key(each) for each in methods}
    return keys, {keys[each.id]: each for each in methods}


def _prompt_example(example: RefactoringExample) -> PromptExample:
    """Return what a prompt shows; as in the published code the description is RefactoringMiner's sentence."""
    return PromptExample(
        example.type,
        example.source_code_before_refactoring,
        example.source_code_after_refactoring,
        one_line(example.description),
    )
