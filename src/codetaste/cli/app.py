"""The ``codetaste`` command: its subcommands by import path, with their descriptions.

A subcommand's module is imported when the subcommand runs or its own help is shown. ``codetaste --help``
imports none of them: it lists the first line of each description here.
"""

from __future__ import annotations

from cyclopts import App, Parameter

from codetaste import __version__
from codetaste.console.command import format_default, launch

app = App(
    name="codetaste",
    help="Build and run code-refactoring benchmarks with concurrent agents under hard limits.",
    version=__version__,
    default_parameter=Parameter(show_default=format_default),
)
app.register_install_completion_command(
    help="Install completion of commands and options for the current shell (or --shell bash, zsh, fish)."
)
app.command(
    "codetaste.run.__main__:run",
    help="Run the flows of a config file, continuing where an earlier run of the same name ended.",
)
app.command(
    "codetaste.cli.commands.runs.status:status",
    help="Show the progress of a run, live or finished: jobs, waits, costs, retries and failures.",
)
app.command(
    "codetaste.cli.commands.runs.limit:limit",
    help="""\
    Change the limits of a run while it is under way, or for its next session; print the limits in force.

    A changed limit holds until it is changed again, or until its value in the config changes. A budget below
    the money already spent refuses further calls; calls in flight finish.
    """,
)
app.command(
    "codetaste.cli.commands.runs.settle:settle",
    usage="Usage: codetaste settle [OPTIONS] RUN [CALL]",
    help="""\
    Record the real cost of calls whose cost is unknown, from the provider's bill; or list such calls.

    An interrupted call is charged at its maximum cost until its real cost is known.
    """,
)
app.command(
    "codetaste.cli.commands.evaluate:evaluate",
    help="""\
    Evaluate one patch: IFR and precision from the rules, PASS from recorded test results.

    Exit code 1 if it has no score: it is not a valid patch, does not apply, or a scan is partial.
    """,
)
app.command(
    "codetaste.cli.commands.report:report",
    usage="Usage: codetaste report [OPTIONS] [RUNS...]",
    help="""\
    Print tables of runs and published outputs: comparison, the paper's tables, costs, discovered rules.

    Several runs are merged. Exit code 1 if they have neither a trial nor a discovered rule.
    """,
)
app.command(
    "codetaste.cli.commands.runs.view:view",
    usage="Usage: codetaste view [OPTIONS] RUNS...",
    help="""\
    Serve the pages of runs to a browser, live while they go on: jobs, waits, costs, events, trials.

    Only this machine can read them, unless --host names another address: then a token is needed.
    """,
)
app.command(
    "codetaste.cli.commands.runs.case_study:case_study",
    help="""\
    Let an agent compare the trials of a run with the golden patch, or label what failed, with evidence.

    What was made is not made again. The reports are filed in the run's folder, and its page links them.
    """,
)
app.command(
    "codetaste.cli.commands.runs.export:export",
    usage="Usage: codetaste export [OPTIONS] --to FORMAT -o DIR RUNS...",
    help="Write the trials of runs as ATIF trajectories, or as logs for Inspect's viewer.",
)
app.command(
    "codetaste.cli.commands.import_:import_",
    name="import",
    help="""\
    Import published outputs as a run, to report them together with runs of codetaste.

    Problems in single folders are listed and counted; everything else is imported.
    """,
)
app.command("codetaste.cli.commands.benchmark:benchmark", help="Download, make, list and check a benchmark.")
mine = App(name="mine", help="Mine a benchmark from commits, and explain its filters.")
mine.command(
    "codetaste.run.__main__:run",
    help="Run a config with [mine]: mine a benchmark, and carry its instances through the other sections.",
)
mine.command(
    "codetaste.cli.commands.benchmark.explain:explain",
    help="Walk one commit through all filters, and show each number. Exit code 1 if one of them drops it.",
)
app.command(mine)
app.command(
    "codetaste.cli.commands.swe_refactor:swe_refactor",
    name="swe-refactor",
    help="Build, list and check instances of SWE-Refactor, pure Java refactorings; report its trials.",
)
app.command(
    "codetaste.cli.commands.benchmark.review:review",
    usage="Usage: codetaste review [OPTIONS] FOLDER",
    help="""\
    Review the task descriptions of a benchmark: accept, edit or reject each; later runs obey.

    What was rejected is not used and is described anew; what was edited or accepted is never replaced.
    """,
)
app.command(
    "codetaste.cli.commands.config.init:init",
    help="Write a commented config to start from, or copy an example.",
)
app.command("codetaste.cli.commands.config:config", help="Check config files; print their JSON schema.")
app.command(
    "codetaste.cli.commands.installation.agents:agents", help="List and install command-line coding agents."
)
app.command(
    "codetaste.cli.commands.installation.java:java",
    help="List the JDKs and Java tools of this machine, and install what is missing.",
)
app.command(
    "codetaste.cli.commands.environment:environment",
    help="Prove execution environments of instances, and build their images.",
)
app.command("codetaste.cli.commands.rules:rules", help="Work with OpenGrep rules.")
app.command(
    "codetaste.cli.commands.tool:tool",
    help="Try the rule agent's tools on a real instance, without any model.",
)
app.command(
    "codetaste.cli.commands.image:image", help="Build and list the images of coding agents' containers."
)
app.command(
    "codetaste.cli.commands.installation.doctor:doctor",
    help="Check which tools, sandboxes and keys work on this machine, and say how to install the rest.",
)


def main() -> None:
    """Run the command line."""
    launch(app)
