"""The section ``[describe]``, the descriptions that a run makes, and their worst-case cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from codetaste.benchmark.benchmark import Benchmark
from codetaste.benchmark.layout import Track
from codetaste.core.section import Section
from codetaste.core.units import Seconds, Usd
from codetaste.errors import ConfigError
from codetaste.flows.describe.reviews import Verdict, read_reviews
from codetaste.flows.job_keys import description_key, sources_key

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal
    from pathlib import Path

    from codetaste.benchmark.instance import Instance
    from codetaste.flows.describe.reviews import Review, Reviews


class DescribeConfig(Section):
    """``[describe]``: the model that writes task descriptions, and its budget and limits."""

    model: str
    """The id of one of ``[[models]]``."""
    tracks: tuple[Track, ...] = Field(default=tuple(Track), min_length=1)
    """Which descriptions are made: "instructed", "open"."""
    all: bool = False
    """Describe all instances anew; otherwise those without a description, and those whose description was
    rejected in a review. What was accepted or edited in a review stays in any case."""
    budget_usd: Usd | None = None
    """US dollars for one instance, both descriptions together."""
    time_limit: Seconds | None = 30 * 60.0
    """Working time of one instance, both descriptions together."""
    tries: int = Field(default=3, ge=1, le=20)
    """Replies for one description. One that is not of the required form, too long, or gives away the golden
    patch is answered with what is wrong with it."""
    max_open_chars: int = Field(default=68, ge=20, le=1000)
    """Characters of an open description; the longest of the paper has 68."""
    diff_chars: int = Field(default=120_000, ge=2000, le=10_000_000)
    """Characters of the golden patch in the prompt. A longer patch is cut so that each file stays visible."""
    max_output_tokens: int = Field(default=8192, ge=256)
    """The cap of one reply."""


@dataclass(frozen=True, slots=True)
class RejectedDescription:
    """A description that was rejected in a review: the digest of its text, and why."""

    digest: str
    comment: str


@dataclass(frozen=True, slots=True)
class DescriptionTask:
    """One description that a run makes.

    Attributes:
        instance: the instance.
        track: the track whose task it is.
        model_id: the model that writes it.
        model_label: display name of the model.
        rejections: earlier descriptions that were rejected.
        after_instructed: whether it is made from an instructed description of the same run.
    """

    instance: Instance
    track: Track
    model_id: str
    model_label: str
    rejections: tuple[RejectedDescription, ...] = ()
    after_instructed: bool = False

    @property
    def key(self) -> str:
        """The job's key."""
        return description_key(self.instance, self.track)

    @property
    def sources_key(self) -> str:
        """The key of the job that checks out the instance's two trees."""
        return sources_key(self.instance)

    @property
    def needs(self) -> tuple[str, ...]:
        """The keys of the jobs that must have a result first."""
        made = (description_key(self.instance, Track.INSTRUCTED),) if self.after_instructed else ()
        return (self.sources_key, *made)

    @property
    def title(self) -> str:
        """The job's display name."""
        return f"{self.instance.id} {self.group}"

    @property
    def group(self) -> str:
        """The name under which it is counted."""
        return f"{self.track} description"


@dataclass(frozen=True, slots=True)
class ExistingDescriptions:
    """The descriptions of a benchmark, and what people have decided about them."""

    benchmark: Benchmark
    reviews: Reviews

    def review(self, instance: Instance, track: Track) -> Review | None:
        """Return the decision about a description; None without a decision, or without the description."""
        text = self.text(instance, track)
        return None if text is None else self.reviews.of(instance, track, text)

    def text(self, instance: Instance, track: Track) -> str | None:
        """Return a description; None where there is none that can be read."""
        try:
            return self.benchmark.description(instance, track)
        except ConfigError:
            return None

    def lacks(self, instance: Instance, track: Track, anew: bool = False) -> bool:
        """Whether a description is to be made: it is missing or rejected, or, if ``anew``, undecided."""
        if self.text(instance, track) is None:
            return True
        review = self.review(instance, track)
        return anew if review is None else review.verdict is Verdict.REJECTED

    def rejected(self, instance: Instance, track: Track) -> Review | None:
        """Return the decision that rejects the description that is there; None if there is none."""
        review = self.review(instance, track)
        return review if review is not None and review.verdict is Verdict.REJECTED else None


def plan_descriptions(
    config: DescribeConfig, instances: Iterable[Instance], label: str, existing: ExistingDescriptions
) -> tuple[DescriptionTask, ...]:
    """List the descriptions to be made; ``label`` is the display name of the model.

    Raises:
        ConfigError: an open description is to be made of an instructed one that is not there.
    """
    tasks, problems = list[DescriptionTask](), list[str]()
    for instance in instances:
        made = [
            each for each in Track if each in config.tracks and existing.lacks(instance, each, config.all)
        ]
        instructed = Track.INSTRUCTED in made
        if Track.OPEN in made and not instructed and existing.lacks(instance, Track.INSTRUCTED):
            problems.append(
                f"describe.tracks: {instance.id} has no instructed description that the open one can be made "
                'of; add "instructed"'
            )
        for track in made:
            rejections = tuple(
                RejectedDescription(each.digest, each.comment)
                for each in existing.reviews.rejections(instance, track)
            )
            after = track is Track.OPEN and instructed
            tasks.append(DescriptionTask(instance, track, config.model, label, rejections, after))
    if problems:
        raise ConfigError(*problems)
    return tuple(tasks)


def worst_case_usd(config: DescribeConfig, tasks: Iterable[DescriptionTask]) -> Decimal | None:
    """Return the maximum cost of ``tasks`` under the section's budget; None where it sets none."""
    if config.budget_usd is None:
        return None
    return config.budget_usd * len({task.instance.id for task in tasks})


def existing_descriptions(benchmark: Benchmark, folder: Path) -> ExistingDescriptions:
    """Return the descriptions of a benchmark, with those edited in the folder where a run writes its own.

    Raises:
        JournalError: the decisions of a review cannot be read.
        ConfigError: an edited description cannot be read.
    """
    own, texts = read_reviews(folder), dict[tuple[str, Track], str]()
    made = Benchmark(folder, benchmark.instances)
    for instance in benchmark.instances:
        for track in Track:
            if own.last_verdict(instance, track) is Verdict.EDITED:
                texts[instance.id, track] = made.description(instance, track)
    return ExistingDescriptions(benchmark.with_descriptions(texts), read_reviews(benchmark.root, folder))
