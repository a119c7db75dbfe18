"""The limits of a run that may change while it is under way: their names, their values, and who obeys them.

They go by the config's keys. What ``codetaste limit`` wrote lies over the config, in a running process and in
the next one, until the config says something new.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from codetaste.errors import ConfigError
from codetaste.orchestration.control import Change, read_changes, write_changes
from codetaste.units import format_duration, format_usd, parse_duration, parse_usd

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from codetaste.config import Config
    from codetaste.llm.metered import MeteredModel
    from codetaste.orchestration.session import Session

BUDGET, TIME, JOBS, SANDBOXES = "run.budget_usd", "run.time_limit", "run.concurrency", "sandbox.max"
_MOST = 100_000


def of_model(model_id: str) -> str:
    """Return the name of a model's limit of requests in flight."""
    return f"models.{model_id}.max_concurrency"


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a limit is read and said; ``none`` where there may be no limit."""

    read: Callable[[Any], Any]
    say: Callable[[Any], str]
    none: bool = False


def _count(value: Any) -> int:  # noqa: ANN401 - from a command line or JSON
    try:
        count = -1 if isinstance(value, bool | float) else int(value)
    except (TypeError, ValueError):
        count = -1
    if not 1 <= count <= _MOST:
        raise ValueError(f"{value!r} is no whole number from 1 to {_MOST}")
    return count


_KINDS = {
    BUDGET: _Kind(parse_usd, format_usd, none=True),
    TIME: _Kind(parse_duration, format_duration, none=True),
}
_COUNTED = _Kind(_count, str)


def read_limit(name: str, value: Any) -> Any:  # noqa: ANN401 - of any kind
    """Return the value of a limit as the program has it; None is no limit.

    Raises:
        ValueError: it can be no such limit.
    """
    kind = _KINDS.get(name, _COUNTED)
    if kind.none and (value is None or value == "none"):
        return None
    return kind.read(value)


def plain_limit(name: str, value: Any) -> Any:  # noqa: ANN401 - of any kind
    """Return the value of a limit as JSON: dollars as text, seconds and counts as numbers."""
    return str(value) if name == BUDGET and value is not None else value


def said_limit(name: str, value: Any) -> str:  # noqa: ANN401 - of any kind
    """Say a limit to people."""
    return "no limit" if value is None else _KINDS.get(name, _COUNTED).say(value)


def configured_limits(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits that a config has; ``data`` is the config as JSON data."""
    run = data["run"]
    said = {
        BUDGET: run["budget_usd"],
        TIME: run["time_limit"],
        JOBS: run["concurrency"],
        SANDBOXES: data["sandbox"]["max"],
        **{of_model(model["id"]): model["max_concurrency"] for model in data["models"]},
    }
    return {name: read_limit(name, value) for name, value in said.items()}


def prevailing(configured: Mapping[str, Any], changes: Mapping[str, Change]) -> dict[str, Any]:
    """Return the changed limits that hold, by name: those whose configured value is what it was then.

    Raises:
        ConfigError: one of them can be no such limit.
    """
    hold = {}
    for name, change in changes.items():
        try:
            value, then = read_limit(name, change.value), read_limit(name, change.instead_of)
        except ValueError as error:
            raise ConfigError(
                f"limits.json: {name}: {error}; `codetaste limit --reset` with the limits makes it anew"
            ) from error
        if name in configured and configured[name] == then:
            hold[name] = value
    return hold


