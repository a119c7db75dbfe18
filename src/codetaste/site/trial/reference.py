"""What the trials of an instance share: the golden patch with its marks, and the texts of the rules.

It is written once for each instance, and their pages load it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import (
    EVALUATION_FOLDER,
    GOLDEN,
    GOLDEN_PATCH_FILE,
    NEGATIVE_SARIF_FILE,
    NULL,
    POSITIVE_SARIF_FILE,
    PREDICTION_FILE,
    RULES_FILES,
    SCORES_FILE,
)
from codetaste.evaluation.trials.untrusted_files import FileProblem, file_size, read_file
from codetaste.rules.registration import Direction
from codetaste.site.html.address import file_name, rule_anchors
from codetaste.site.html.site_file import SiteFile, data_script
from codetaste.site.trial.packed import gzip_bytes, packed_script
from codetaste.site.trial.patch.marked_patch import MarkedPatch, PatchMatches, read_marked_patch
from codetaste.site.trial.patch.patch_data import patch_data
from codetaste.site.trial.patch.pieces import make_pieces, packed_piece
from codetaste.site.trial.patch.rule_matches import RuleMatches, read_rule_matches
from codetaste.site.trial.visible_text import visible_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.site.site import Site

_MAX_RULES_BYTES = 2 * 1024**2
_MAX_RAW_BYTES = 1024**2
_MAX_RULE_CHARS = 20_000
_ITEM = re.compile(r"^( *)- ", re.MULTILINE)
_ID = re.compile(r"^[ ]*(?:- +)?id:[ ]*['\"]?([A-Za-z0-9_-]{1,128})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Reference:
    """What the trials of an instance are compared with.

    Attributes:
        instance: its id.
        golden: folder of the golden agent's trial, None without one.
        null: folder of the null agent's trial, None without one.
        golden_patch: the golden patch in the benchmark, None if it has none.
    """

    instance: str
    golden: Path | None = None
    null: Path | None = None
    golden_patch: Path | None = None

    @property
    def folder(self) -> str:
        """Where its files are in the site."""
        return f"references/{file_name(self.instance)}"

    @property
    def has_golden(self) -> bool:
        """Whether the golden patch is known."""
        return self.golden is not None or self.golden_patch is not None


def find_references(site: Site) -> dict[str, Reference]:
    """Return the references of all instances that have a trial, by id."""
    folders = {(trial.instance, trial.agent): trial.folder for trial in site.results.trials.pseudo}
    return {
        name: Reference(
            name, folders.get((name, GOLDEN)), folders.get((name, NULL)), _golden_of_benchmark(site, name)
        )
        for name in sorted({trial.instance for trial in site.results.trials.agents})
    }


def _golden_of_benchmark(site: Site, name: str) -> Path | None:
    """Return the golden patch that the benchmark has of an instance, None if it has none."""
    found = site.results.benchmarks.find(name)
    path = found[0].golden_path(found[1]) if found else None
    return path if path is not None and path.is_file() else None


def reductive_matches_in_base(reference: Reference) -> RuleMatches:
    """Return the matches of Γ⁻ in R, which the null agent's evaluation has. Blocking."""
    if reference.null is None:
        return RuleMatches(problem="the null agent was not evaluated")
    path = reference.null / EVALUATION_FOLDER / NEGATIVE_SARIF_FILE
    return _matches(path, modified(path))


