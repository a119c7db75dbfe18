"""Descriptions of methods by a model, one paid call each, stored beside the corpus (Appendix F, step 2).

They are found by a digest of the whole question and the model, so a changed prompt, another model or another
method asks anew, and nothing is asked twice, in this run or another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.agent.tool import truncate
from codetaste.core.hashing import json_digest
from codetaste.core.jsonl import JsonlFile
from codetaste.core.text import one_line, replace_surrogates
from codetaste.llm.messages import Message, Request, StopReason, TextBlock
from codetaste.orchestration.shortfall import Shortfall
from codetaste.retrieval.config import DEFAULT_MAX_OUTPUT_TOKENS

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.llm.prompts import Prompt
    from codetaste.orchestration.budget.cost import Cost
    from codetaste.orchestration.job import JobContext
    from codetaste.swe_refactor.examples.method import DescribedMethod

PROMPT = "swe_refactor/describe_example"
NO_DESCRIPTION = "no_description"
"""The name of the shortfall of a description that the model does not write."""
_MAX_METHOD_CHARS, _MAX_RELATED_CHARS, _MAX_CLASS_CHARS = 20_000, 20_000, 40_000
_MAX_DESCRIPTION_CHARS = 2000


@dataclass(frozen=True, slots=True)
class MethodDescriber:
    """Describes methods.

    Attributes:
        model: that is paid.
        fingerprint: a hash of what determines its replies.
        prompt: gets ``method``, ``related`` and ``class_code``.
        store: the file with all descriptions so far.
        max_output_tokens: the cap of a reply.
    """

    model: MeteredModel
    fingerprint: str
    prompt: Prompt
    store: JsonlFile
    max_output_tokens: int = DEFAULT_MAX_OUTPUT_TOKENS

    def question(self, method: DescribedMethod) -> str:
        """Return the text that the model is sent.

        Raises:
            ConfigError: the prompt uses a name that it is not given.
        """
        text: str = replace_surrogates(
            self.prompt.render(
                method=truncate(method.code, _MAX_METHOD_CHARS),
                related=truncate(method.related, _MAX_RELATED_CHARS),
                class_code=truncate(method.class_code, _MAX_CLASS_CHARS),
            )
        )
        return text

    def key(self, method: DescribedMethod) -> str:
        """Return the digest of the question and the model."""
        return json_digest([self.question(method), self.fingerprint])

    def min_cost(self, method: DescribedMethod) -> Cost:
        """Return the least that the description of ``method`` costs."""
        return self.model.min_cost(self._request(method))

    def stored(self) -> dict[str, str]:
        """Return the stored descriptions by their keys. Blocking.

        Raises:
            JournalError: the file cannot be read.
        """
        texts = {line.get("key"): line.get("text") for line in self.store.read()}
        return {
            key: text
            for key, text in texts.items()
            if isinstance(key, str) and isinstance(text, str) and text
        }

    async def describe(self, method: DescribedMethod, job: JobContext) -> str:
        """Ask the model once, store the description, and return it.

        A reply without text, or a refusal, gives "" and a shortfall of the job: the method is then searched
        for, or found, by its code alone.

        Raises:
            BudgetExceeded: the call does not fit into the budget.
            ModelError: the provider stayed unusable after all retries.
        """
        request, key = await to_thread.run_sync(lambda: (self._request(method), self.key(method)))
        reply = await self.model.complete_whole(request, ctx=job, name="describe", usable=bool)
        text = one_line(replace_surrogates(reply.message.text), _MAX_DESCRIPTION_CHARS)
        if not text or reply.stop is StopReason.REFUSAL:
            job.fall_short(Shortfall(NO_DESCRIPTION, f"{self.model.id}: no description ({reply.stop})"))
            return ""
        await self.store.append([{"key": key, "id": method.id, "text": text}])
        return text

    def _request(self, method: DescribedMethod) -> Request:
        message = Message("user", (TextBlock(self.question(method)),))
        return Request("", (message,), max_output_tokens=self.max_output_tokens)


def description_store(corpus: Path) -> JsonlFile:
    """Return the file with the descriptions of a corpus: ``examples.descriptions.jsonl`` beside it."""
    return JsonlFile(corpus.with_name(f"{corpus.stem}.descriptions.jsonl"))
