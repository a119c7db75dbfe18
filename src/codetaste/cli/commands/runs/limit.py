"""``codetaste limit``: change the limits of a run that is under way, or of its next session."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import RUN_CONFIG_FILE
from codetaste.cli.options import AsJson, Flag, Several
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result
from codetaste.core.files import read_text_file
from codetaste.core.text import did_you_mean
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

_APPLY_TIMEOUT_S = 5.0
_POLL_INTERVAL_S = 0.1
_OPTIONS = {BUDGET: "--budget-usd", TIME: "--time-limit", JOBS: "--jobs", SANDBOXES: "--sandboxes"}


@command
def limit(
    run: Path,
    /,
    *,
    budget_usd: str | None = None,
    time_limit: str | None = None,
    jobs: str | None = None,
    sandboxes: str | None = None,
    model: Several = (),
    reset: Flag = False,
    json_: AsJson = False,
) -> int:
    """Change the limits of a run, and print the effective ones.

    Args:
        run: The run's folder (runs/NAME), or its name.
        budget_usd: US dollars for the whole run, or "none".
        time_limit: Wall time of the whole run, such as 2h, or "none".
        jobs: Maximum number of running jobs.
        sandboxes: Maximum number of sandboxes.
        model: Maximum number of requests in flight to a model, as ID=8. May be given several times.
        reset: Return to the limits of the config, except for those given with this option.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the run or a model does not exist, or a value is invalid; nothing is changed.
        JournalError: the run's folder cannot be read or written.
    """
    texts = {BUDGET: budget_usd, TIME: time_limit, JOBS: jobs, SANDBOXES: sandboxes}
    watcher = RunWatcher(run)
    watcher.poll()
    configured = _read_configured(watcher.directory)
    requested = _parse_requested(texts, model, configured)
    _check_prices(requested, watcher)
    changes = {} if reset else read_changes(watcher.directory)
    changes = {name: changes[name] for name in effective_changes(configured, changes)}
    for name, value in requested.items():
        changes[name] = LimitChange(limit_to_json(name, value), limit_to_json(name, configured[name]))
        if value == configured[name]:
            del changes[name]
    if requested or reset:
        write_changes(watcher.directory, changes)
    effective = configured | effective_changes(configured, changes)
    applied = _wait_until_applied(watcher, effective)
    if json_:
        print_result(_limits_to_json(watcher, configured, effective, applied))
    else:
        print_result(_format_limits(watcher, configured, effective, applied))
    return 0


def _read_configured(directory: Path) -> dict[str, Any]:
    """Return the limits of the config that the run's latest session was started with."""
    path = directory / RUN_CONFIG_FILE
    try:
        return configured_limits(json.loads(read_text_file(path)))
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file, the run has not started; set limits in its config"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{path}: not the config of a run; repeat the run's command") from error


def _parse_requested(
    texts: Mapping[str, str | None], models: Sequence[str], configured: Mapping[str, Any]
) -> dict[str, Any]:
    """Parse the limits on the command line, None for no change; all problems are reported together."""
    given = [(name, _OPTIONS[name], text) for name, text in texts.items() if text is not None]
    problems: list[str] = []
    known = [name.split(".", 1)[1].removesuffix(".max_concurrency") for name in _models(configured)]
    for text in models:
        model_id, separator, count = text.rpartition("=")
        if not separator:
            problems.append(f"--model {text}: write it as ID=8")
        elif model_id not in known:
            problems.append(
                f"--model {text}: the run has no model {model_id!r} whose limit can change"
                f"{did_you_mean(model_id, known)}"
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


def _limits_to_json(
    watcher: RunWatcher, configured: Mapping[str, Any], effective: Mapping[str, Any], applied: bool
) -> str:
    limits = {
        name: {"value": limit_to_json(name, value), "configured": limit_to_json(name, configured[name])}
        for name, value in effective.items()
    }
    owner = lock_owner(watcher.directory) or None
    run = {"directory": str(watcher.directory), "owner": owner, "applied": applied}
    return json_document({**run, "limits": limits})


def _format_limits(
    watcher: RunWatcher, configured: Mapping[str, Any], effective: Mapping[str, Any], applied: bool
) -> str:
    lines = []
    for name, value in effective.items():
        changed = value != configured[name]
        suffix = f" (the config says {format_limit(name, configured[name])})" if changed else ""
        lines.append(f"{name:<24} {format_limit(name, value)}{suffix}")
    owner = lock_owner(watcher.directory)
    if applied:
        lines.append(f"in force in {owner}")
    elif owner:
        status = f"codetaste status {watcher.directory}"
        lines.append(f"{owner} has not applied them yet; `{status}` shows the limits in force")
    else:
        lines.append(
            "no process is running it: these apply to the next session, unless its config changes them"
        )
    return "\n".join(lines)
