"""Which rules a patch satisfies, and where they match, as text; read from the SARIF of its evaluation."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from codetaste.core.text import one_line
from codetaste.evaluation.trials.untrusted_files import FileProblem, read_json_object

if TYPE_CHECKING:
    from pathlib import Path

_MAX_BYTES = 256 * 1024**2
_MAX_PLACES = 50
"""Places shown of one rule."""


def describe_matches(sarif: Path, root: str, *, reductive: bool) -> str:
    """Return a line for each rule, with its message and below it the places that it matches.

    An additive rule is satisfied by a match in the code with the patch, a reductive one by none.

    Args:
        sarif: the results of one set of rules.
        root: the real path of the folder that it must be in.
        reductive: whether these are the rules for what is to disappear.
    """
    try:
        run = read_json_object(sarif, root, _MAX_BYTES)["runs"][0]
        rules = {str(each["id"]): _message(each) for each in run["tool"]["driver"]["rules"]}
        places = defaultdict[str, list[str]](list)
        for result in run["results"]:
            places[str(result["ruleId"])].append(_place(result))
    except (FileProblem, LookupError, TypeError, AttributeError) as error:
        return f"The matches of rules cannot be read: {one_line(error)}\n"
    lines = []
    for rule, message in sorted({**dict.fromkeys(places, ""), **rules}.items()):
        found = places.get(rule, [])
        good = not found if reductive else bool(found)
        kind = "reductive" if reductive else "additive"
        state = "satisfied" if good else "NOT satisfied"
        lines.append(f"{kind} {rule}: {state}, {len(found)} matches. {message}")
        lines += [f"    {place}" for place in found[:_MAX_PLACES]]
        if len(found) > _MAX_PLACES:
            lines.append(f"    and {len(found) - _MAX_PLACES} more")
    return "\n".join([*lines, ""])


def _message(rule: Any) -> str:  # noqa: ANN401 - JSON
    return one_line(rule.get("fullDescription", {}).get("text", ""))


def _place(result: Any) -> str:  # noqa: ANN401 - JSON
    where = result["locations"][0]["physicalLocation"]
    return f"{where['artifactLocation']['uri']}:{where['region']['startLine']}"
