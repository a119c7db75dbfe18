"""The search page, and its index in shards that are loaded when a word needs them.

The index says which instances, rules and trials have a word; the page of a trial then finds the places in its
transcript. Words of a trial are those of its conversations.
"""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from codetaste.core.text import one_line
from codetaste.report.statistics.merge import track_mode_of
from codetaste.site.construction.discovery import pass_address
from codetaste.site.html.address import rule_anchors
from codetaste.site.html.site_file import SiteFile, data_script
from codetaste.site.html.templates import render_page
from codetaste.site.html.visible import visible
from codetaste.site.overview.instances import descriptions_of
from codetaste.site.search.words import words_in, words_of_file
from codetaste.site.site import instance_address, trial_address
from codetaste.site.swe_refactor.addresses import answer_address
from codetaste.site.swe_refactor.run_files import RunFiles
from codetaste.site.trial.reference import find_references, rule_texts
from codetaste.site.trial.transcript.trial_jobs import find_trial_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.site.site import Site
    from codetaste.site.trial.transcript.trial_jobs import TrialJobs

ADDRESS = "search/index.html"
_DOCUMENTS = "search/documents.js"
_TITLE_CHARS = 160


def search_files(site: Site) -> Iterator[SiteFile]:
    """Yield the page; its parts are the documents and the shards of the index."""
    yield SiteFile(ADDRESS, partial(_page, site), partial(_index, site))


def shard_of(word: str) -> str:
    """Return the shard of a word: its first two characters, as the page's script does."""
    return word[:2].replace("_", "-")


def _page(site: Site) -> bytes:
    return render_page(site, "search.html", ADDRESS, "Search")


def _index(site: Site) -> Iterator[SiteFile]:
    """Yield ``documents.js``, a list of kind, title and address, and ``words-XX.js``, words by document."""
    documents: list[tuple[str, str, str]] = []
    index: defaultdict[str, list[int]] = defaultdict(list)
    for kind, title, address, words in _documents(site):
        number = len(documents)
        documents.append((kind, visible(one_line(title, _TITLE_CHARS)), address))
        for word in words:
            index[word].append(number)
    yield _script(_DOCUMENTS, "documents", documents)
    shards: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for word in sorted(index):
        shards[shard_of(word)][word] = _gaps(index[word])
    yield _script("search/shards.js", "shards", sorted(shards))
    for name, words_of_shard in shards.items():
        yield _script(f"search/words-{name}.js", f"words-{name}", words_of_shard)


def _documents(site: Site) -> Iterator[tuple[str, str, str, set[str]]]:
    yield from _of_codetaste(site)
    yield from _of_swe_refactor(site)
    for record in site.results.passes:
        for rule in record.rules:
            title = f"{rule.id} ({record.instance}, {record.system})"
            words = words_in(json.dumps([rule.id, rule.body], default=str))
            yield "rule", title, f"{pass_address(record)}#rule-{quote(rule.id)}", words


def _of_codetaste(site: Site) -> Iterator[tuple[str, str, str, set[str]]]:
    references = find_references(site)
    for name, trials in site.trials_by_instance.items():
        address = instance_address(name)
        texts = [name, trials[0].repository, *(text for _, text in descriptions_of(site, name))]
        yield "instance", name, address, words_in("\n".join(texts))
        rules = rule_texts(site, references[name], trials[0])
        anchors = rule_anchors(rules)
        for key, text in rules.items():
            yield "rule", f"{key[1]} ({name})", f"{address}#{anchors[key]}", words_in(text)
        for trial in trials:
            title = f"{trial.agent}, {track_mode_of(trial).title}, {name}"
            words = words_in(f"{trial.agent} {trial.metadata.message}")
            words |= _words_of_conversations(site, find_trial_jobs(site.results.roots, trial))
            yield "trial", title, trial_address(trial), words


def _of_swe_refactor(site: Site) -> Iterator[tuple[str, str, str, set[str]]]:
    files = RunFiles(site.results.roots)
    for address, row in {answer_address(row): row for row in site.results.answers.rows}.items():
        words = words_in(f"{row.instance} {row.type} {row.project} {row.strategy} {row.model}")
        words |= _words_of_conversations(site, files.trial_jobs(row))
        yield "trial", f"{row.strategy}, {row.model}, {row.instance}", address, words


def _words_of_conversations(site: Site, jobs: TrialJobs) -> set[str]:
    words: set[str] = set()
    for conversation in jobs.conversations:
        with contextlib.suppress(OSError):
            words |= words_of_file(conversation.path, redacted=site.redacted)
    return words


def _gaps(numbers: list[int]) -> str:
    """Return ascending numbers as the gaps between them, in base 36."""
    before, parts = -1, []
    for number in numbers:
        parts.append(_base36(number - before - 1))
        before = number
    return " ".join(parts)


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
        if not number:
            return digits


def _script(address: str, name: str, value: object) -> SiteFile:
    return SiteFile(address, partial(data_script, name, value))
