"""``codetaste environment``: one module for each subcommand."""

from __future__ import annotations

from cyclopts import App

environment = App(name="environment")
environment.command(
    "codetaste.cli.commands.environment.build:build",
    help="""\
    Prove the environments of instances from existing scripts, and build their runtime images.

    No model is called: a config with [environment] calls an agent where there are no scripts.
    Exit code 1 if an instance has no environment that passes all gates.
    """,
)
environment.command(
    "codetaste.cli.commands.environment.check:check",
    help="""\
    Run the gates on the environments of instances, and build no image.

    Exit code 1 if an instance has no environment that passes all gates.
    """,
)
