"""``codetaste limit``: other limits for a run that is under way, or for its next session."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.command import say
from codetaste.errors import ConfigError
from codetaste.limits import (
    BUDGET,
    JOBS,
    SANDBOXES,
    TIME,
    configured_limits,
    of_model,
    plain_limit,
    prevailing,
    read_limit,
    said_limit,
)
from codetaste.mistakes import suggestion
from codetaste.orchestration.control import Change, read_changes, write_changes
from codetaste.orchestration.storage import owner_of
from codetaste.report.status import Watched

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_PATIENCE_S = 5.0
_LOOK_S = 0.1
_OPTIONS = {BUDGET: "--budget-usd", TIME: "--time-limit", JOBS: "--jobs", SANDBOXES: "--sandboxes"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for; "" asks for nothing. ``models`` are like ``ID=8``."""

    run: Path
    budget_usd: str = ""
    time_limit: str = ""
    jobs: str = ""
    sandboxes: str = ""
    models: Sequence[str] = ()
    reset: bool = False
    json: bool = False


def limit(wanted: Wanted) -> int:
    """Change the limits of a run, and say which hold; returns the exit code, 0.

    Raises:
        ConfigError: there is no such run or model, or a value can be no such limit; nothing is changed.
        JournalError: the run's folder cannot be read or written.
    """
    watched = Watched(wanted.run)
    watched.look()
    configured = _configured(watched.directory)
    asked = _asked(wanted, configured)
    _priced(asked, watched)
    changes = {} if wanted.reset else read_changes(watched.directory)
    changes = {name: changes[name] for name in prevailing(configured, changes)}
    for name, value in asked.items():
        changes[name] = Change(plain_limit(name, value), plain_limit(name, configured[name]))
        if value == configured[name]:
            del changes[name]
    if asked or wanted.reset:
        write_changes(watched.directory, changes)
    holding = configured | prevailing(configured, changes)
    obeyed = _obeyed(watched, holding)
    _tell(wanted, watched, configured, holding, obeyed)
    return 0


def _configured(directory: Path) -> dict[str, Any]:
    """Return the limits of the config that the run's latest session was started with."""
    path = directory / "config.json"
    try:
        return configured_limits(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise ConfigError(f"{path}: not there, so the run has not begun; set limits in its config") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise ConfigError(f"{path}: not the config of a run; give the run's command again") from error


def _asked(wanted: Wanted, configured: Mapping[str, Any]) -> dict[str, Any]:
    """Read what the command line asks for; all that is wrong with it at once."""
    said = {
        BUDGET: wanted.budget_usd,
        TIME: wanted.time_limit,
        JOBS: wanted.jobs,
        SANDBOXES: wanted.sandboxes,
    }
    given = [(name, _OPTIONS[name], text) for name, text in said.items() if text]
    problems: list[str] = []
    known = [name.split(".", 1)[1].removesuffix(".max_concurrency") for name in _models(configured)]
    for text in wanted.models:
        model_id, separator, count = text.rpartition("=")
        if not separator:
            problems.append(f"--model {text}: write it as ID=8")
        elif model_id not in known:
            problems.append(f"--model {text}: the run has no model {model_id!r}{suggestion(model_id, known)}")
        else:
            given.append((of_model(model_id), f"--model {model_id}", count))
    asked = {}
    for name, option, text in given:
        try:
            asked[name] = read_limit(name, text)
        except ValueError as error:
            problems.append(f"{option}: {error}")
    if problems:
        raise ConfigError(*problems)
    return asked


def _models(names: Mapping[str, Any]) -> Iterator[str]:
    return (name for name in names if name.startswith("models."))


def _priced(asked: Mapping[str, Any], watched: Watched) -> None:
    """Refuse a budget in dollars that cannot hold because a model has no price."""
    unpriced = [name for name, told in watched.sights.prices.items() if told.get("price") is None]
    if asked.get(BUDGET) is not None and unpriced:
        raise ConfigError(
            f"--budget-usd: no budget in dollars can hold: model {unpriced[0]} has no known price; "
            "write price = { … } in its [[models]]"
        )


def _obeyed(watched: Watched, holding: Mapping[str, Any]) -> bool:
    """Wait a little for the process that is at work to obey; False when none is, or it does not."""
    until = time.monotonic() + _PATIENCE_S
    while owner_of(watched.directory) and time.monotonic() < until:
        watched.look()
        in_force = watched.sights.limits
        # Amounts that are the same may be written differently.
        if in_force and all(read_limit(name, in_force[name]) == holding.get(name) for name in in_force):
            return True
        time.sleep(_LOOK_S)
    return False


def _tell(
    wanted: Wanted, watched: Watched, configured: Mapping[str, Any], holding: Mapping[str, Any], obeyed: bool
) -> None:
    owner = owner_of(watched.directory)
    if wanted.json:
        limits = {
            name: {"value": plain_limit(name, value), "configured": plain_limit(name, configured[name])}
            for name, value in holding.items()
        }
        told = {"directory": str(watched.directory), "owner": owner or None, "in_force": obeyed}
        say(json.dumps({**told, "limits": limits}, indent=2))
        return
    for name, value in holding.items():
        other = value != configured[name]
        instead = f" (the config says {said_limit(name, configured[name])})" if other else ""
        say(f"{name:<24} {said_limit(name, value)}{instead}")
    if obeyed:
        say(f"in force in {owner}")
    elif owner:
        say(f"{owner} has not obeyed yet; `codetaste status {wanted.run}` says what is in force")
    else:
        say("nobody is at work on it: these hold for the next session, unless its config says something new")
