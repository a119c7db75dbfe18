"""``Adapter``: a folder that describes a CLI agent, read and checked.

It contains no code except scripts that run in the sandbox.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from codetaste.benchmark.layout import AGENT_CONFIG_FILE
from codetaste.core.files import open_regular_file
from codetaste.core.paths import resource_dir
from codetaste.core.section import read_toml, validation_messages
from codetaste.core.text import did_you_mean
from codetaste.errors import ConfigError
from codetaste.harness.manifest import NAME_PATTERN, VERSION_PATTERN, AgentManifest
from codetaste.harness.published import published_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.harness.manifest import AgentProtocol, Scalar

MANIFEST_FILE = "agent.toml"
_MAX_FILES, _MAX_BYTES = 1000, 64 * 1024**2


@dataclass(frozen=True, slots=True)
class Adapter:
    """A CLI agent that can be installed and run.

    Attributes:
        name: its name in configs, which is its folder's name.
        folder: its folder on the host.
        manifest: its ``agent.toml``.
        digest: SHA-256 of all its files, in hexadecimal digits.
        published: whether the folder follows the published contract (``run_agent``) and has no agent.toml.
    """

    name: str
    folder: Path
    manifest: AgentManifest
    digest: str
    published: bool = False

    @property
    def protocol(self) -> AgentProtocol:
        """The protocol in which it calls its model."""
        return self.manifest.protocol

    def choose_version(self, wanted: str | None = None) -> str:
        """Return the release to install: ``wanted``, which need not be a tested one, or the default.

        Raises:
            ConfigError: ``wanted`` is not a valid release name.
        """
        version = self.manifest.default if wanted is None else wanted
        if not re.fullmatch(VERSION_PATTERN, version):
            tested = ", ".join(self.manifest.versions)
            raise ConfigError(
                f"version {version!r}: {self.name} has no such release; tested releases: {tested}"
            )
        return version

    def resolve_options(self, given: Mapping[str, Any]) -> dict[str, Scalar]:
        """Return all options with their values.

        Raises:
            ConfigError: one line for each option that is unknown or of the wrong type.
        """
        try:
            return self.manifest.resolve_options(dict(given))
        except ValueError as error:
            raise ConfigError(*(f"options.{line}" for line in error.args)) from None


def adapter_names() -> list[str]:
    """Return the names of the adapters that come with codetaste."""
    return sorted(path.parent.name for path in resource_dir("agents").glob(f"*/{MANIFEST_FILE}"))


def load_adapter(harness: str, base_dir: Path) -> Adapter:
    """Read the adapter that a config's ``harness`` names.

    Args:
        harness: the name of an included adapter, or the path of a folder relative to ``base_dir``.
        base_dir: the config file's folder.

    Raises:
        ConfigError: there is no such adapter, or one line for each mistake in it.
    """
    if re.fullmatch(NAME_PATTERN, harness) and harness in adapter_names():
        return read_adapter(resource_dir("agents") / harness)
    folder = base_dir / harness
    if not os.path.isdir(folder):  # noqa: PTH112 - a Path raises on an over-long name
        known = [*adapter_names(), "codetaste"]
        raise ConfigError(
            f"harness {harness!r}: neither an agent that comes with codetaste nor a folder"
            f"{did_you_mean(harness, known)}"
        )
    return read_adapter(folder.resolve())


def read_adapter(folder: Path) -> Adapter:
    """Read the adapter in ``folder``.

    Raises:
        ConfigError: one line for each mistake.
    """
    if not re.fullmatch(NAME_PATTERN, name := folder.name.lower().replace("_", "-").replace(".", "-")):
        raise ConfigError(f"{folder}: the name of an agent's folder may have only letters, digits and -")
    if not (folder / MANIFEST_FILE).is_file():
        if (folder / AGENT_CONFIG_FILE).is_file():
            return Adapter(name, folder, published_manifest(folder), _digest(folder), published=True)
        raise ConfigError(f"{folder}: contains neither {MANIFEST_FILE} nor {AGENT_CONFIG_FILE}")
    manifest = _read_manifest(folder / MANIFEST_FILE)
    missing = [
        f"{folder / MANIFEST_FILE}: {key}: there is no file {script} beside it"
        for key, script in (("install", manifest.install), ("run", manifest.run))
        if script and not (folder / script).is_file()
    ]
    if missing:
        raise ConfigError(*missing)
    return Adapter(name, folder, manifest, _digest(folder))


def _read_manifest(path: Path) -> AgentManifest:
    raw = read_toml(path)
    try:
        return AgentManifest.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(
            *(f"{path}: {line}" for line in validation_messages(error, raw, AgentManifest))
        ) from None


def _digest(folder: Path) -> str:
    total = hashlib.sha256()
    size = 0
    files = sorted(path for path in folder.rglob("*") if not path.is_dir())
    if len(files) > _MAX_FILES:
        raise ConfigError(f"{folder}: more than {_MAX_FILES} files, so it is not an agent's folder")
    for path in files:
        if path.is_symlink() or not stat.S_ISREG(path.lstat().st_mode):
            raise ConfigError(
                f"{path}: an agent's folder may have only regular files, so that it can be copied"
            )
        try:
            with open_regular_file(path) as file:
                content = file.read(_MAX_BYTES - size + 1)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
        size += len(content)
        if size > _MAX_BYTES:
            raise ConfigError(f"{folder}: more than {_MAX_BYTES} bytes, so it is not an agent's folder")
        for part in (path.relative_to(folder).as_posix().encode(), content):
            total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()