def modified(path: Path) -> int:
    """Return when a file was changed last, 0 if it is missing: what was read of it before is then stale."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=2)  # trials of one instance are written one after the other
def _matches(path: Path, stamp: int) -> RuleMatches:
    del stamp
    found = read_rule_matches(path, os.path.realpath(path.parent))
    return RuleMatches(
        found.matches, found.messages, f"the null agent's {found.problem}" if found.problem else ""
    )


def golden_file(reference: Reference) -> SiteFile:
    """Return ``golden.js``: files and marks of the golden patch; its parts are the text."""
    return SiteFile(
        f"{reference.folder}/golden.js", partial(_golden_data, reference), partial(_golden_parts, reference)
    )


def _golden(reference: Reference) -> tuple[MarkedPatch, dict[tuple[str, str], int]]:
    scores = reference.golden and reference.golden / EVALUATION_FOLDER / SCORES_FILE
    return _read_golden(reference, modified(scores) if scores else 0)


@lru_cache(maxsize=1)  # the data, then the parts
def _read_golden(reference: Reference, stamp: int) -> tuple[MarkedPatch, dict[tuple[str, str], int]]:
    del stamp
    path = _golden_path(reference)
    folder, root = path.parent, os.path.realpath(path.parent)
    if folder != reference.golden:
        return read_marked_patch(path, root, PatchMatches()), {}
    additive = read_rule_matches(folder / EVALUATION_FOLDER / POSITIVE_SARIF_FILE, root)
    remaining = read_rule_matches(folder / EVALUATION_FOLDER / NEGATIVE_SARIF_FILE, root)
    before = reductive_matches_in_base(reference)
    matches = PatchMatches(additive.matches, before.matches, remaining.matches)
    names = dict.fromkeys(
        [
            *((Direction.ADDITIVE, name) for name in additive.messages),
            *((Direction.REDUCTIVE, name) for name in (*remaining.messages, *before.messages)),
        ]
    )
    rules: dict[tuple[str, str], int] = {name: number for number, name in enumerate(names)}
    return read_marked_patch(path, root, matches), rules


def _golden_data(reference: Reference) -> bytes:
    patch, rules = _golden(reference)
    data = patch_data(patch, make_pieces(patch), rules) | {
        "rules": [name for _, name in rules],
        "problem": patch.problem,
    }
    return data_script("golden", data)


def _golden_parts(reference: Reference) -> Iterator[SiteFile]:
    patch, _ = _golden(reference)
    pieces = make_pieces(patch)
    packed = b""
    for number, span in enumerate(pieces.spans):
        piece = packed_piece(patch, span)
        yield _file(f"{reference.folder}/golden-{number}.js", packed_script(f"golden-{number}", piece))
        packed += piece
    if patch.size <= _MAX_RAW_BYTES:
        yield _file(f"{reference.folder}/{GOLDEN_PATCH_FILE}", patch.content)
    else:
        yield _file(f"{reference.folder}/{GOLDEN_PATCH_FILE}.gz", packed or gzip_bytes(patch.content))


def golden_download(reference: Reference) -> str:
    """Return the address of the golden patch as a file, "" without one. Blocking."""
    if not reference.has_golden:
        return ""
    size = file_size(_golden_path(reference)) or 0
    return f"{reference.folder}/{GOLDEN_PATCH_FILE}{'' if size <= _MAX_RAW_BYTES else '.gz'}"


def _golden_path(reference: Reference) -> Path:
    own = reference.golden and reference.golden / PREDICTION_FILE
    return own if own and own.is_file() else reference.golden_patch or Path(GOLDEN)


def rules_address(reference: Reference, trial: TrialRecord) -> str:
    """Return the address of the texts of the rules that a trial was scored with."""
    digest = trial.scores.rules_sha256
    key = sha256(digest.encode()).hexdigest()[:8] if digest else "benchmark"
    return f"{reference.folder}/rules-{key}.js"


def rules_file(site: Site, reference: Reference, trial: TrialRecord) -> SiteFile:
    """Return ``rules-….js``, the text of each rule by its anchor, of a trial that has these rules."""
    return SiteFile(rules_address(reference, trial), partial(_rules_data, site, reference, trial))


def _rules_data(site: Site, reference: Reference, trial: TrialRecord) -> bytes:
    texts = rule_texts(site, reference, trial)
    return data_script("rules", dict(zip(rule_anchors(texts).values(), texts.values(), strict=True)))


def rule_texts(site: Site, reference: Reference, trial: TrialRecord) -> dict[tuple[str, str], str]:
    """Return the text of each rule that a trial was scored with, by direction and id. Blocking."""
    found: dict[tuple[str, str], str] = {}
    for direction, name in RULES_FILES.items():
        path = trial.folder / EVALUATION_FOLDER / name
        if not path.is_file() and (known := site.results.benchmarks.find(reference.instance)):
            path = known[0].rules_path(known[1], direction)
        try:
            content = read_file(path, os.path.realpath(path.parent), _MAX_RULES_BYTES)
        except FileProblem:
            continue
        texts = split_rules(content.decode("utf-8", "replace"))
        found |= {(direction, rule): text for rule, text in texts.items()}
    return found


def split_rules(text: str) -> Mapping[str, str]:
    """Return the text of each item of a rule file by the id of its rule; for people, so nothing is parsed."""
    first = _ITEM.search(text)
    if first is None:
        return {}
    starts = [each.start() for each in _ITEM.finditer(text) if each[1] == first[1]]
    items = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    named = ((_ID.search(item), item) for item in items)
    return {name[1]: visible_text(item.rstrip(), _MAX_RULE_CHARS) for name, item in named if name is not None}


def _file(address: str, content: bytes) -> SiteFile:
    return SiteFile(address, lambda: content)
