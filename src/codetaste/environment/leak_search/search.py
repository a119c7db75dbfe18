"""``LeakSearch``: searches files one by one, archives in them included."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import repeat
from typing import TYPE_CHECKING

from codetaste.environment.leak_search.archives import MAX_DEPTH, Allowance, Unsearchable, members
from codetaste.environment.leak_search.content import content_of
from codetaste.environment.leak_search.git_files import listed_objects, named_object, stored_objects
from codetaste.environment.leak_search.golden import STRIPPED, GoldenTraces, letters_of
from codetaste.environment.leak_search.report import CONFIG, Leak, LeakCollector, LeakKind, LeakReport
from codetaste.environment.leak_search.secrets import NO_SECRETS, find_shapes, find_values, may_have_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from codetaste.environment.leak_search.content import Content
    from codetaste.environment.leak_search.secrets import Secrets

LINES_OF_FILE, LETTERS_OF_FILE = 3, 60
"""How many distinctive lines of one golden file, and letters in them, are evidence."""
LINES_OF_ALL, LETTERS_OF_ALL = 6, 150
"""The same for lines of several golden files, as in a log with a patch of many small changes."""
LETTERS_OF_WHOLE = 40
"""Letters that are evidence if all distinctive lines of a golden file are there."""
_MAX_LETTERS = 40
"""A longer line counts as one of so many letters."""
_LINES_BYTES = 1024**2
_ESCAPED_LINE, _ESCAPED_BYTES = b"\\n", 100
"""The end of a line in a text of JSON, and the length of a text that can be evidence."""
_MIN_NAMES, _ONE_NAME = 2, 12
"""Names of a golden file that are evidence in a compiled one: so many, or its only one if it is that long."""
_PYC_MARK, _CLASS_MARK = b"\r\n", b"\xca\xfe\xba\xbe"
_HEX_DIGITS = 40


class LeakSearch:
    """A search for one golden state and secrets.

    Args:
        golden: what is searched for; None for secrets only.
        secrets: what is searched for.
        check: called often; it raises to cancel, or when the time is over.
    """

    def __init__(
        self,
        golden: GoldenTraces | None,
        secrets: Secrets = NO_SECRETS,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._golden = golden or GoldenTraces("")
        self._secrets, self.check = secrets, check
        self._lines = frozenset(self._golden.of_line)
        self._objects = self._golden.objects
        self._commit = self._golden.commit.encode()
        self._overlap = max(_HEX_DIGITS, secrets.longest)
        self._compiled = [file for file in self._golden.files if file.names]
        self._total = self._found = LeakCollector()

    def begin_layer(self) -> None:
        """Begin a layer, to which the following files belong."""
        self._found = LeakCollector()

    def end_layer(self, layer: str) -> None:
        """End it under its id; "" forgets what was found in it."""
        if layer:
            self._total.add_layer(layer, self._found)
        self._found = self._total

    def skip(self, path: bytes, reason: str) -> None:
        """Note that a file is not searched."""
        self._found.skip(path.decode("utf-8", "backslashreplace"), reason)

    def report(self) -> LeakReport:
        """Return what was found so far."""
        left_out = {reason: len(paths) for reason, paths in self._golden.left_out.items()}
        if self._secrets.too_short:
            left_out["a secret of fewer than 8 characters"] = len(self._secrets.too_short)
        return self._total.report(left_out)

    def search_text(self, what: str, text: str) -> None:
        """Search a text of the image's config; ``what`` is its key."""
        content = text.encode("utf-8", "surrogateescape")
        for evidence in find_shapes(content):
            self._hit(LeakKind.SECRET, what, evidence)
        self._search_content(what, content_of(content))

    def search_file(self, path: bytes, content: Content) -> None:
        """Search a file of a layer, and close it. ``path`` has no leading slash."""
        self._found.size_bytes += content.size
        shown, allowance = path.decode("utf-8", "backslashreplace"), Allowance(self.check)
        try:
            self._search(shown, path, content, allowance, 0)
        finally:
            content.close()
        for name, reason in allowance.problems:
            self._found.skip(f"{shown}!{name}", reason)

    def _search(self, shown: str, path: bytes, content: Content, allowance: Allowance, depth: int) -> None:
        self._found.files += 1
        if may_have_keys(path, content.size):
            for evidence in find_shapes(content.read()):
                self._hit(LeakKind.SECRET, shown, evidence)
        self._search_content(shown, content)
        try:
            self._search_git(shown, path, content)
            self._search_members(shown, path, content, allowance, depth)
        except Unsearchable as reason:
            self._found.skip(shown, str(reason))

    def _search_members(
        self, shown: str, path: bytes, content: Content, allowance: Allowance, depth: int
    ) -> None:
        for name, member in members(content, allowance):
            try:
                if depth == MAX_DEPTH:
                    raise Unsearchable(f"an archive in {MAX_DEPTH} others")
                inner = name.encode("utf-8", "surrogateescape") or path
                self._search(f"{shown}!{name}" if name else shown, inner, member, allowance, depth + 1)
            finally:
                member.close()

    def _search_content(self, shown: str, content: Content) -> None:
        """Search a content for values, the commit's id, lines and names, and for being a golden one."""
        values, lines, is_named = set[str](), set[bytes](), False
        for window in content.windows(self._overlap):
            self.check()
            values.update(find_values(window, self._secrets))
            is_named = is_named or (self._commit in window if self._commit else False)
            lines.update(self._lines_in(window))
        for evidence in sorted(values):
            self._hit(LeakKind.SECRET, shown, evidence)
        if is_named:
            self._hit(LeakKind.GOLDEN_OBJECT, shown, f"names the golden commit {self._golden.commit}")
        whole = self._golden.contents.get(content.size, {}).get(_identity(content, self._golden), b"")
        if whole:
            self._hit(LeakKind.GOLDEN_FILE, shown, f"has the content of {_shown(whole)}")
        elif lines:
            self._judge_lines(shown, lines)
        if self._compiled:
            self._search_compiled(shown, content)

    def _lines_in(self, window: bytes) -> Iterator[bytes]:
        """Yield the golden lines in ``window``, those in texts of JSON, too."""
        if not self._lines:
            return
        for piece in _pieces(window):
            lines = piece.split(b"\n")
            yield from self._lines.intersection(map(bytes.strip, lines, repeat(STRIPPED)))
            if _ESCAPED_LINE in piece:
                for line in lines:
                    if len(line) >= _ESCAPED_BYTES and _ESCAPED_LINE in line:
                        texts = _unescaped(line).split(_ESCAPED_LINE)
                        yield from self._lines.intersection(map(bytes.strip, texts, repeat(STRIPPED)))

    def _judge_lines(self, shown: str, matched: set[bytes]) -> None:
        """Report the golden lines of a file if they are evidence together."""
        counts: Counter[int] = Counter()
        letters: Counter[int] = Counter()
        for line in matched:
            for number in self._golden.of_line[line]:
                counts[number] += 1
                letters[number] += min(letters_of(line), _MAX_LETTERS)
        for number, count in counts.most_common():
            file = self._golden.files[number]
            several = count >= LINES_OF_FILE and letters[number] >= LETTERS_OF_FILE
            if several or (count == len(file.lines) and letters[number] >= LETTERS_OF_WHOLE):
                example = max(matched & file.lines, key=len)
                lines = f"{count} of {len(file.lines)} distinctive lines of {_shown(file.path)}"
                self._hit(LeakKind.GOLDEN_LINES, shown, f"{lines}, such as {_shown(example)!r}")
                return
        total = sum(min(letters_of(line), _MAX_LETTERS) for line in matched)
        if len(matched) >= LINES_OF_ALL and total >= LETTERS_OF_ALL:
            example = max(matched, key=len)
            lines = f"{len(matched)} distinctive lines of {len(counts)} golden files"
            self._hit(LeakKind.GOLDEN_LINES, shown, f"{lines}, such as {_shown(example)!r}")

    def _search_compiled(self, shown: str, content: Content) -> None:
        """Search a compiled Python or JVM file for names of the golden file that it was made of."""
        if not (content.head[2:4] == _PYC_MARK or content.head.startswith(_CLASS_MARK)):
            return
        data = content.read()
        for file in self._compiled:
            if file.compiled_path not in data:
                continue
            names = [name for name in file.names if name in data]
            only = len(names) == len(file.names) == 1 and len(names[0]) >= _ONE_NAME
            if len(names) >= _MIN_NAMES or only:
                example = _shown(max(names, key=len))
                evidence = f"made of {_shown(file.path)}: {len(names)} of its names, such as {example!r}"
                self._hit(LeakKind.GOLDEN_NAMES, shown, evidence)
                return

    def _search_git(self, shown: str, path: bytes, content: Content) -> None:
        """Search git's files for objects by their ids, and what objects contain for lines."""
        if not self._commit:
            return
        found = {named_object(path), *listed_objects(content, self._objects)}
        try:
            for each in stored_objects(content, self.check):
                found |= {each.identity, each.base}
                lines = set(self._lines_in(each.content))
                if lines:
                    self._judge_lines(f"{shown}!object", lines)
        finally:
            for identity in sorted(found & self._objects.keys()):
                evidence = f"has the object {identity.hex()}, the {self._objects[identity]}"
                self._hit(LeakKind.GOLDEN_OBJECT, shown, evidence)

    def _hit(self, kind: LeakKind, path: str, evidence: str) -> None:
        self._found.add(Leak(kind, CONFIG, path, evidence))


def _identity(content: Content, golden: GoldenTraces) -> bytes:
    """Return the id of the content in git if a golden file has its size."""
    if content.size not in golden.contents:
        return b""
    digest = hashlib.sha1(b"blob %d\0" % content.size, usedforsecurity=False)
    file = content.open()
    while piece := file.read(_LINES_BYTES):
        digest.update(piece)
    return digest.digest()


def _pieces(window: bytes) -> Iterable[bytes]:
    """Split a window between lines, so that few lines are in memory at once."""
    at = 0
    while len(window) - at > 2 * _LINES_BYTES:
        end = window.rfind(b"\n", at, at + _LINES_BYTES) + 1
        if not end:
            break
        yield window[at:end]
        at = end
    yield window[at:] if at else window


def _unescaped(line: bytes) -> bytes:
    return line.replace(b"\\t", b" ").replace(b"\\r", b" ").replace(b'\\"', b'"')


def _shown(text: bytes) -> str:
    return text[:120].decode("utf-8", "backslashreplace")
