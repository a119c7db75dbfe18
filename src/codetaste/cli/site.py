"""The options of ``codetaste report`` for what it writes, and its site."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from codetaste.cli.options import Flag, OptionalPath  # noqa: TC001 - cyclopts reads the annotations
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.text import plural
from codetaste.errors import ConfigError
from codetaste.results.read import describe_no_trials

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.results.read import RunResults
    from codetaste.site.output.redact import Redactions
    from codetaste.site.output.write import WrittenSite

_MAX_LISTED = 20
_OF_PAGES = {".html", ".htm"}


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Where a report is written."""

    out: Annotated[OptionalPath, Parameter(name=("--out", "-o"))] = None
    """A folder, or a file FOLDER.zip, for the report as a site; with --format or named tables a folder for
    one file per table, with --figure one for the figures; default standard output."""
    redact: Flag = False
    """Remove what looks like a key from every file of the site, and say what was where."""


STANDARD_OUTPUT: Final = OutputOptions()


def write_report_site(results: RunResults, output: OutputOptions, *, as_json: bool) -> int:
    """Write the site of ``results`` and print where it is.

    Returns:
        The exit code, 1 if the results are empty.

    Raises:
        ConfigError: the target exists and is no site, or cannot be made.
        StorageFull: no space is left.
        JournalError: a file cannot be written.
    """
    if output.out is None:
        raise ConfigError("a site is files: name its folder with -o DIR")
    if output.out.suffix in _OF_PAGES and not output.out.is_dir():
        raise ConfigError(
            f"-o: {output.out} is the name of a page: name a folder for the site, or FOLDER.zip"
        )
    names = ", ".join(dict.fromkeys(root.resolve().name for root in results.roots))
    # The library of templates is loaded for a site only.
    write: Callable[..., WrittenSite] = import_module("codetaste.site.output.write").write_site
    written = write(results, output.out, names or "codetaste report", redact=output.redact)
    if as_json:
        redacted = [
            {"file": file, "kind": kind, "count": count}
            for (file, kind), count in sorted(written.redactions.counts.items())
        ]
        site = {"index": str(written.index), "files": written.files, "redacted": redacted}
        print_result(json_document({"site": site, "trials": len(results.trials.agents)}))
    else:
        print_result(str(written.index))
    if output.redact:
        _report_redactions(written.redactions)
    if results.empty:
        notify(f"codetaste: {describe_no_trials(results)}")
    return 1 if results.empty else 0


def _report_redactions(redactions: Redactions) -> None:
    """Say what was removed and where, never the texts."""
    by_kind: Counter[str] = Counter()
    for (_, kind), count in redactions.counts.items():
        by_kind[kind] += count
    if not redactions.total:
        notify("codetaste: nothing that looks like a key was found; that is no proof that there is none")
        return
    kinds = ", ".join(f"{kind} {count}×" for kind, count in by_kind.most_common())
    notify(f"codetaste: {plural(redactions.total, 'text')} that look like keys were removed: {kinds}")
    listed = sorted(redactions.counts.items())
    for (file, kind), count in listed[:_MAX_LISTED]:
        notify(f"  {file}: {kind}, {count}×")
    if len(listed) > _MAX_LISTED:
        notify(f"  and {len(listed) - _MAX_LISTED} more (--json has all)")
