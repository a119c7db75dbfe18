"""``codetaste swe-refactor``: one module for each subcommand."""

from __future__ import annotations

from cyclopts import App

swe_refactor = App(name="swe-refactor")
swe_refactor.command(
    "codetaste.run.__main__:run",
    name="build",
    help="Run a config with [swe_refactor.build]: pure refactorings of Java projects become instances.",
)
swe_refactor.command(
    "codetaste.cli.commands.swe_refactor.check:check",
    help="Check a file of instances. Exit code 1 if something in it does not fit together.",
)
swe_refactor.command(
    "codetaste.cli.commands.swe_refactor.list:print_instances", name="list", help="List a file's instances."
)
swe_refactor.command(
    "codetaste.cli.commands.swe_refactor.show:show",
    help="Show one instance: refactoring, target, places, context, verification.",
)
swe_refactor.command(
    "codetaste.cli.commands.swe_refactor.explain:explain",
    help="Say in which step a commit and its refactorings left a run, and why.",
)
swe_refactor.command(
    "codetaste.cli.commands.swe_refactor.review:review",
    help="Decide in the terminal about a random subset of a file's instances; summarise the decisions.",
)
swe_refactor.command(
    "codetaste.cli.commands.swe_refactor.examples:examples",
    help="Write the pure refactorings of RefactoringMiner's oracle as examples for prompts.",
)
swe_refactor.command(
    "codetaste.cli.commands.swe_refactor.sample:sample",
    help="Draw a sample of a file's instances, stratified by length and type; write it to a new file.",
)
swe_refactor.command(
    "codetaste.cli.commands.swe_refactor.report:report",
    usage="Usage: codetaste swe-refactor report [OPTIONS] RUNS...",
    help="""\
    Print tables of runs: scores, costs, strategies, ranking and failures of models.

    Several runs are merged. Exit code 1 if they have no trial.
    """,
)
