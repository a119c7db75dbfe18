"""What all jobs of mining share, and where their files are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import MINING_FOLDER
from codetaste.core.files import write_atomically
from codetaste.mining.clones.explain import Population
from codetaste.mining.clones.resolve import CommitPlaces
from codetaste.mining.keywords.sets import DEFAULT_FILE, load_keyword_sets
from codetaste.mining.prefilter.outliers import OutlierBounds, Range
from codetaste.mining.prefilter.prefilter import PrefilterLimits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from codetaste.flows.mine.plan import MineConfig, MiningRunConfig
    from codetaste.flows.mine.scoring.context import ScoringContext
    from codetaste.mining.keywords.sets import KeywordSets
    from codetaste.mining.ranking.config import RankingConfig
    from codetaste.orchestration.job import Job

POPULATION_FILE = "population.json"


@dataclass(frozen=True, slots=True)
class MiningContext:
    """What all jobs of mining share.

    Attributes:
        out: the run's folder.
        base: the folder that paths of the config are relative to.
        config: the section.
        scoring: of stage 3.
        cache: the folder of what is fetched.
        add: adds jobs to the session.
        ask: asks the user about a price.
    """

    out: Path
    base: Path
    config: MineConfig
    scoring: ScoringContext
    cache: Path
    add: Callable[..., None]
    ask: Callable[[str], Awaitable[bool]]

    def folder(self, run: MiningRunConfig) -> Path:
        """Return the folder of the files of a mining run."""
        return mining_folder(self.out, run.name)

    def places(self, run: MiningRunConfig) -> CommitPlaces:
        """Return where the commits of a mining run are looked for."""
        return CommitPlaces(clones_folder(self.folder(run)), self.cache if self.config.fetch else None)

    def asks_github(self, run: MiningRunConfig | None = None) -> bool:
        """Return whether GitHub's API is asked about the commits of a mining run; None: of any.

        An archive lacks what only the API has. Elsewhere the names of repositories, which may be private, are
        sent to it only if the config has its section.
        """
        runs = self.config.runs if run is None else (run,)
        return "github" in self.config.model_fields_set or any(each.archive is not None for each in runs)

    @property
    def answers(self) -> Path:
        """The file of what GitHub answered."""
        return self.cache / "github" / "answers.sqlite"

    @property
    def limits(self) -> PrefilterLimits:
        """What stage 2 requires."""
        return PrefilterLimits(self.config.code_edits, self.config.prefiltered)

    def keyword_sets(self) -> KeywordSets:
        """Read the keyword sets; blocking.

        Raises:
            ConfigError: the file cannot be used; one line for each problem.
        """
        own = self.config.keywords
        return load_keyword_sets(DEFAULT_FILE if own is None else self.base / own.expanduser())

    @property
    def ranking(self) -> RankingConfig:
        """Stage 1, with absolute paths."""
        config = self.config.ranking
        stars = None if config.stars is None else self.path(config.stars)
        return config.model_copy(update={"stars": stars})

    def path(self, relative: Path) -> Path:
        """Return a path of the config."""
        return self.base / relative.expanduser()


def mining_folder(out: Path, run: str) -> Path:
    """Return the folder of the files of the mining run ``run``."""
    return out / MINING_FOLDER / run


def clones_folder(folder: Path) -> Path:
    """Return the folder of links to the clones ``OWNER/REPO`` that a mining run reads."""
    return folder / "clones"


def ranked_file(folder: Path) -> Path:
    """Return the file of the commits that passed stage 1, the best first."""
    return folder / "ranked.jsonl"


def prefiltered_file(folder: Path) -> Path:
    """Return the file of the commits that passed stage 2."""
    return folder / "prefiltered.jsonl"


def funnel_file(folder: Path) -> Path:
    """Return the file of what each filter of a mining run removed and kept."""
    return folder / "funnel.json"


def write_population(folder: Path, bounds: OutlierBounds | None, lowest_ratio: float | None) -> None:
    """Write what the filters of stage 2 knew of all commits; blocking."""
    ranges = {} if bounds is None else {"lines": bounds.lines, "files": bounds.files}
    data = {name: [str(each.low), str(each.high)] for name, each in ranges.items()}
    text = json.dumps({**data, "lowest_ratio": lowest_ratio}, indent=1) + "\n"
    write_atomically(folder / POPULATION_FILE, text.encode())


def read_population(folder: Path) -> Population | None:
    """Read what ``write_population`` wrote; None if there is none. Blocking."""
    try:
        data = json.loads((folder / POPULATION_FILE).read_bytes())
    except FileNotFoundError:
        return None
    bounds = None
    if "lines" in data:
        lines, files = (Range(*map(Fraction, data[name])) for name in ("lines", "files"))
        bounds = OutlierBounds(lines, files)
    return Population(bounds, data["lowest_ratio"])


@dataclass(frozen=True, slots=True)
class MiningTask:
    """One mining run of the config, as the parameters of its jobs."""

    run: MiningRunConfig

    @property
    def collect_key(self) -> str:
        """The key of the job that collects commits and ranks them."""
        return f"mine/{self.run.name}/collect"

    @property
    def prefilter_key(self) -> str:
        """The key of the job that reads their diffs."""
        return f"mine/{self.run.name}/prefilter"

    @property
    def score_key(self) -> str:
        """The key of the job that begins to score them."""
        return f"mine/{self.run.name}/score"


def task_of(job: Job) -> MiningTask:
    """Return the parameters of a job of this flow."""
    task: MiningTask = job.parameters
    return task
