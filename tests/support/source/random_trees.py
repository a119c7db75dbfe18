"""Two trees with random differences, as commits of a real repository and as bytes in memory."""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

from support.source.repositories import ENVIRONMENT

FILE, PROGRAM, LINK, SUBMODULE = b"100644", b"100755", b"120000", b"160000"
Tree = dict[bytes, tuple[bytes, bytes]]
"""Mode and content by path; the content of a submodule is the hash of its commit."""

LINES = [
    *(b"a", b"b", b"c", b"", b" ", b"\t", b"}", b"-", b"+", b"-- ", b"--- a/x", b"+++ b/x", b"--", b"++"),
    *(b"-- a/1", b"++ b/1", b"@@ -1,3 +1,3 @@", b"diff --git a/x b/x", b"index 1234567..89abcde 100644"),
    *(b"\\ No newline at end of file", b"GIT binary patch", b"Binary files a/x and b/x differ"),
    *(b"x\x0cy", b"\x0b", b"one\rtwo", b"dos\r", b"\r", b"\x85", b"\xc2\x85", b"\xe2\x80\xa8"),
    *(b"\x1c\x1d\x1e", b"caf\xc3\xa9", b"\xff\xfe", b"rename from a", b"new file mode 100644"),
]  # fmt: skip
NAMES = [
    *(b"a", b"x", b"x b/x", b"b/a", b"with blank", b"end ", b" start", b"dev/null", b'q"uote', b"tab\there"),
    *(b"new\nline", b"back\\slash", b"caf\xc3\xa9", b"\xff\xfe", b"\x7f", b"\r", b"a/b/c/d", b"-", b"--- a"),
]  # fmt: skip


@dataclass(frozen=True)
class Edits:
    old: Tree
    new: Tree


def random_edits(rng: random.Random, files: int, *, submodules: bool = True) -> Edits:
    """Make edits of ``files`` files: contents, modes, kinds, names; some are new and some are deleted."""
    old: Tree = {}
    new: Tree = {}
    for number in range(files):
        path = _path(rng, number)
        content = _content(rng)
        edited = _edit(rng, content)
        mode = rng.choice([FILE, FILE, PROGRAM])
        kind = rng.random()
        if kind < 0.08:
            new[path] = mode, content
        elif kind < 0.16:
            old[path] = mode, content
        elif kind < 0.3:
            old[path], new[_path(rng, files + number)] = (
                (mode, content),
                (mode, rng.choice([content, edited])),
            )
        elif kind < 0.38:
            old[path], new[path] = (mode, content), (mode, edited)
            new[_path(rng, files + number)] = mode, _edit(rng, content)
        elif kind < 0.46:
            old[path], new[path] = (FILE, content), (PROGRAM, rng.choice([content, edited]))
        elif kind < 0.54:
            pair = [(LINK, _target(rng)), (rng.choice([LINK, FILE]), _target(rng))]
            rng.shuffle(pair)
            old[path], new[path] = pair
        elif kind < 0.6 and submodules:
            old[path], new[path] = (SUBMODULE, _commit(rng)), (SUBMODULE, _commit(rng))
        else:
            old[path], new[path] = (mode, content), (mode, edited)
    return Edits(old, new)


def _path(rng: random.Random, number: int) -> bytes:
    # A number in every part keeps files and folders apart.
    parts = [b"%s%d" % (part, number) for part in rng.choice(NAMES).split(b"/")]
    return b"/".join(parts)


def _target(rng: random.Random) -> bytes:
    return b"to/" + rng.choice([b"a", b"b c", b"\xc3\xa9", b"new\nline"]) + b"%d" % rng.randrange(5)


def _commit(rng: random.Random) -> bytes:
    return rng.randbytes(20).hex().encode()


def _content(rng: random.Random) -> bytes:
    if rng.random() < 0.06:
        return rng.randbytes(rng.randrange(200)) + b"\0"
    lines = [rng.choice(LINES) for _ in range(rng.choice([0, 1, 3, 10, 40]))]
    text = b"".join(line + b"\n" for line in lines)
    return text if rng.random() < 0.7 else text + rng.choice(LINES)


def _edit(rng: random.Random, content: bytes) -> bytes:
    lines = content.split(b"\n")
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(lines) + 1)
        lines[at : at + rng.randrange(3)] = [rng.choice(LINES) for _ in range(rng.randrange(4))]
    return b"\n".join(lines)


@dataclass(frozen=True)
class EditedRepository:
    """A bare repository whose branches ``old`` and ``new`` hold the two trees."""

    path: Path

    def git(self, *args: str) -> bytes:
        return subprocess.run(
            ["git", "-C", str(self.path), *args], capture_output=True, check=True, env=ENVIRONMENT
        ).stdout

    @staticmethod
    def create(path: Path, edits: Edits) -> EditedRepository:
        subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True, env=ENVIRONMENT)
        stream = _commits(b"old", edits.old) + _commits(b"new", edits.new)
        subprocess.run(
            ["git", "-C", str(path), "fast-import", "--quiet"], input=stream, check=True, env=ENVIRONMENT
        )
        return EditedRepository(path)


def _commits(branch: bytes, tree: Tree) -> bytes:
    parts = [b"commit refs/heads/%s\ncommitter A <a@b> 1 +0000\ndata 0\n" % branch]
    for path, (mode, content) in tree.items():
        quoted = b'"' + b"".join(b"\\%03o" % byte for byte in path) + b'"'
        if mode == SUBMODULE:
            parts.append(b"M 160000 %s %s\n" % (content, quoted))
        else:
            parts.append(b"M %s inline %s\ndata %d\n%s\n" % (mode, quoted, len(content), content))
    return b"".join(parts) + b"\n"
