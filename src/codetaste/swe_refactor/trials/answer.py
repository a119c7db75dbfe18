"""``TrialAnswer``: what a strategy made of an instance; the value of an answer job."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.swe_refactor.answers.problem import AnswerProblem, AnswerProblemKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Self

    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json


@dataclass(frozen=True, slots=True)
class TrialAnswer:
    """An answer, before it is scored.

    Attributes:
        files: the whole new content of each file that it changes, by path; None for a deleted one.
        problem: why there are no files; None if there are.
        text: the answer as the model wrote it, or the patch of an agent.
        turns: replies of all models of the trial.
        wall_s: seconds from the first prompt to the answer, waiting included.
        details: what else is on record, as JSON: the digest of a prompt, its examples, rounds of a review.
    """

    files: Mapping[str, bytes | None] = field(default_factory=dict)
    problem: AnswerProblem | None = None
    text: str = ""
    turns: int = 0
    wall_s: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)

    async def store(self, job: JobContext) -> Json:
        """Store the contents once, durably, and return the value of the job."""
        files: dict[str, Json] = {
            path: None if data is None else await job.store_text(data.decode("utf-8", "surrogateescape"))
            for path, data in self.files.items()
        }
        return {
            "files": files,
            "problem": asdict(self.problem) if self.problem else None,
            "text": await job.store_text(self.text),
            "turns": self.turns,
            "wall_s": round(self.wall_s, 3),
            "details": dict(self.details),
        }

    @classmethod
    async def load(
        cls,
        value: Any,  # noqa: ANN401 - JSON
        load_text: Callable[[str], Awaitable[str]],
    ) -> Self:
        """Return the answer that ``store`` stored.

        Raises:
            JournalError: a content is missing or damaged.
        """
        files = {
            path: None if digest is None else (await load_text(digest)).encode("utf-8", "surrogateescape")
            for path, digest in value["files"].items()
        }
        problem = value["problem"]
        return cls(
            files,
            AnswerProblem(AnswerProblemKind(problem["kind"]), problem["sentence"]) if problem else None,
            await load_text(value["text"]),
            value["turns"],
            value["wall_s"],
            value["details"],
        )
