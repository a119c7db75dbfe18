"""``codetaste case-study``: let an agent compare the trials of a run with the golden patch, or label them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from codetaste.benchmark.layout import CASE_STUDIES_FOLDER, Mode, Track
from codetaste.case_study.config import StudyKind
from codetaste.cli.options import AsJson, Flag, Several
from codetaste.console.command import command
from codetaste.errors import ConfigError
from codetaste.results.roots import existing_run_folders
from codetaste.run.__main__ import carry_out
from codetaste.run.config import FLOW_SECTIONS, check_config, read_data
from codetaste.run.plan import RunOptions, plan_config
from codetaste.run.signals import signals_raise_keyboard_interrupt
from codetaste.swe_refactor.dataset.layout import FOLDER as METHODS_FOLDER

if TYPE_CHECKING:
    from codetaste.run.config import Config

_SECTION = "case_study"


@command
def case_study(  # noqa: PLR0913 - the options of the command line
    run: Path,
    /,
    *,
    config: Path | None = None,
    agent: str = "",
    instance: Several = (),
    agents: Several = (),
    track: Annotated[tuple[Track, ...], Parameter(negative=())] = (),
    mode: Annotated[tuple[Mode, ...], Parameter(negative=())] = (),
    labels: Flag = False,
    set_: Annotated[Several, Parameter(name="--set")] = (),
    dry_run: Flag = False,
    rerun: Flag = False,
    yes: Flag = False,
    json_: AsJson = False,
) -> int:
    """Compare the trials of a run with the golden patch, or give each its failure label.

    Args:
        run: The run's folder (runs/NAME), or its name. Reports are filed in its folder case_studies, which is
            also the folder of this work: codetaste status RUN/case_studies shows it.
        config: Required: a TOML file with the agent and its model. Its sections [run], [sandbox],
            [[models]], [[agents]] and [case_study] are used; without [benchmark] the benchmark of the run is.
            Of [swe_refactor], instances and repositories are used.
        agent: The id of the agent, one of [[agents]] in the file; needed unless [case_study] names it, or
            there is only one.
        instance: Globs on the ids of instances; by default all that have trials.
        agents: Globs on the ids of agents whose trials are compared; by default all.
        track: Only trials on this track.
        mode: Only trials in this mode.
        labels: Give each trial its failure label, instead of a report for each instance, track and mode.
        set_: Override a value of the file: --set run.budget_usd=5. May be given several times.
        dry_run: Show what is done, what would be done (again, and why), and the maximum cost; run nothing.
        rerun: Repeat finished reports. Their earlier cost stays charged.
        yes: Do finished reports again where what decides them has changed, without asking.
        json_: Print the result as JSON on standard output.

    Returns:
        The exit code: 0 if every report was made, 1 if one was not, 2 for bad input or a missing tool, 130 if
        it was stopped.

    Raises:
        ConfigError: the run has no trials that match, or the file is not valid for this.
        JournalError: a file cannot be read or written.
    """
    if config is None:
        raise ConfigError(
            "name the file with the agent that examines the trials: --config FILE.toml; "
            "the config of the run itself will do, with --agent ID"
        )
    (folder,) = existing_run_folders([run])
    chosen: dict[str, Any] = {
        "run": str(folder.absolute()),
        **({"agent": agent} if agent else {}),
        **({"agents": list(agents)} if agents else {}),
        **({"tracks": list(track)} if track else {}),
        **({"modes": list(mode)} if mode else {}),
        **({"kinds": [StudyKind.LABELS]} if labels else {}),
    }
    options = RunOptions(rerun=rerun, yes=yes, as_json=json_)
    with signals_raise_keyboard_interrupt():
        planned = plan_config(study_config(config, set_, chosen, instance), config)
    return carry_out(planned, options, dry_run=dry_run)


def study_config(
    path: Path, settings: tuple[str, ...], chosen: dict[str, Any], instances: tuple[str, ...]
) -> Config:
    """Return the config of case studies: of a file that may be that of the run itself.

    Args:
        path: the file.
        settings: override its values.
        chosen: values of ``[case_study]``, in place of those of the file.
        instances: globs on the ids of instances; () for those of the file.

    Raises:
        ConfigError: it is not valid.
    """
    raw = read_data(path, settings)
    section, run = raw.get(_SECTION, {}), raw.get("run", {})
    methods = _methods(raw, Path(chosen["run"]))
    raw = {name: value for name, value in raw.items() if name not in FLOW_SECTIONS}
    if isinstance(section, dict):
        raw[_SECTION] = {**_only_agent(raw), **methods, **section, **chosen}
    if isinstance(run, dict):
        raw["run"] = {**run, "name": CASE_STUDIES_FOLDER, "out": chosen["run"]}
    if isinstance(raw.get(_SECTION), dict) and "agent" not in raw[_SECTION]:
        raise ConfigError(f"name the agent that examines the trials, one of [[agents]] in {path}: --agent ID")
    config = check_config(raw, path)
    if not instances:
        return config
    benchmark = config.benchmark.model_copy(update={"instances": instances})
    assert config.case_study is not None  # noqa: S101 - it was put there
    study = config.case_study.model_copy(update={"select": instances})
    return config.model_copy(update={"benchmark": benchmark, _SECTION: study})


def _methods(raw: dict[str, Any], run: Path) -> dict[str, Any]:
    """Return the instances and clones that a config names, if the run has trials of SWE-Refactor."""
    section = raw.get(METHODS_FOLDER)
    if not isinstance(section, dict) or not (run / METHODS_FOLDER).is_dir():
        return {}
    return {name: section[name] for name in ("instances", "repositories") if name in section}


def _only_agent(raw: dict[str, Any]) -> dict[str, Any]:
    agents = raw.get("agents")
    if isinstance(agents, list) and len(agents) == 1 and isinstance(agents[0], dict) and "id" in agents[0]:
        return {"agent": agents[0]["id"]}
    return {}
