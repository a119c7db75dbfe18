"""The result of a description's job, and how later jobs of the run get its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import Track
from codetaste.core.text import plural
from codetaste.flows.job_keys import description_key
from codetaste.orchestration.journal.results import result_from_json

if TYPE_CHECKING:
    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.orchestration.job import JobContext


@dataclass(frozen=True, slots=True)
class DescriptionResult:
    """A description: the digest of its stored text, its length, and the replies that it took."""

    text_digest: str
    chars: int
    replies: int

    def describe(self) -> str:
        """Describe the result in one line."""
        return f"{plural(self.chars, 'character')} ({plural(self.replies, 'reply', 'replies')})"


async def take_descriptions(instance: Instance, benchmark: Benchmark, job: JobContext) -> None:
    """Give ``benchmark`` the descriptions of ``instance`` that jobs have made that ``job`` needs.

    Raises:
        JournalError: a text is missing or damaged.
    """
    for track in Track:
        made = job.needs.get(description_key(instance, track))
        if made is not None:
            text = await job.load_text(result_from_json(DescriptionResult, made).text_digest)
            benchmark.put_description(instance, track, text)
