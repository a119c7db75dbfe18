"""The ``codetaste`` command and the arguments of its subcommands."""

from __future__ import annotations

from functools import partial
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotations
from typing import Annotated

import anyio
from cyclopts import App, Parameter

from codetaste import __version__
from codetaste.cli.commands.benchmark import benchmark_app
from codetaste.cli.commands.evaluate import evaluate
from codetaste.cli.commands.import_ import import_
from codetaste.cli.commands.report import report
from codetaste.cli.commands.tool_app import tool_app
from codetaste.console import launch, print_result, run_command
from codetaste.run.__main__ import run as run_config

_JSON = Parameter(name="--json", negative=())

app = App(
    name="codetaste",
    help="Build and run code-refactoring benchmarks with concurrent agents under hard limits.",
    version=__version__,
)
rules_app = App(name="rules", help="Work with OpenGrep rules.")
image_app = App(name="image", help="Build and list the images of coding agents' containers.")
agents_app = App(name="agents", help="List and install command-line coding agents.")
app.command(run_config, name="run")
app.command(evaluate)
app.command(report)
app.command(import_, name="import")
app.command(benchmark_app)
app.command(agents_app)
app.command(rules_app)
app.command(tool_app)
app.command(image_app)


@app.command
def status(
    run: Path,
    /,
    *,
    all_: Annotated[bool, Parameter(name="--all", negative=())] = False,
    job: str = "",
    watch: Annotated[bool, Parameter(negative=())] = False,
    json_: Annotated[bool, _JSON] = False,
) -> int:
    """Show the progress of a run, live or finished: jobs, waits, costs, retries and failures.

    Args:
        run: The run's folder (runs/NAME), or its name.
        all_: List all jobs.
        job: Show all details of the jobs whose key matches this glob: calls, waits, notes, log.
        watch: Refresh every second until the run ends; without a terminal, only wait for the end.
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands import status as watching  # noqa: PLC0415 - only here

    wish = watching.StatusArguments(run, all_, job, watch, json_)
    return run_command(lambda: watching.show_status(wish), as_json=json_)


@app.command
def limit(
    run: Path,
    /,
    *,
    budget_usd: str = "",
    time_limit: str = "",
    jobs: str = "",
    sandboxes: str = "",
    model: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    reset: Annotated[bool, Parameter(negative=())] = False,
    json_: Annotated[bool, _JSON] = False,
) -> int:
    """Change the limits of a run while it is under way, or for its next session; print the limits in force.

    A changed limit holds until it is changed again, or until its value in the config changes. A budget below
    the money already spent refuses further calls; calls in flight finish.

    Args:
        run: The run's folder (runs/NAME), or its name.
        budget_usd: US dollars for the whole run, or "none".
        time_limit: Wall time of the whole run, such as 2h, or "none".
        jobs: Maximum number of running jobs.
        sandboxes: Maximum number of sandboxes.
        model: Maximum number of requests in flight to a model, as ID=8. May be given several times.
        reset: Return to the limits of the config, except for those given with this option.
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands import limit as limiting  # noqa: PLC0415 - only here

    wanted = limiting.LimitArguments(run, budget_usd, time_limit, jobs, sandboxes, model, reset, json_)
    return run_command(lambda: limiting.change_limits(wanted), as_json=json_)


@app.command
def settle(run: Path, call: str = "", /, *, usd: str = "", json_: Annotated[bool, _JSON] = False) -> int:
    """Record the real cost of a call whose cost is unknown, from the provider's bill; or list such calls.

    An interrupted call is charged at its maximum cost until its real cost is known.

    Args:
        run: The run's folder (runs/NAME), or its name; no process may be working on it.
        call: The call's name; without it the calls of unknown cost are listed.
        usd: The cost in US dollars; 0 if the call was not billed.
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands import settle as settling  # noqa: PLC0415 - only here

    bill = settling.SettleArguments(run, call, usd, json_)
    return run_command(lambda: anyio.run(settling.settle_call, bill), as_json=json_)


@app.command
def doctor(*, json_: Annotated[bool, _JSON] = False) -> int:
    """Check which tools, sandboxes and keys work on this machine, and say how to install the rest.

    Args:
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands import doctor as examination  # noqa: PLC0415 - only here

    def examine_and_print() -> int:
        report = anyio.run(examination.examine_machine)
        print_result(
            examination.doctor_to_json(report) if json_ else examination.render_doctor_report(report)
        )
        return 0 if report.usable else 1

    return run_command(examine_and_print, as_json=json_)


