"""Limits of a run that can be changed while it is under way: names, values, and how they are applied.

Limits are named by their config keys. Values written by ``codetaste limit`` override the config, in a running
process and in the next one, until the value in the config changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from codetaste.core.units import format_duration, format_usd, parse_duration, parse_usd
from codetaste.errors import ConfigError
from codetaste.orchestration.limit_changes import LimitChange, read_changes, write_changes
from codetaste.run.config import runs_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.orchestration.session import Session
    from codetaste.run.config import Config

BUDGET, TIME, JOBS, SANDBOXES = "run.budget_usd", "run.time_limit", "run.concurrency", "sandbox.max"
_MAX_COUNT = 100_000


def model_limit_name(model_id: str) -> str:
    """Return the name of a model's limit of requests in flight."""
    return f"models.{model_id}.max_concurrency"


@dataclass(frozen=True, slots=True)
class _Kind:
    """How values of a limit are parsed and formatted; ``optional`` if "no limit" is allowed."""

    parse: Callable[[Any], Any]
    format: Callable[[Any], str]
    optional: bool = False


def _parse_count(value: Any) -> int:  # noqa: ANN401 - from a command line or JSON
    try:
        count = -1 if isinstance(value, bool | float) else int(value)
    except (TypeError, ValueError):
        count = -1
    if not 1 <= count <= _MAX_COUNT:
        raise ValueError(f"{value!r} is not a whole number from 1 to {_MAX_COUNT}")
    return count


_KINDS = {
    BUDGET: _Kind(parse_usd, format_usd, optional=True),
    TIME: _Kind(parse_duration, format_duration, optional=True),
}
_COUNT_KIND = _Kind(_parse_count, str)


def read_limit(name: str, value: Any) -> Any:  # noqa: ANN401 - of any kind
    """Parse the value of a limit from a command line or JSON; None is no limit.

    Raises:
        ValueError: the value is invalid for this limit.
    """
    kind = _KINDS.get(name, _COUNT_KIND)
    if kind.optional and (value is None or value == "none"):
        return None
    return kind.parse(value)


def limit_to_json(name: str, value: Any) -> Any:  # noqa: ANN401 - of any kind
    """Return the value of a limit as JSON: dollars as text, seconds and counts as numbers."""
    return str(value) if name == BUDGET and value is not None else value


def format_limit(name: str, value: Any) -> str:  # noqa: ANN401 - of any kind
    """Format the value of a limit for humans."""
    return "no limit" if value is None else _KINDS.get(name, _COUNT_KIND).format(value)


