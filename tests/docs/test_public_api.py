"""Importing codetaste is cheap: heavy libraries come in where they are used, never with a module."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import codetaste

HEAVY = (
    "aiodocker",
    "anthropic",
    "openai",
    "httpx",
    "pypi_simple",
    "requests",
    "rich",
    "ruamel.yaml",
    "jinja2",
)

USERS = {
    "aiodocker": (
        "codetaste.cli.commands.doctor",
        "codetaste.cli.commands.image",
        "codetaste.sandbox.docker",
    ),
    "rich": ("codetaste.report.live.terminal",),
}
"""The modules, and folders of modules, that alone may bring a library; they are imported last."""

IMPORT_ONE_BY_ONE = """
import importlib, sys
heavy = set(sys.argv[1].split(","))
for name in sys.argv[2].split(","):
    importlib.import_module(name)
    for library in sorted(heavy & set(sys.modules)):
        print(f"importing {name} brings {library}")
    heavy -= set(sys.modules)
"""


def test_importing_any_module_brings_no_heavy_library() -> None:
    modules = sorted(module.name for module in pkgutil.walk_packages(codetaste.__path__, "codetaste."))
    assert "codetaste.errors" in modules
    modules.sort(key=lambda name: name.startswith(tuple(user for users in USERS.values() for user in users)))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_ONE_BY_ONE, ",".join(HEAVY), ",".join(modules)],
        capture_output=True,
        text=True,
        check=False,
    )
    expected = [f"importing {users[0]} brings {library}" for library, users in USERS.items()]
    assert (done.stdout.splitlines(), done.stderr, done.returncode) == (expected, "", 0)


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(codetaste.__file__).parent / "py.typed").is_file()
