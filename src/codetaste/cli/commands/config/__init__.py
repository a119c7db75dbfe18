"""``codetaste config`` and ``codetaste init``: one module for each subcommand."""

from __future__ import annotations

from cyclopts import App

config = App(name="config")
config.command(
    "codetaste.cli.commands.config.check:check",
    help="Check a config file and everything that it names, without starting anything.",
)
config.command(
    "codetaste.cli.commands.config.schema:schema",
    help="Print the JSON schema of config files, for editors that complete and check TOML.",
)
