"""One run of one config file. The package can be called, as ``codetaste.run(config)``.

``python -m codetaste.run`` and ``codetaste run`` are the commands; ``run_config`` starts the former in a
process of its own, so that it works in notebooks, whose event loop runs, and in threads.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from codetaste.errors import Cause, CodetasteError, ConfigError, ToolMissing

if TYPE_CHECKING:
    from collections.abc import Sequence

_ERRORS: dict[str, type[CodetasteError]] = {Cause.CONFIG: ConfigError, Cause.TOOL_MISSING: ToolMissing}


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that has ended.

    Attributes:
        exit_code: 0 if every job ended well, 1 if one did not, 130 if the run was stopped.
        folder: its folder, which ``codetaste.load`` reads; None if it was stopped before it had one.
        summary: the result as ``codetaste run --json`` prints it.
    """

    exit_code: int
    folder: Path | None
    summary: Mapping[str, Any]


def run_config(
    config: str | os.PathLike[str] | Mapping[str, Any],
    *,
    settings: Sequence[str] = (),
    only: Sequence[str] = (),
    repeat_changed: bool = False,
) -> FinishedRun:
    """Run a config to its end, continuing where an earlier run of the same name ended. Blocking.

    Its messages go to standard error. Ctrl-C stops it cleanly, a second one faster.

    Args:
        config: a TOML file; or its content as a mapping, whose paths are relative to the working directory.
        settings: overrides such as "run.budget_usd=5".
        only: globs of the keys of the jobs to run; default all.
        repeat_changed: do finished jobs again where what decides their results has changed; they cost again.

    Raises:
        ConfigError: the config is invalid; or finished jobs would be done again without ``repeat_changed``.
        ToolMissing: a program is missing.
        CodetasteError: the run could not begin or go on, as without space.
    """
    if not isinstance(config, Mapping):
        return _run(os.fspath(config), settings, only, repeat_changed=repeat_changed)
    text = render_toml(config)
    try:
        with tempfile.NamedTemporaryFile("w", dir=Path.cwd(), prefix=".codetaste-", suffix=".toml") as file:
            file.write(text)
            file.flush()
            try:
                return _run(file.name, settings, only, repeat_changed=repeat_changed)
            except ConfigError as error:
                raise ConfigError(*(each.replace(file.name, "config") for each in error.problems)) from None
    except OSError as error:
        raise ConfigError(f"{Path.cwd()}: the config cannot be written there: {error.strerror}") from None


def _run(config: str, settings: Sequence[str], only: Sequence[str], *, repeat_changed: bool) -> FinishedRun:
    options = [*(f"--set={each}" for each in settings), *(f"--only={each}" for each in only)]
    command = [sys.executable, "-m", __name__, "--json", *options, *(["--yes"] if repeat_changed else [])]
    with tempfile.TemporaryFile() as output:
        # In a group of its own Ctrl-C reaches it once, from here: a second signal would hasten it.
        with subprocess.Popen(
            [*command, "--", config],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            process_group=0,
        ) as process:
            _forward(process)
        output.seek(0)
        content = output.read()
    try:
        document = json.loads(content)
    except ValueError:
        raise CodetasteError(f"the run ended with exit code {process.returncode} and no result") from None
    failure = document.get("error")
    if failure and process.returncode != -signal.SIGINT and failure["cause"] != Cause.CANCELLED:
        raise _ERRORS.get(failure["cause"], CodetasteError)(*failure["messages"])
    folder = document.get("directory")
    return FinishedRun(process.returncode, Path(folder) if folder else None, document)


def _forward(process: subprocess.Popen[bytes]) -> None:
    """Write the messages of a process to standard error until it has ended; pass each Ctrl-C on to it."""
    assert process.stderr is not None  # noqa: S101 - it is a pipe
    while True:
        try:
            for line in process.stderr:
                sys.stderr.write(line.decode("utf-8", "replace"))
            process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
        else:
            return


def render_toml(config: Mapping[str, Any]) -> str:
    """Return the content of a config as TOML, a line for each table; what is None is left out.

    Raises:
        ConfigError: a value is none of a config.
    """
    lines = (f"{_toml(str(key))} = {_toml(value)}\n" for key, value in config.items() if value is not None)
    return "".join(lines)


def _toml(value: Any) -> str:  # noqa: ANN401 - any value of a config
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        items = (f"{_toml(str(key))} = {_toml(each)}" for key, each in value.items() if each is not None)
        return f"{{{', '.join(items)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str | os.PathLike):
        return json.dumps(os.fspath(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int | float | Decimal):
        return str(value)
    raise ConfigError(f"config: {type(value).__name__} is no value of a config; write it as text")


class _CallablePackage(ModuleType):
    """This package, also after ``import codetaste.run.config`` has made it an attribute of ``codetaste``."""

    __call__ = staticmethod(run_config)


sys.modules[__name__].__class__ = _CallablePackage
