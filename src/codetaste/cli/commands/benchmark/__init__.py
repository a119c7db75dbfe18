"""``codetaste benchmark``: one module for each subcommand."""

from __future__ import annotations

from cyclopts import App

benchmark = App(name="benchmark")
benchmark.command(
    "codetaste.cli.commands.benchmark.fetch:fetch",
    usage="Usage: codetaste benchmark fetch [OPTIONS] [NAME]",
    help="""\
    Download a published benchmark, verify it and unpack it.

    An interrupted download continues. An existing folder is verified and not changed.
    """,
)
benchmark.command(
    "codetaste.cli.commands.benchmark.new:new",
    help="Make an instance of a benchmark from two commits of a local repository.",
)
benchmark.command(
    "codetaste.cli.commands.benchmark.from_repo:from_repo",
    name="from-repo",
    help="Make instances of the refactorings in the history of a local clone, without a config.",
)
benchmark.command(
    "codetaste.cli.commands.benchmark.list:print_instances", name="list", help="List a benchmark's instances."
)
benchmark.command(
    "codetaste.cli.commands.benchmark.show:show",
    help="Show one instance: commits, descriptions, rules, golden patch, baseline, clone.",
)
benchmark.command(
    "codetaste.cli.commands.benchmark.check:check",
    help="""\
    Check which instances are sound: the human's patch follows every rule, an empty patch follows none.

    Descriptions, rules, both trees and the recorded tests are checked, too. Instances without a clone are
    listed as skipped. Exit code 1 if an instance is not sound, or none was checked.
    """,
)
benchmark.command(
    "codetaste.cli.commands.benchmark.adopt:adopt",
    help="""\
    Put what a run has made into a benchmark folder: descriptions, rules, environments, golden patches.

    The folder is made or extended, and nothing in it is replaced unless asked for. An instance is adopted
    whole or not at all. May be repeated. Exit code 1 if an instance is left out because of a conflict.
    """,
)
benchmark.command(
    "codetaste.cli.commands.benchmark.export:export",
    help="""\
    Write instances as tasks of Harbor, with golden patch and a verifier of their own.

    Nothing of the golden state and no rule is in what an agent sees. Exit code 1 if an instance is left out.
    """,
)
