"""What people wrote about a change: the message of its commit, its pull requests, and linked issues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, ValidationError

from codetaste.agent.tool import truncate
from codetaste.benchmark.layout import change_path
from codetaste.core.files import read_regular_file, write_atomically
from codetaste.core.text import one_line
from codetaste.errors import ConfigError, SourceError
from codetaste.source.checkout import open_origin
from codetaste.source.git import run_git
from codetaste.source.origin import GitOrigin

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance

_MAX_FILE_BYTES = 4 * 1024**2


class Discussion(BaseModel):
    """A pull request or an issue; texts are "" where it has none."""

    model_config = ConfigDict(frozen=True)

    number: int = 0
    title: str = ""
    body: str = ""

    def cut(self, chars: int) -> Discussion:
        """Return it with at most ``chars`` characters of its text."""
        return self.model_copy(update={"title": one_line(self.title), "body": truncate(self.body, chars)})


class ChangeTexts(BaseModel):
    """What people wrote about the change of an instance: ``change.json`` beside its descriptions."""

    model_config = ConfigDict(frozen=True)

    message: str | None = None
    """Message of the golden commit; None to read it from the repository."""
    pull_requests: tuple[Discussion, ...] = ()
    """Those that merged the change."""
    issues: tuple[Discussion, ...] = ()
    """Those that the commit or its pull requests link."""


def read_change(benchmark: Benchmark, instance: Instance) -> ChangeTexts:
    """Return the texts in ``change.json`` of an instance; none if there is no such file. Blocking.

    Raises:
        ConfigError: the file cannot be read, or is not of this form.
    """
    path = change_path(benchmark.root, instance)
    try:
        return ChangeTexts.model_validate_json(read_regular_file(path, _MAX_FILE_BYTES))
    except FileNotFoundError:
        return ChangeTexts()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{path}: {place + ': ' if place else ''}{one_line(first['msg'])}") from None


def write_change(root: Path, instance: Instance, texts: ChangeTexts) -> None:
    """Write the texts of an instance of the benchmark ``root``. Blocking.

    Raises:
        StorageFull: no space left.
        JournalError: the file cannot be written.
    """
    write_atomically(change_path(root, instance), texts.model_dump_json(indent=2) + "\n")


async def golden_message(benchmark: Benchmark, instance: Instance, cache: Path) -> str:
    """Return the message of the golden commit; "" where the code comes from no repository.

    Raises:
        SourceError: the repository cannot be read.
    """
    origin = benchmark.origin(instance)
    if not isinstance(origin, GitOrigin):
        return ""
    repository = await open_origin(origin, cache)
    done = await run_git("log", "-1", "--format=%B", origin.golden, "--", git_dir=repository.git_dir)
    if not done.ok:
        reason = one_line(done.stderr) or done.exit_code
        raise SourceError(f"{repository.label}: the message of {origin.golden[:12]} cannot be read: {reason}")
    return done.output.decode("utf-8", "replace").strip()


async def complete_change(benchmark: Benchmark, instance: Instance, cache: Path) -> ChangeTexts:
    """Return the texts about the change of an instance, with the message from its repository if need be.

    Raises:
        ConfigError: ``change.json`` cannot be read, or is not of its form.
        SourceError: the repository cannot be read.
    """
    texts = await to_thread.run_sync(read_change, benchmark, instance)
    if texts.message is not None:
        return texts
    return texts.model_copy(update={"message": await golden_message(benchmark, instance, cache)})
