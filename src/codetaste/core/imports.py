"""Imports at run time: of an object that a config names, and of a package that may be missing."""

from __future__ import annotations

import importlib
import sys
from hashlib import sha256
from types import ModuleType
from typing import TYPE_CHECKING, Any

from codetaste.core.files import read_regular_file
from codetaste.core.text import did_you_mean, printable
from codetaste.errors import ConfigError, ToolMissing

if TYPE_CHECKING:
    from pathlib import Path

_MAX_SOURCE_BYTES = 16 * 1024**2


def load_object(text: str, *, base_dir: Path) -> Any:  # noqa: ANN401 - whatever the path names
    """Import the object that ``text`` names: ``package.module:name``, or ``path/to/file.py:name``.

    Args:
        text: the name.
        base_dir: file paths are relative to it.

    Raises:
        ConfigError: the module, file or name does not exist, or importing it failed.
    """
    where, separator, name = text.rpartition(":")
    is_file = where.endswith(".py")
    if not separator or not name or not (is_file or all(map(str.isidentifier, where.split(".")))):
        raise ConfigError(f"{text!r} is not an import path: write package.module:name or file.py:name")
    module = _load_file(base_dir / where) if is_file else _load_module(where)
    try:
        return getattr(module, name)
    except AttributeError:
        names = [each for each in vars(module) if not each.startswith("_")]
        raise ConfigError(f"{where} has no {name!r}{did_you_mean(name, names)}") from None


def import_package(name: str, use: str, install: str = "") -> Any:  # noqa: ANN401 - a module
    """Import a package that only some users need.

    Args:
        name: of the module.
        use: what needs it, as the subject of the message.
        install: what to install; default the package itself.

    Raises:
        ToolMissing: it is not installed, or cannot be imported.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ToolMissing(
            f"{use} needs the Python package {package} ({error}); install {install or package}"
        ) from error


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            raise ConfigError(
                f"no module named {error.name!r}; a file is written as path/to/file.py:name"
            ) from error
        raise ConfigError(f"importing {name} failed: {_format_error(error)}") from error


def _load_file(path: Path) -> ModuleType:
    """Import a file once, under a name derived from its path, so that its dataclasses and pickles work.

    Python's own cache of compiled files is not used: it may be anything, such as a named pipe.
    """
    try:
        path = path.resolve()
        name = f"codetaste_user_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
        if name in sys.modules:
            return sys.modules[name]
        source = read_regular_file(path, _MAX_SOURCE_BYTES)
    except FileNotFoundError:
        raise ConfigError(f"no file {path}") from None
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, or no path at all
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{printable(str(path))}: {reason}") from None
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        exec(compile(source, path, "exec", dont_inherit=True), vars(module))  # noqa: S102 - the user's own code
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(f"importing {path} failed: {_format_error(error)}") from error
    return module


def _format_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
