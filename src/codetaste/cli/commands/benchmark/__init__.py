"""Arguments of ``codetaste benchmark …``."""

from __future__ import annotations

from functools import partial
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotations
from typing import Annotated

import anyio
from cyclopts import App, Parameter

from codetaste.console import run_command

_JSON = Parameter(name="--json", negative=())

benchmark_app = App(name="benchmark", help="Download, list and check a benchmark.")


@benchmark_app.command
def fetch(
    name: str = "codetaste100",
    /,
    *,
    to: Path | None = None,
    from_: Annotated[str, Parameter(name="--from")] = "",
    incomplete: Annotated[bool, Parameter(negative=())] = False,
    json_: Annotated[bool, _JSON] = False,
) -> int:
    """Download a published benchmark, verify it and unpack it.

    An interrupted download continues. An existing folder is verified and not changed.

    Args:
        name: The benchmark: codetaste100.
        to: The folder to create; default ./NAME.
        from_: A URL, an archive or a folder to use instead of the published release.
        incomplete: Accept it although files of some instances are missing.
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands.benchmark.fetch import fetch_release  # noqa: PLC0415 - only here

    return run_command(
        lambda: anyio.run(partial(fetch_release, name, to, from_, incomplete=incomplete, as_json=json_)),
        as_json=json_,
    )


@benchmark_app.command(name="list")
def list_instances(
    *,
    benchmark: str = "quickstart",
    repos: Path | None = None,
    instance: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    language: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    category: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    json_: Annotated[bool, _JSON] = False,
) -> int:
    """List a benchmark's instances.

    Args:
        benchmark: A folder in the published layout, or "quickstart".
        repos: A folder of clones OWNER/REPO.
        instance: Globs on instance ids; default all.
        language: Only those in one of these languages.
        category: Only those whose category matches one of these globs.
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands.benchmark import list as benchmark_list  # noqa: PLC0415 - only here

    wish = benchmark_list.BenchmarkListArguments(benchmark, repos, instance, language, category, json_)
    return run_command(lambda: benchmark_list.print_instances(wish), as_json=json_)


@benchmark_app.command
def show(
    instance: str,
    /,
    *,
    benchmark: str = "quickstart",
    repos: Path | None = None,
    json_: Annotated[bool, _JSON] = False,
) -> int:
    """Show one instance: commits, descriptions, rules, golden patch, baseline, clone.

    Args:
        instance: Its id, or a glob that matches exactly one.
        benchmark: A folder in the published layout, or "quickstart".
        repos: A folder of clones OWNER/REPO.
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands.benchmark import list as benchmark_list  # noqa: PLC0415 - only here

    return run_command(
        lambda: benchmark_list.print_instance(instance, benchmark, repos, as_json=json_), as_json=json_
    )


@benchmark_app.command
def check(
    *,
    benchmark: str = "quickstart",
    repos: Path | None = None,
    instance: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    json_: Annotated[bool, _JSON] = False,
) -> int:
    """Check which instances are sound: the human's patch follows every rule, an empty patch follows none.

    Descriptions, rules, both trees and the recorded tests are checked, too. Instances without a clone are
    listed as skipped. Exit code 1 if an instance is not sound, or none was checked.

    Args:
        benchmark: A folder in the published layout, or "quickstart".
        repos: A folder of clones OWNER/REPO; otherwise each instance's own origin is used.
        instance: Globs on instance ids; default all.
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands.benchmark.check import check_benchmark  # noqa: PLC0415 - only here

    return run_command(lambda: anyio.run(check_benchmark, benchmark, repos, instance, json_), as_json=json_)
