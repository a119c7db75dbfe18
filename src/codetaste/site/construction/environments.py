"""Execution environments: how far each came, its gates and test runs, its scripts, and what it cost."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from codetaste.benchmark.instances_csv import is_path_name
from codetaste.benchmark.layout import ENVIRONMENT_FILE
from codetaste.core.units import format_duration
from codetaste.evaluation.trials.untrusted_files import FileProblem, read_file
from codetaste.flows.environment.publish import ENVIRONMENTS_FOLDER
from codetaste.report.render.csv import render_csv
from codetaste.report.tables.environments import ENVIRONMENT_TABLES, environment_tables
from codetaste.site.html.address import file_name
from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from codetaste.environment.record import EnvironmentRecord, InstanceMetadata
    from codetaste.site.site import Site

ENVIRONMENTS = "environments/index.html"
_TABLES_FILE = "environments/tables.csv"
_MAX_SCRIPT_BYTES = 256 * 1024
_MAX_SHOWN = 20_000
_MAX_SCRIPTS = 12
_COMMIT_CHARS = 8


class Script(NamedTuple):
    """A script of an environment, or why it is not shown."""

    name: str
    text: str


def environment_files(site: Site) -> Iterator[SiteFile]:
    """Yield the overview, its tables as data, and the page of each environment with its record as JSON."""
    yield SiteFile(ENVIRONMENTS, partial(_index, site))
    yield SiteFile(_TABLES_FILE, partial(_tables_csv, site))
    # Of one instance in two runs, the first is shown.
    records = {environment_address(each.metadata): each for each in reversed(site.results.environments)}
    for address, record in records.items():
        yield SiteFile(address, partial(_page, site, record, address))
        yield SiteFile(_record_file(address), partial(_record_json, record))


def environment_address(metadata: InstanceMetadata) -> str:
    """Return the address of the page of an instance's environment."""
    return f"environments/{file_name(_name(metadata))}/index.html"


def _name(metadata: InstanceMetadata) -> str:
    return f"{metadata.owner}__{metadata.repo}-{metadata.base_hash[:_COMMIT_CHARS]}"


def _record_file(address: str) -> str:
    return address.replace("index.html", ENVIRONMENT_FILE)


def _index(site: Site) -> bytes:
    records = site.results.environments
    return render_page(
        site,
        "construction/environments.html",
        ENVIRONMENTS,
        "Environments",
        data=[("tables (CSV)", _TABLES_FILE)],
        tables=environment_tables(records, ENVIRONMENT_TABLES),
        records=[(_name(each.metadata), each, environment_address(each.metadata)) for each in records],
    )


def _tables_csv(site: Site) -> bytes:
    tables = environment_tables(site.results.environments, ENVIRONMENT_TABLES)
    return render_csv(tables).encode("utf-8", "replace")


def _page(site: Site, record: EnvironmentRecord, address: str) -> bytes:
    return render_page(
        site,
        "construction/environment.html",
        address,
        f"Environment of {_name(record.metadata)}",
        crumbs=[("Environments", ENVIRONMENTS)],
        data=[("record (JSON)", _record_file(address))],
        record=record,
        duration=format_duration(record.details.duration_s) if record.details else "",
        scripts=list(_scripts(site, record.metadata)),
    )


def _record_json(record: EnvironmentRecord) -> bytes:
    details = None if record.details is None else record.details.model_dump()
    data = {"metadata": record.metadata.model_dump(), "details": details}
    return f"{json.dumps(data, indent=1, default=str)}\n".encode("ascii")


def _scripts(site: Site, metadata: InstanceMetadata) -> Iterator[Script]:
    """Yield the scripts that a run has stored for the instance."""
    names = (metadata.owner, metadata.repo, metadata.base_hash[:_COMMIT_CHARS])
    if not all(map(is_path_name, names)):
        return
    for root in site.results.roots:
        environments = root / ENVIRONMENTS_FOLDER
        folder = environments / "instance_images" / "/".join(names) / "scripts"
        if folder.is_dir():
            yield from (_script(path, os.path.realpath(environments)) for path in _listed(folder))
            return


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())[:_MAX_SCRIPTS]
    except OSError:
        return []


def _script(path: Path, root: str) -> Script:
    try:
        text = read_file(path, root, _MAX_SCRIPT_BYTES).decode("utf-8", "replace")
    except FileProblem as problem:
        return Script(path.name, f"({problem})")
    more = f"\n… ({len(text):,} characters)" if len(text) > _MAX_SHOWN else ""
    return Script(path.name, text[:_MAX_SHOWN] + more)
