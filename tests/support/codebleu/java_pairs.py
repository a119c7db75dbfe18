"""Pairs of Java texts, candidate and reference: methods of well-known libraries, and mutations of them.

The libraries' sources are fetched as jars of pinned content. The same number and seed make the same pairs.
"""

from __future__ import annotations

import random
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio

from codetaste.codebleu.syntax_tree import Node, parse
from codetaste.java.artifacts.artifact_set import Artifact, ArtifactSet
from codetaste.java.artifacts.store import install_artifacts

SOURCES = ArtifactSet(
    "codebleu-pairs",
    tuple(
        Artifact(group, name, version, "sources", sha256, size)
        for group, name, version, sha256, size in (
            (
                "org.apache.commons",
                "commons-lang3",
                "3.17.0",
                "5fdcac21ad329766054a95367d7583dfcdca737d221d5e01a5f2a198c04c6b18",
                728980,
            ),
            (
                "com.google.guava",
                "guava",
                "33.4.0-jre",
                "55ef6603b6ab1f6e3ae810b127561650ed682eb5f3fb50a212a658a74087b457",
                1887482,
            ),
            (
                "com.ibm.icu",
                "icu4j",
                "76.1",
                "3ab527e55dae77dd6fad6d8d397605f8b3fac1162191bc871cc87594e111d109",
                2599164,
            ),
            (
                "org.junit.jupiter",
                "junit-jupiter-engine",
                "6.0.0",
                "39e28f2826b78e68577a15367000f1352bed4f3d5e5490abb79d498ebd233d26",
                169600,
            ),
        )
    ),
)

Pair = tuple[str, str]
Mutation = Callable[[str, random.Random], str]


def fetch_methods(cache: Path) -> list[str]:
    """Return the texts of methods and constructors of some files of each library, sorted, each once."""
    return sorted({text for file in fetch_files(cache) for text in methods(file)})


def fetch_files(cache: Path) -> list[bytes]:
    """Return forty files of each library, of less than 60,000 bytes."""
    chosen = random.Random(3)
    found = []
    for jar in anyio.run(install_artifacts, SOURCES, cache):
        with zipfile.ZipFile(jar) as archive:
            java = [each for each in archive.infolist() if each.filename.endswith(".java")]
            small = sorted(each.filename for each in java if each.file_size < 60_000)
            found += [archive.read(name) for name in chosen.sample(small, 40)]
    return found


def methods(code: bytes) -> Iterator[str]:
    """Return the texts of methods and constructors with their Javadoc, of 80 to 6,000 bytes."""
    stack = [parse(code).root]
    while stack:
        node = stack.pop()
        previous: Node | None = None
        for child in node.children:
            if child.kind in {"method_declaration", "constructor_declaration"}:
                start = previous.start if previous and previous.kind == "block_comment" else child.start
                if 80 <= child.end - start <= 6000:
                    yield code[start : child.end].decode("utf-8", "replace")
            previous = child
            stack.append(child)


def make_pairs(texts: list[str], count: int, seed: int) -> list[Pair]:
    """Return ``count`` pairs; each kind of mutation is as frequent as the others, and some are done twice."""
    chosen = random.Random(seed)
    pairs: list[Pair] = []
    while len(pairs) < count:
        reference, other = chosen.choice(texts), chosen.choice(texts)
        kind = len(pairs) % (len(MUTATIONS) + 1)
        candidate = MUTATIONS[kind](reference, chosen) if kind < len(MUTATIONS) else other
        if candidate and chosen.random() < 0.3:
            candidate = chosen.choice(MUTATIONS)(candidate, chosen)
        pairs.append((reference, candidate) if chosen.random() < 0.2 else (candidate, reference))
    return pairs


def _replaced(text: str, pattern: str, new: Callable[[str], str], chosen: random.Random) -> str:
    """Replace one match of ``pattern``."""
    places = list(re.finditer(pattern, text))
    if not places:
        return text
    match = chosen.choice(places)
    return text[: match.start()] + new(match[0]) + text[match.end() :]


def _rename(text: str, chosen: random.Random) -> str:
    names = re.findall(r"\b[a-z][A-Za-z]{2,}\b", text)
    return re.sub(rf"\b{chosen.choice(names)}\b", "renamed", text) if names else text


def _rename_once(text: str, chosen: random.Random) -> str:
    return _replaced(text, r"\b[a-z][A-Za-z]{2,}\b", lambda name: name + "2", chosen)


def _without_lines(text: str, chosen: random.Random) -> str:
    lines = text.split("\n")
    start = chosen.randrange(len(lines))
    return "\n".join(lines[:start] + lines[start + chosen.randint(1, 3) :])


def _swapped_lines(text: str, chosen: random.Random) -> str:
    lines = text.split("\n")
    one, other = chosen.randrange(len(lines)), chosen.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "\n".join(lines)


def _repeated_line(text: str, chosen: random.Random) -> str:
    lines = text.split("\n")
    lines.insert(chosen.randrange(len(lines)), chosen.choice(lines))
    return "\n".join(lines)


def _other_operator(text: str, chosen: random.Random) -> str:
    return _replaced(
        text, r" [-+*/<>=!&|]=? ", lambda _: chosen.choice([" + ", " == ", " < ", " >= "]), chosen
    )


def _cut(text: str, chosen: random.Random) -> str:
    return text[: chosen.randrange(1, len(text))]


def _lost_character(text: str, chosen: random.Random) -> str:
    return _replaced(text, r"[(){};,.\"']", lambda _: "", chosen)


def _inserted_character(text: str, chosen: random.Random) -> str:
    place = chosen.randrange(len(text) + 1)
    return text[:place] + chosen.choice("(){};,.\"'@#\\/*é日😀\u00a0\t") + text[place:]


def _respaced(text: str, chosen: random.Random) -> str:
    return re.sub(r"([(){};,.])", r" \1 ", text)


def _crlf(text: str, chosen: random.Random) -> str:
    return text.replace("\n", "\r\n")


def _commented(text: str, chosen: random.Random) -> str:
    comments = ["// one line\n", "/* over\ntwo */", "/** é */", "// it's\n", '/* " */', "/* no end "]
    return _replaced(text, r"\n", lambda _: "\n" + chosen.choice(comments), chosen)


def _beyond_ascii(text: str, chosen: random.Random) -> str:
    return _replaced(text, r"\b[a-z]{3,}\b", lambda _: chosen.choice(["größe", "日本", "naïve"]), chosen)


def _wrapped(text: str, chosen: random.Random) -> str:
    return (
        chosen.choice(["class Wrapped {\n%s\n}", "for (int i = 0; i < 3; i++) {\n%s\n}", "while (true) %s"])
        % text
    )


MUTATIONS: tuple[Mutation, ...] = (
    lambda text, _chosen: text,
    _rename,
    _rename_once,
    _without_lines,
    _swapped_lines,
    _repeated_line,
    _other_operator,
    _cut,
    _lost_character,
    _inserted_character,
    _respaced,
    _crlf,
    _commented,
    _beyond_ascii,
    _wrapped,
    lambda text, chosen: text[: chosen.randrange(200)] if chosen.random() < 0.5 else "",
    lambda text, chosen: " ".join(chosen.sample(words := text.split(), len(words))),
)