def configured_limits(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits in a config that can be changed; ``data`` is the config as JSON data."""
    run = data["run"]
    values = {
        BUDGET: run["budget_usd"],
        TIME: run["time_limit"],
        JOBS: run["concurrency"],
        SANDBOXES: data["sandbox"]["max"],
        **{
            model_limit_name(model["id"]): model["max_concurrency"]
            for model in data["models"]
            if not model["strict"]
        },
    }
    return {name: read_limit(name, value) for name, value in values.items()}


def effective_changes(configured: Mapping[str, Any], changes: Mapping[str, LimitChange]) -> dict[str, Any]:
    """Return the changed limits by name whose configured value has not changed since.

    Raises:
        ConfigError: a value is invalid for its limit.
    """
    effective = {}
    for name, change in changes.items():
        try:
            value, replaced = read_limit(name, change.value), read_limit(name, change.replaces)
        except ValueError as error:
            raise ConfigError(
                f"limits.json: {name}: {error}; `codetaste limit RUN --reset` discards it"
            ) from error
        if name in configured and configured[name] == replaced:
            effective[name] = value
    return effective


@dataclass(slots=True)
class RuntimeLimits:
    """The limits of one session. ``base`` is the config as written, ``config`` includes the changes.

    ``messages`` has one line for each difference from the written config.
    """

    base: Config
    config: Config
    directory: Path
    messages: tuple[str, ...] = ()
    in_force: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, base: Config, directory: Path) -> RuntimeLimits:
        """Apply the changes in ``directory``, the run's folder, to its config.

        Raises:
            ConfigError: the file with the changes is damaged.
        """
        configured = configured_limits(base.model_dump(mode="json"))
        changes = read_changes(directory)
        effective = effective_changes(configured, changes)
        messages = [
            f"{name}: {format_limit(name, value)} by `codetaste limit`; "
            f"the config says {format_limit(name, configured[name])}"
            for name, value in effective.items()
        ]
        stale = sorted(changes.keys() - effective.keys())
        if stale:
            messages.append(
                f"{', '.join(stale)}: set by `codetaste limit`, but overridden by the newer config"
            )
        return cls(base, _with_limits(base, effective), directory, tuple(messages), configured | effective)

    def drop_stale(self) -> None:
        """Remove overridden changes from ``limits.json``, so that they do not become effective again."""
        changes = read_changes(self.directory)
        effective = effective_changes(configured_limits(self.base.model_dump(mode="json")), changes)
        if effective.keys() != changes.keys():
            write_changes(self.directory, {name: changes[name] for name in effective})

    async def apply_initial(self, session: Session, models: Mapping[str, MeteredModel]) -> None:
        """Set the session's limits to the effective ones, and journal all of them."""
        usd, wall_s = self.in_force[BUDGET], self.in_force[TIME]
        limits = replace(session.budget.limits, usd=usd, wall_s=wall_s)
        if limits != session.budget.limits:
            await session.set_limits(limits)
        self._journal(session, models)

    async def apply(
        self, session: Session, models: Mapping[str, MeteredModel], changes: Mapping[str, LimitChange]
    ) -> None:
        """Apply changed limits to the session and its models, note them, and journal them.

        Raises:
            ConfigError: a value is invalid; nothing is changed.
        """
        configured = configured_limits(self.base.model_dump(mode="json"))
        wanted = configured | effective_changes(configured, changes)
        unpriced = [model.id for model in models.values() if model.price is None]
        if wanted[BUDGET] is not None and wanted[BUDGET] != self.in_force[BUDGET] and unpriced:
            raise ConfigError(
                f"a budget in dollars cannot be enforced: model {unpriced[0]} has no known price"
            )
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
            if model_limit_name(model_id) in new:
                # Models that a provider counts together share a limiter: the smallest limit applies.
                together = [each for each, other in models.items() if other.limiter is model.limiter]
                model.limiter.maximum = min(wanted.get(model_limit_name(each), 1) for each in together)
        before, self.in_force = self.in_force, wanted
        self._journal(session, models)
        for name, value in new.items():
            session.note(f"{name} is {format_limit(name, value)} now, was {format_limit(name, before[name])}")

    def _journal(self, session: Session, models: Mapping[str, MeteredModel]) -> None:
        """Journal the limits in force, without those of unused models."""
        unused = {model_limit_name(model.id) for model in self.base.models if model.id not in models}
        limits = {
            name: limit_to_json(name, value) for name, value in self.in_force.items() if name not in unused
        }
        session.record.note({"event": "limits_applied", "limits": limits})
        for model_id, model in models.items():
            if (most := model.limiter.maximum) != self.in_force.get(model_limit_name(model_id)):
                # It is strict, or shares a limiter with a model whose limit is lower.
                session.record.note({"event": "capacity", "resource": f"model {model_id}", "capacity": most})


def limiter_summary(models: Mapping[str, MeteredModel]) -> list[str]:
    """Return one line per limiter: requests in flight, waiting and paused."""
    lines = []
    for limiter in dict.fromkeys(model.limiter for model in models.values()):
        now = limiter.statistics()
        line = f"{limiter.name}: {now.in_flight} of {now.limit} in flight"
        line += f" (of {now.maximum} at best)" if now.limit < now.maximum else ""
        line += f", {now.waiting} waiting" if now.waiting else ""
        line += f", all paused for {format_duration(now.paused_s)}" if now.paused_s else ""
        lines.append(line)
    return lines


def _with_limits(config: Config, changed: Mapping[str, Any]) -> Config:
    run = {name.removeprefix("run."): value for name, value in changed.items() if name.startswith("run.")}
    models = tuple(
        model.model_copy(update={"max_concurrency": changed[model_limit_name(model.id)]})
        if model_limit_name(model.id) in changed
        else model
        for model in config.models
    )
    sandbox = {"max": changed[SANDBOXES]} if SANDBOXES in changed else {}
    return config.model_copy(
        update={
            "run": config.run.model_copy(update=run),
            "sandbox": config.sandbox.model_copy(update=sandbox),
            "models": models,
        }
    )


def load_limits(base: Config, path: Path) -> RuntimeLimits:
    """Return the limits of the run of a config that was read from ``path``."""
    return RuntimeLimits.load(base, runs_folder(path, base.run.out) / base.run.name)
