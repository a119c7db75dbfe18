"""``codetaste limit``: change the limits of a run that is under way, or of its next session."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.console import print_result
from codetaste.core.section import did_you_mean
from codetaste.errors import ConfigError
from codetaste.orchestration.journal.run_lock import lock_owner
from codetaste.orchestration.limit_changes import LimitChange, read_changes, write_changes
from codetaste.report.status.status import RunWatcher
from codetaste.run.limits import (
    BUDGET,
    JOBS,
    SANDBOXES,
    TIME,
    configured_limits,
    effective_changes,
    format_limit,
    limit_to_json,
    model_limit_name,
    read_limit,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_APPLY_TIMEOUT_S = 5.0
_POLL_INTERVAL_S = 0.1
_OPTIONS = {BUDGET: "--budget-usd", TIME: "--time-limit", JOBS: "--jobs", SANDBOXES: "--sandboxes"}


@dataclass(frozen=True, slots=True)
class LimitArguments:
    """Arguments of ``codetaste limit``; "" leaves a limit unchanged. ``models`` are like ``ID=8``."""

    run: Path
    budget_usd: str = ""
    time_limit: str = ""
    jobs: str = ""
    sandboxes: str = ""
    models: Sequence[str] = ()
    reset: bool = False
    json: bool = False


def change_limits(arguments: LimitArguments) -> int:
    """Change the limits of a run, and print the effective ones; returns the exit code, 0.

    Raises:
        ConfigError: the run or a model does not exist, or a value is invalid; nothing is changed.
        JournalError: the run's folder cannot be read or written.
    """
    watcher = RunWatcher(arguments.run)
    watcher.poll()
    configured = _read_configured(watcher.directory)
    requested = _parse_requested(arguments, configured)
    _check_prices(requested, watcher)
    changes = {} if arguments.reset else read_changes(watcher.directory)
    changes = {name: changes[name] for name in effective_changes(configured, changes)}
    for name, value in requested.items():
        changes[name] = LimitChange(limit_to_json(name, value), limit_to_json(name, configured[name]))
        if value == configured[name]:
            del changes[name]
    if requested or arguments.reset:
        write_changes(watcher.directory, changes)
    effective = configured | effective_changes(configured, changes)
    applied = _wait_until_applied(watcher, effective)
    _print_limits(arguments, watcher, configured, effective, applied)
    return 0


def _read_configured(directory: Path) -> dict[str, Any]:
    """Return the limits of the config that the run's latest session was started with."""
    path = directory / "config.json"
    try:
        return configured_limits(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file, the run has not started; set limits in its config"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise ConfigError(f"{path}: not the config of a run; repeat the run's command") from error


def _parse_requested(arguments: LimitArguments, configured: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the limits on the command line; all problems are reported together."""
    texts = {
        BUDGET: arguments.budget_usd,
        TIME: arguments.time_limit,
        JOBS: arguments.jobs,
        SANDBOXES: arguments.sandboxes,
    }
    given = [(name, _OPTIONS[name], text) for name, text in texts.items() if text]
    problems: list[str] = []
    known = [name.split(".", 1)[1].removesuffix(".max_concurrency") for name in _models(configured)]
    for text in arguments.models:
        model_id, separator, count = text.rpartition("=")
        if not separator:
            problems.append(f"--model {text}: write it as ID=8")
        elif model_id not in known:
            problems.append(
                f"--model {text}: the run has no model {model_id!r}{did_you_mean(model_id, known)}"
            )
        else:
            given.append((model_limit_name(model_id), f"--model {model_id}", count))
    requested = {}
    for name, option, text in given:
        try:
            requested[name] = read_limit(name, text)
        except ValueError as error:
            problems.append(f"{option}: {error}")
    if problems:
        raise ConfigError(*problems)
    return requested


def _models(names: Mapping[str, Any]) -> Iterator[str]:
    return (name for name in names if name.startswith("models."))


def _check_prices(requested: Mapping[str, Any], watcher: RunWatcher) -> None:
    """Reject a budget in dollars that cannot be enforced because a model has no price."""
    unpriced = [name for name, entry in watcher.view.prices.items() if entry.get("price") is None]
    if requested.get(BUDGET) is not None and unpriced:
        raise ConfigError(
            f"--budget-usd: a budget in dollars cannot be enforced: model {unpriced[0]} has no known price; "
            "write price = { … } in its [[models]]"
        )


def _wait_until_applied(watcher: RunWatcher, effective: Mapping[str, Any]) -> bool:
    """Wait briefly until the running process applies the limits; False if there is none or it does not."""
    until = time.monotonic() + _APPLY_TIMEOUT_S
    while lock_owner(watcher.directory) and time.monotonic() < until:
        watcher.poll()
        in_force = watcher.view.limits
        # Amounts that are the same may be written differently.
        if in_force and all(read_limit(name, in_force[name]) == effective.get(name) for name in in_force):
            return True
        time.sleep(_POLL_INTERVAL_S)
    return False


def _print_limits(
    arguments: LimitArguments,
    watcher: RunWatcher,
    configured: Mapping[str, Any],
    effective: Mapping[str, Any],
    applied: bool,
) -> None:
    owner = lock_owner(watcher.directory)
    if arguments.json:
        limits = {
            name: {"value": limit_to_json(name, value), "configured": limit_to_json(name, configured[name])}
            for name, value in effective.items()
        }
        run = {"directory": str(watcher.directory), "owner": owner or None, "applied": applied}
        print_result(json.dumps({**run, "limits": limits}, indent=2))
        return
    for name, value in effective.items():
        changed = value != configured[name]
        suffix = f" (the config says {format_limit(name, configured[name])})" if changed else ""
        print_result(f"{name:<24} {format_limit(name, value)}{suffix}")
    if applied:
        print_result(f"in force in {owner}")
    elif owner:
        print_result(
            f"{owner} has not applied them yet; `codetaste status {arguments.run}` shows the limits in force"
        )
    else:
        print_result(
            "no process is running it: these apply to the next session, unless its config changes them"
        )
