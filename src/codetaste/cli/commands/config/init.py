"""``codetaste init``: write a config to start from."""

from __future__ import annotations

from pathlib import Path

from codetaste.cli.options import AsJson
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result
from codetaste.core.files import write_atomically
from codetaste.core.paths import resource_dir
from codetaste.errors import ConfigError

_TEMPLATE = "template.toml"
_CONFIG = "codetaste.toml"
_ABOVE, _HERE = b'"../', b'"'
"""Examples name folders of the checkout, which is above them; a copy has these folders beside it."""


@command
def init(folder: Path = Path(), /, *, example: str | None = None, json_: AsJson = False) -> int:
    """Write the files, and print their paths. Existing files are never replaced.

    Args:
        folder: Where to; it is created. Default the working directory.
        example: Copy this example and the files that it needs, instead of the commented config:
            case-study, case-study-methods, compare, describe, mine-local, mine-paper, quickstart,
            quickstart-live, rename, swe-refactor, swe-refactor-build or codetaste100.
        json_: Print the result as JSON.

    Raises:
        ConfigError: there is no such example, or one of the files exists already.
        StorageFull: no space left.
    """
    source = resource_dir("examples")
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder")
    if example is not None:
        names = sorted(
            each.stem for each in source.glob("*.toml") if each.name != _TEMPLATE and "_" not in each.stem
        )
        if example not in names:
            raise ConfigError(f"--example: there is no {example!r}, only {', '.join(names)}")
        found = [source / f"{example}.toml", *sorted(source.glob(f"{example.replace('-', '_')}_*.*"))]
        files = {folder / each.name: each for each in found}
    else:
        files = {folder / _CONFIG: source / _TEMPLATE}
    existing = [
        f"{path}: exists already; remove it, or name another folder" for path in files if path.exists()
    ]
    if existing:
        raise ConfigError(*existing)
    for path, each in files.items():
        content = each.read_bytes()
        write_atomically(path, content.replace(_ABOVE, _HERE) if each.suffix == ".toml" else content)
    written = [str(path) for path in files]
    print_result(json_document({"written": written}) if json_ else "\n".join(written))
    return 0
