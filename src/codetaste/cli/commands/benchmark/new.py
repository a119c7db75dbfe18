"""``codetaste benchmark new``: make an instance from two commits of a local repository."""

from __future__ import annotations

from pathlib import Path

from anyio import to_thread

from codetaste.benchmark.create import NewInstance, create_instance
from codetaste.benchmark.layout import Track, description_path
from codetaste.cli.options import AsJson, OptionalPath
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result
from codetaste.core.files import read_text_file
from codetaste.errors import ConfigError

_MAX_TEXT_BYTES = 4 * 1024**2


@command
async def new(  # noqa: PLR0913 - its options
    *,
    repo: Path,
    base: str,
    golden: str,
    to: Path = Path("benchmark"),
    name: str = "",
    description: OptionalPath = None,
    open_description: OptionalPath = None,
    language: str = "",
    category: str = "",
    json_: AsJson = False,
) -> int:
    """Add the instance to a benchmark, and print its id.

    Args:
        repo: A clone, bare or not. It is only read, and must stay where it is.
        base: The commit before the refactoring: a hash, a tag or a branch.
        golden: The commit after it.
        to: The folder of the benchmark; it is created.
        name: OWNER/REPO; default local/FOLDER.
        description: File with the task for the instructed track; default the message of the golden commit.
        open_description: File with the task for the open track, which names only the area; default none.
        language: Default that of most changed files.
        category: A word of your own for this kind of refactoring.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the repository, a commit, a name or a text cannot be used, or the instance exists.
        SourceError: git does not end.
        StorageFull: no space left.
        ToolMissing: there is no git.
    """
    files = {Track.INSTRUCTED: description, Track.OPEN: open_description}
    texts = {
        track: await to_thread.run_sync(_read_description, path)
        for track, path in files.items()
        if path is not None
    }
    wanted = NewInstance(repo, base, golden, name, language, category, texts)
    instance = await create_instance(to, wanted)
    found = {
        "instance": instance.id,
        "folder": str(to),
        "language": instance.language,
        "base": instance.commit_hash,
        "golden": instance.golden_commit_hash,
        "description": str(description_path(to, instance, Track.INSTRUCTED)),
    }
    print_result(json_document(found) if json_ else _format(found))
    return 0


def _format(found: dict[str, str]) -> str:
    return f"{found['instance']}: {found['language']}, in {found['folder']}\ntask: {found['description']}"


def _read_description(path: Path) -> str:
    try:
        return read_text_file(path, _MAX_TEXT_BYTES)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 (byte {error.start})") from None