@agents_app.default
def list_agents(*, json_: Annotated[bool, _JSON] = False) -> int:
    """List the command-line agents that a config can name, their releases and options.

    Args:
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands import agents  # noqa: PLC0415 - only here

    return run_command(lambda: agents.print_agents(as_json=json_), as_json=json_)


@agents_app.command
def install(*names: str, json_: Annotated[bool, _JSON] = False) -> int:
    """Install agents now; a run installs missing agents itself.

    Args:
        names: NAME or NAME@VERSION, or the folder of your own agent; default all, in their default releases.
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands import agents  # noqa: PLC0415 - only here

    return run_command(lambda: anyio.run(partial(agents.install_agents, names, as_json=json_)), as_json=json_)


@rules_app.command
def check(
    *,
    benchmark: Path,
    repos: Path | None = None,
    instance: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    json_: Annotated[bool, _JSON] = False,
) -> int:
    """Count the matches of every published rule in R and in R∘X*, and list rules whose metadata differ.

    Instances without rules or clone are listed as skipped. Exit code 1 if any rule differs.

    Args:
        benchmark: A folder in the published layout.
        repos: A folder of clones OWNER/REPO; otherwise each instance's own origin is used.
        instance: Globs on instance ids; default all.
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands.rules import rules_check  # noqa: PLC0415 - only here

    return run_command(lambda: anyio.run(rules_check, benchmark, repos, instance, json_), as_json=json_)


@image_app.command(name="build")
def build_image(
    *,
    lean: Annotated[bool, Parameter(negative=())] = False,
    dockerfile: Path | None = None,
    name: str = "",
    mirror_less: Annotated[bool, Parameter(negative=())] = False,
    engine: str = "auto",
    socket: Path | None = None,
    json_: Annotated[bool, _JSON] = False,
) -> int:
    """Build an image for coding agents: a lean Debian, which needs no image registry, or your own.

    Args:
        lean: Debian with git, Python and ripgrep, from this machine's package mirrors, by mmdebstrap.
        dockerfile: A folder with a Dockerfile; the whole folder is sent to the engine.
        name: Name of the image; the lean image has a default name.
        mirror_less: Remove the package mirrors from the lean image.
        engine: docker, podman, or auto for the first that responds.
        socket: The engine's socket; default DOCKER_HOST, CONTAINER_HOST or the usual paths.
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands import image  # noqa: PLC0415 - only here

    wanted = image.ImageBuildArguments(lean, dockerfile, name, not mirror_less)
    where = image.ImageEngineArguments(engine, socket, json_)
    return run_command(lambda: anyio.run(image.build_requested_image, wanted, where), as_json=json_)


@image_app.command(name="list")
def list_images(
    *, engine: str = "auto", socket: Path | None = None, json_: Annotated[bool, _JSON] = False
) -> int:
    """List the images that codetaste built.

    Args:
        engine: docker, podman, or auto for the first that responds.
        socket: The engine's socket.
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands import image  # noqa: PLC0415 - only here

    return run_command(
        lambda: anyio.run(image.print_images, image.ImageEngineArguments(engine, socket, json_)),
        as_json=json_,
    )


@image_app.command(name="rm")
def remove_image(
    name: str,
    /,
    *,
    engine: str = "auto",
    socket: Path | None = None,
    json_: Annotated[bool, _JSON] = False,
) -> int:
    """Remove an image that codetaste built.

    Args:
        name: The image.
        engine: docker, podman, or auto for the first that responds.
        socket: The engine's socket.
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands import image  # noqa: PLC0415 - only here

    return run_command(
        lambda: anyio.run(image.remove_listed_image, name, image.ImageEngineArguments(engine, socket, json_)),
        as_json=json_,
    )


def main() -> None:
    """Run the command line."""
    launch(app)
