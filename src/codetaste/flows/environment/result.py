"""The result of an environment job, as it is journalled."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.environment.levels import Level
from codetaste.environment.scripts import read_scripts_archive
from codetaste.sandbox.base import Privileges

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from typing import Self

    from codetaste.environment.scripts import EnvironmentScripts
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json


@dataclass(frozen=True, slots=True)
class EnvironmentResult:
    """The environment of one instance, or how far the best attempt at one came.

    Attributes:
        level: how far it came.
        source: where it comes from: "benchmark", "neighbour ID", "agent ID".
        setup_image: the image that its scripts run in.
        scripts: digest of the archive of the scripts, stored as a text (``store_scripts``); "" without any.
        privileges: what the scripts need.
        failure: the gate that it fails, in one line; "" if it passes all.
        failed_gate: the name of that gate, "" for none.
        waived_gates: what gates found that published scripts need not pass, by their names.
        counts: the tests' counts by side, as published.
        runs: the test runs of the gates, as ``RecordedRun``.
        written_bytes: what these wrote, at most.
        scripts_digest: digest of the scripts themselves.
        dependencies: digest of what R depends on.
        rounds: the runs of the agent, as JSON data.
        tried: what was tried before, with the gate that it failed, one line each.
        cost_usd: of all rounds together.
        duration_s: of the job, its waits for test runs and models included.
    """

    level: Level
    source: str = ""
    setup_image: str = ""
    scripts: str = ""
    privileges: Privileges = Privileges.NONE
    failure: str = ""
    failed_gate: str = ""
    waived_gates: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    runs: tuple[Mapping[str, Any], ...] = ()
    written_bytes: int = 0
    scripts_digest: str = ""
    dependencies: str = ""
    rounds: tuple[Mapping[str, Any], ...] = ()
    tried: tuple[str, ...] = ()
    cost_usd: str = "0"
    duration_s: float = 0.0

    @property
    def proven(self) -> bool:
        """Whether it passes all gates."""
        return self.level.is_proven

    def describe(self) -> str:
        """Return a summary in one line, "" for no environment: the job's shortfall says why."""
        if not self.proven:
            return ""
        counts = self.counts.get("base", {})
        tests = f"{counts.get('passed', 0)} of {counts.get('total', 0)} tests pass on R"
        return f"{tests}, by {self.source}"

    def to_json(self) -> Json:
        """Return the result as JSON data."""
        return {**asdict(self), "level": self.level.value}

    @classmethod
    def from_json(cls, data: Any) -> Self:  # noqa: ANN401 - JSON
        """Read what ``to_json`` returned."""
        return cls(
            **{
                **data,
                "level": Level(data["level"]),
                "privileges": Privileges(data["privileges"]),
                "runs": tuple(data.get("runs", ())),
                "rounds": tuple(data["rounds"]),
                "tried": tuple(data["tried"]),
            }
        )


async def store_scripts(scripts: EnvironmentScripts, job: JobContext) -> str:
    """Store the archive of the scripts in the journal's texts, and return its digest."""
    return await job.store_text(scripts.archive().decode("latin-1"))


async def load_scripts(digest: str, load_text: Callable[[str], Awaitable[str]]) -> EnvironmentScripts:
    """Load what ``store_scripts`` stored.

    Raises:
        JournalError: the text is missing or damaged.
    """
    archive = (await load_text(digest)).encode("latin-1")

    async def chunks() -> AsyncIterator[bytes]:
        yield archive

    return await read_scripts_archive(chunks())
