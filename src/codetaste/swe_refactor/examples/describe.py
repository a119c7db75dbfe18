"""Descriptions of examples by a model, one paid call each, stored beside the corpus (Appendix F, step 2).

They are found by a digest of the whole question and the model, so a changed prompt, another model or another
method asks anew, and nothing is asked twice, in this run or another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.agent.tool import truncate
from codetaste.core.hashing import json_digest
from codetaste.core.jsonl import JsonlFile
from codetaste.core.text import one_line, replace_surrogates
from codetaste.errors import MalformedReply
from codetaste.llm.messages import Message, Request, StopReason, TextBlock
from codetaste.orchestration.job import Job
from codetaste.orchestration.retry import mark_given_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.llm.prompts import Prompt
    from codetaste.orchestration.budget.cost import BudgetPath
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.session import Session
    from codetaste.swe_refactor.examples.example import RefactoringExample

DESCRIBE_EXAMPLE = "examples.describe"
"""The kind of the jobs."""
PROMPT = "swe_refactor/describe_example"
_MAX_OUTPUT_TOKENS = 2048
_MAX_METHOD_CHARS, _MAX_RELATED_CHARS, _MAX_CLASS_CHARS = 20_000, 20_000, 40_000
_MAX_DESCRIPTION_CHARS = 2000


@dataclass(frozen=True, slots=True)
class ExampleDescriber:
    """Describes examples.

    Attributes:
        model: that is paid.
        model_identity: what decides its replies: name, address and options.
        prompt: gets ``method``, ``related`` and ``class_code``.
        store: the file with all descriptions so far.
    """

    model: MeteredModel
    model_identity: Mapping[str, Any]
    prompt: Prompt
    store: JsonlFile

    def question(self, example: RefactoringExample) -> str:
        """Return the text that the model is sent.

        Raises:
            ConfigError: the prompt uses a name that it is not given.
        """
        text: str = replace_surrogates(
            self.prompt.render(
                method=truncate(example.source_code_before_refactoring, _MAX_METHOD_CHARS),
                related=truncate(example.related_code, _MAX_RELATED_CHARS),
                class_code=truncate(example.source_code_before_for_whole, _MAX_CLASS_CHARS),
            )
        )
        return text

    def key(self, example: RefactoringExample) -> str:
        """Return the digest of the question and the model."""
        return json_digest([self.question(example), dict(self.model_identity)])

    async def stored(self, examples: Sequence[RefactoringExample]) -> dict[str, str]:
        """Return the stored descriptions by the examples' ids.

        Raises:
            JournalError: the file cannot be read.
        """
        return await to_thread.run_sync(self._stored, examples)

    def _stored(self, examples: Sequence[RefactoringExample]) -> dict[str, str]:
        texts = {line.get("key"): line.get("text") for line in self.store.read()}
        found = {each.id: texts.get(self.key(each)) for each in examples}
        return {name: text for name, text in found.items() if isinstance(text, str) and text}

    async def describe(self, example: RefactoringExample, job: JobContext) -> str:
        """Ask the model once, store the description, and return it.

        Raises:
            MalformedReply: the reply has no text.
            BudgetExceeded: the call does not fit into the budget.
            ModelError: the provider stayed unusable after all retries.
        """
        reply = await self.model.complete(self._request(example), ctx=job, name="describe")
        text = one_line(replace_surrogates(reply.message.text), _MAX_DESCRIPTION_CHARS)
        if not text or reply.stop is StopReason.REFUSAL:
            raise mark_given_up(MalformedReply(f"{self.model.id}: no description ({reply.stop})"))
        await self.store.append([{"key": self.key(example), "example": example.id, "text": text}])
        return text

    def jobs(self, examples: Sequence[RefactoringExample], budget: BudgetPath) -> Iterator[Job]:
        """Yield a job for each example; its parameter is the example's id."""
        for each in examples:
            yield Job(
                f"describe-example/{each.id}",
                DESCRIBE_EXAMPLE,
                budget,
                fingerprint=self.key(each),
                parameters=each.id,
                lane=self.model.id,
                title=f"{each.name} {each.commit_id[:12]}: description",
                group="examples described",
                min_cost=self.model.min_cost(self._request(each)),
            )

    def _request(self, example: RefactoringExample) -> Request:
        message = Message("user", (TextBlock(self.question(example)),))
        return Request("", (message,), max_output_tokens=_MAX_OUTPUT_TOKENS)


async def add_description_jobs(
    session: Session, describer: ExampleDescriber, examples: Sequence[RefactoringExample], budget: BudgetPath
) -> int:
    """Add a job for each example that has no stored description; return how many there are.

    Raises:
        JournalError: the file with the descriptions cannot be read.
    """
    stored, by_id = await describer.stored(examples), {each.id: each for each in examples}

    async def describe(job: Job, context: JobContext) -> str:
        return await describer.describe(by_id[job.parameters], context)

    session.add_handlers({DESCRIBE_EXAMPLE: describe})
    missing = [each for each in examples if each.id not in stored]
    session.add(*describer.jobs(missing, budget))
    return len(missing)


def description_store(corpus: Path) -> JsonlFile:
    """Return the file with the descriptions of a corpus: ``examples.descriptions.jsonl`` beside it."""
    return JsonlFile(corpus.with_name(f"{corpus.stem}.descriptions.jsonl"))