@dataclass(slots=True)
class LiveLimits:
    """The limits of one session. ``base`` is the config as it was written, ``config`` as it holds.

    ``told`` says what is not as the config says, a line for each.
    """

    base: Config
    config: Config
    directory: Path
    told: tuple[str, ...] = ()
    in_force: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, base: Config, directory: Path) -> LiveLimits:
        """Lay the changes that a person made to the run in ``directory`` over its config. Blocks.

        Raises:
            ConfigError: the file with the changes is damaged.
        """
        configured = configured_limits(base.model_dump(mode="json"))
        changes = read_changes(directory)
        hold = prevailing(configured, changes)
        told = [
            f"{name}: {said_limit(name, value)} by `codetaste limit`; "
            f"the config says {said_limit(name, configured[name])}"
            for name, value in hold.items()
        ]
        stale = sorted(changes.keys() - hold.keys())
        if stale:
            told.append(f"{', '.join(stale)}: set by `codetaste limit`, but the config is newer and holds")
        return cls(base, _laid_over(base, hold), directory, tuple(told), configured | hold)

    def forget_stale(self) -> None:
        """Take the changes that do not hold any more out of the file, lest they come back. Blocks."""
        changes = read_changes(self.directory)
        hold = prevailing(configured_limits(self.base.model_dump(mode="json")), changes)
        if hold.keys() != changes.keys():
            write_changes(self.directory, {name: changes[name] for name in hold})

    async def begin(self, session: Session, models: Mapping[str, MeteredModel]) -> None:
        """Make the session's limits those that hold, and journal all of them."""
        usd, wall_s = self.in_force[BUDGET], self.in_force[TIME]
        limits = replace(session.budget.limits, usd=usd, wall_s=wall_s)
        if limits != session.budget.limits:
            await session.set_limits(limits)
        self._journal(session, models)

    async def obey(
        self, session: Session, models: Mapping[str, MeteredModel], changes: Mapping[str, Change]
    ) -> None:
        """Put what has changed into force, say it, and journal it.

        Raises:
            ConfigError: one of them can be no such limit; nothing is changed.
        """
        configured = configured_limits(self.base.model_dump(mode="json"))
        wanted = configured | prevailing(configured, changes)
        unpriced = [model.id for model in models.values() if model.price is None]
        if wanted[BUDGET] is not None and wanted[BUDGET] != self.in_force[BUDGET] and unpriced:
            raise ConfigError(f"no budget in dollars can hold: model {unpriced[0]} has no known price")
        new = {name: value for name, value in wanted.items() if self.in_force[name] != value}
        if not new:
            return
        if {BUDGET, TIME} & new.keys():
            limits = replace(session.budget.limits, usd=wanted[BUDGET], wall_s=wanted[TIME])
            await session.set_limits(limits)
        for name, resource in ((JOBS, "jobs"), (SANDBOXES, "sandbox")):
            if name in new:
                session.resize(resource, new[name])
        for model_id, model in models.items():
            if of_model(model_id) in new:
                # Models that a provider counts together share a limiter: the smallest of them holds.
                together = [each for each, other in models.items() if other.limiter is model.limiter]
                model.limiter.most = min(wanted[of_model(each)] for each in together)
        before, self.in_force = self.in_force, wanted
        self._journal(session, models)
        for name, value in new.items():
            text = f"{name} is {said_limit(name, value)} now, was {said_limit(name, before[name])}"
            session.tell(text)

    def _journal(self, session: Session, models: Mapping[str, MeteredModel]) -> None:
        """Write down which limits are in force: of models, only of those that are used."""
        unused = {of_model(model.id) for model in self.base.models if model.id not in models}
        limits = {
            name: plain_limit(name, value) for name, value in self.in_force.items() if name not in unused
        }
        session.record.note({"event": "obeyed", "limits": limits})
        for model_id, model in models.items():
            if (most := model.limiter.most) != self.in_force[of_model(model_id)]:
                # Counted together with a model that is allowed less.
                session.record.note({"event": "capacity", "resource": f"model {model_id}", "capacity": most})


def slots_in_use(models: Mapping[str, MeteredModel]) -> list[str]:
    """Say of each limiter how many requests are in flight, and why others are not; a line each."""
    lines = []
    for limiter in dict.fromkeys(model.limiter for model in models.values()):
        now = limiter.statistics()
        said = f"{limiter.name}: {now.in_flight} of {now.limit} in flight"
        said += f" (of {now.most} at best)" if now.limit < now.most else ""
        said += f", {now.waiting} waiting" if now.waiting else ""
        said += f", all paused for {format_duration(now.paused_s)}" if now.paused_s else ""
        lines.append(said)
    return lines


def _laid_over(config: Config, hold: Mapping[str, Any]) -> Config:
    run = {name.removeprefix("run."): value for name, value in hold.items() if name.startswith("run.")}
    models = tuple(
        model.model_copy(update={"max_concurrency": hold[of_model(model.id)]})
        if of_model(model.id) in hold
        else model
        for model in config.models
    )
    sandbox = {"max": hold[SANDBOXES]} if SANDBOXES in hold else {}
    return config.model_copy(
        update={
            "run": config.run.model_copy(update=run),
            "sandbox": config.sandbox.model_copy(update=sandbox),
            "models": models,
        }
    )
