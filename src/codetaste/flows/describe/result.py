"""The result of a description's job, and how later jobs of the run get its text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import Track
from codetaste.core.text import plural
from codetaste.flows.job_keys import description_key

if TYPE_CHECKING:
    from typing import Self

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json


@dataclass(frozen=True, slots=True)
class DescriptionResult:
    """A description: the digest of its stored text, its length, and the replies that it took."""

    text_digest: str
    chars: int
    replies: int

    def to_json(self) -> Json:
        """Return the result as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Self:  # noqa: ANN401 - JSON
        """Read what ``to_json`` returned."""
        return cls(**data)

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
            text = await job.load_text(DescriptionResult.from_json(made).text_digest)
            benchmark.put_description(instance, track, text)
