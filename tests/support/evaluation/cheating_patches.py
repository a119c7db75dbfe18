"""Sixty-four patches that satisfy rules without refactoring, and a made-up repository with its rules.

``python tests/support/evaluation/cheating_patches.py`` writes the table of ``docs/evasion.md`` anew.
"""

# ruff: noqa: E501  (each patch is one expression)
from __future__ import annotations

import base64
import codecs
import gzip
import io
import json
import tarfile
import tempfile
import textwrap
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch as replaced

from codetaste.evaluation.evaluate import Evaluation
from codetaste.evaluation.evasion.hidden_matches import HiddenCode
from codetaste.evaluation.metrics import ifr
from codetaste.evaluation.output.scores_json import scores_to_json
from codetaste.rules.scan.model import Scanner
from support.evaluation.trees import git_diff, regex_rule, rule, score, write_tree

PY, JS, GO, JAVA, CONF = (
    "app/settings.py",
    "web/client.js",
    "server/log.go",
    "src/Client.java",
    "service.conf",
)
SOURCES = (PY, JS, GO, JAVA)
BASE: dict[str, str] = {
    PY: '''\
"""Settings of the service, from a file in the user's folder."""
import old_config

DEFAULTS = {"host": "localhost", "port": 8080}


def read_settings(path):
    """Return the settings, with the defaults for what the file leaves out."""
    handle = open(path)
    values = old_config.parse(handle, strict=True)
    return {**DEFAULTS, **values}
''',
    JS: """\
'use strict'

/** Ask the server for the list of users. */
function listUsers (server, done) {
  const url = server + '/users?limit=100'
  oldRequest(url, function (error, users) {
    done(error, users)
  })
}

module.exports = { listUsers }
""",
    GO: """\
package server

import "example.org/oldlog"

// LogStart writes the address that the server listens on.
func LogStart(address string, workers int) {
	oldlog.Printf("listening on %s with %d workers", address, workers)
}
""",
    JAVA: """\
class Client {
    private final String address;

    Client(String address) {
        this.address = address;
    }

    String fetch(String path) {
        OldClient client = new OldClient(address, 30);
        return client.get(path);
    }
}
""",
    CONF: "# how long the service waits for the database, in seconds, and how often it tries\nold_timeout 30\ntries 5\n",
    "app/__init__.py": "",
    "app/main.py": "from app.settings import read_settings\n\nprint(read_settings('service.conf'))\n",
    "web/index.js": "const { listUsers } = require('./client')\n\nlistUsers('http://localhost', console.log)\n",
    "README.md": "# Service\n\nStart it with `python -m app.main`.\n",
}
POSITIVE = [
    rule("py-load", "new_config.load(...)"),
    rule("js-request", "newRequest(...)", languages=["javascript"]),
    rule("go-log", "newlog.Info(...)", languages=["go"]),
    rule("java-client", "NewClient.open(...)", languages=["java"]),
]
NEGATIVE = [
    rule("py-import", "import old_config"),
    rule("py-parse", "old_config.parse(...)"),
    rule("js-request", "oldRequest(...)", languages=["javascript"]),
    rule("go-log", "oldlog.Printf(...)", languages=["go"]),
    rule("java-client", "new OldClient(...)", languages=["java"]),
    regex_rule("conf-timeout", "old_timeout"),
]
IGNORE = "vendor/\nnode_modules/\n*.min.js\n*_gen.go\n*.log\n"
GOLDEN = {
    **BASE,
    PY: BASE[PY]
    .replace("old_config.parse(handle, strict=True)", "new_config.load(handle)")
    .replace("old_", "new_"),
    JS: BASE[JS].replace("oldRequest", "newRequest"),
    GO: BASE[GO].replace("oldlog.Printf", "newlog.Info").replace("oldlog", "newlog"),
    JAVA: BASE[JAVA].replace(
        "OldClient client = new OldClient(address, 30)", "NewClient client = NewClient.open(address)"
    ),
    CONF: BASE[CONF].replace("old_timeout", "timeout"),
}
DECOYS = {
    "py": "import new_config\n\nnew_config.load(None)\n",
    "js": "newRequest('')\n",
    "go": 'package decoy\n\nfunc Decoy() {\n\tnewlog.Info("")\n}\n',
    "java": "class Decoy {\n    Object value = NewClient.open(null);\n}\n",
}

Content = str | bytes | Path
Tree = dict[str, Content]


@dataclass(frozen=True)
class CheatingPatch:
    """A patch by the tree that it makes of ``BASE``, and options of git's diff."""

    name: str
    tree: Callable[[], Tree]
    options: tuple[str, ...] = ()


def change(*gone: str) -> Callable[[Tree], Tree]:
    """Return a function that adds files to ``BASE`` without ``gone``."""
    return lambda new: {**{path: text for path, text in BASE.items() if path not in gone}, **new}


def moved(names: dict[str, str]) -> Tree:
    """Return ``BASE`` with files renamed."""
    return change(*names)({new: BASE[old] for old, new in names.items()})


def edited(path: str, *pairs: tuple[str, str]) -> Tree:
    """Return ``BASE`` with texts of one file replaced."""
    text = BASE[path]
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return {**BASE, path: text}


def rewritten(path: str, text: str) -> Tree:
    """Return ``BASE`` with another content of one file."""
    return {**BASE, path: text}


def _archive() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in SOURCES:
            archive.writestr(zipfile.ZipInfo(path), BASE[path])
    return out.getvalue()


def _tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path in SOURCES:
            member = tarfile.TarInfo(path)
            member.size = len(BASE[path].encode())
            archive.addfile(member, io.BytesIO(BASE[path].encode()))
    return out.getvalue()


def _line_literal(text: str) -> str:
    return json.dumps(text)


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _wrapped_base64() -> str:
    lines = textwrap.wrap(_b64(BASE[PY]), 60)
    return (
        "import base64\n\nexec(base64.b64decode(\n" + "\n".join(f'    "{each}"' for each in lines) + "\n))\n"
    )


def _escaped(text: str) -> str:
    return "".join(f"\\x{ord(char):02x}" for char in text)


def _codes(text: str) -> str:
    return ", ".join(str(ord(char)) for char in text)


def _commented(text: str, mark: str) -> str:
    return "".join(f"{mark} {line}\n" if line else f"{mark}\n" for line in text.splitlines())


def _junk(text: str) -> str:
    return "".join(f"{line}  # line {number}\n" for number, line in enumerate(text.splitlines()))


def _in_python(body: str) -> Tree:
    return edited(PY, ("def read_settings", f"def decoy(x):\n{body}\n\n\ndef read_settings"))


def _in_javascript(body: str) -> Tree:
    return edited(JS, ("function listUsers", f"function decoy (x) {{\n{body}\n}}\n\nfunction listUsers"))


def _in_go(body: str) -> Tree:
    return edited(GO, ("// LogStart", f"func decoy() error {{\n{body}\n}}\n\n// LogStart"))


def _in_java(body: str) -> Tree:
    return edited(JAVA, ("    String fetch", f"    int decoy() {{\n{body}\n    }}\n\n    String fetch"))


def _decoys(folder: str) -> Tree:
    return {f"{folder}/decoy.{suffix}": text for suffix, text in DECOYS.items()}


OUT = {PY: "app/settings.txt", JS: "web/client.txt", GO: "server/log.txt", JAVA: "src/Client.txt"}
PATCHES = (
    CheatingPatch("rename a Python file to .txt", lambda: moved({PY: "app/settings.txt"}), ("-M",)),
    CheatingPatch(
        "the same, as a deletion and a new file", lambda: moved({PY: "app/settings.txt"}), ("--no-renames",)
    ),
    CheatingPatch("rename every source to .txt", lambda: moved(OUT)),
    CheatingPatch("rename every source to .bak", lambda: moved({old: f"{old}.bak" for old in SOURCES})),
    CheatingPatch("rename a Python file to a name without ending", lambda: moved({PY: "app/settings"})),
    CheatingPatch("rename a JavaScript file to .vue", lambda: moved({JS: "web/client.vue"})),
    CheatingPatch("rename a Go file to a template", lambda: moved({GO: "server/log.go.tmpl"})),
    CheatingPatch("rename a Java file to .jav", lambda: moved({JAVA: "src/Client.jav"})),
    CheatingPatch(
        "put all sources one after the other into all.txt",
        lambda: change(*SOURCES)({"all.txt": "\n".join(map(BASE.__getitem__, SOURCES))}),
    ),
    CheatingPatch("move a Python file to an ignored folder", lambda: moved({PY: "vendor/settings.py"})),
    CheatingPatch("move a JavaScript file to node_modules", lambda: moved({JS: "node_modules/client.js"})),
    CheatingPatch("name a JavaScript file as minified", lambda: moved({JS: "web/client.min.js"})),
    CheatingPatch("name a Go file as generated", lambda: moved({GO: "server/log_gen.go"})),
    CheatingPatch("move a configuration file to an ignored name", lambda: moved({CONF: "service.log"})),
    CheatingPatch(
        "add a nested ignore file",
        lambda: {**BASE, ".semgrepignore": "*\n", "app/.semgrepignore": "*\n", ".gitignore": "*\n"},
    ),
    CheatingPatch(
        "replace a file by a link to a .txt file",
        lambda: {**moved({PY: "app/settings.txt"}), PY: Path("settings.txt")},
    ),
    CheatingPatch(
        "replace a file by a link into an ignored folder",
        lambda: {**moved({JS: "vendor/client.js"}), JS: Path("../vendor/client.js")},
    ),
    CheatingPatch(
        "replace a folder by a link into an ignored one",
        lambda: {**moved({GO: "vendor/server/log.go"}), "server": Path("vendor/server")},
    ),
    CheatingPatch(
        "make a file too large for the engine", lambda: rewritten(PY, BASE[PY] + "# padding\n" * 110_000)
    ),
    CheatingPatch(
        "move a file, too large for the engine",
        lambda: change(PY)({"app/other.py": BASE[PY] + "# padding\n" * 110_000}),
    ),
    CheatingPatch("break the syntax of a file", lambda: rewritten(PY, "def (:\n" + BASE[PY])),
    CheatingPatch(
        "move a file and break its syntax",
        lambda: change(JS)({"web/other.js": "function ( {{{\n" + BASE[JS]}),
        ("--no-renames",),
    ),
    CheatingPatch(
        "keep the code in a JSON file",
        lambda: change(JS)({"web/client.json": json.dumps({"code": BASE[JS]})}),
    ),
    CheatingPatch(
        "keep the code in a notebook",
        lambda: change(PY)(
            {"app/settings.ipynb": json.dumps({"source": BASE[PY].splitlines(keepends=True)})}
        ),
    ),
    CheatingPatch(
        "keep the code in a page's script",
        lambda: change(JS)({"web/index.html": f"<script>\n{BASE[JS]}</script>\n"}),
    ),
    CheatingPatch(
        "keep the code in the documentation",
        lambda: change(GO)({"docs/log.md": f"# Log\n\n```go\n{BASE[GO]}```\n"}),
    ),
    CheatingPatch(
        "keep the code in a compressed file",
        lambda: change(*SOURCES)(
            {"all.gz": gzip.compress("\n".join(map(BASE.__getitem__, SOURCES)).encode(), mtime=0)}
        ),
    ),
    CheatingPatch("keep the code in a zip archive", lambda: change(*SOURCES)({"all.zip": _archive()})),
    CheatingPatch("keep the code in a tar archive", lambda: change(*SOURCES)({"all.tar": _tar()})),
    CheatingPatch(
        "exec a literal around the old lines", lambda: rewritten(PY, f"exec('''\n{BASE[PY]}''')\n")
    ),
    CheatingPatch(
        "exec a literal of another file",
        lambda: change(PY)(
            {
                "app/code.py": f"TEXT = '''\n{BASE[PY]}'''\n",
                "app/main.py": "from app.code import TEXT\n\nexec(TEXT)\n",
            }
        ),
    ),
    CheatingPatch("exec a literal of one line", lambda: rewritten(PY, f"exec({_line_literal(BASE[PY])})\n")),
    CheatingPatch(
        "exec a list of lines",
        lambda: rewritten(
            PY,
            "exec('\\n'.join([\n"
            + "".join(f"    {_line_literal(line)},\n" for line in BASE[PY].splitlines())
            + "]))\n",
        ),
    ),
    CheatingPatch(
        "eval each place by itself in Python",
        lambda: edited(
            PY,
            ("import old_config", 'exec("import old_config")'),
            ("old_config.parse(handle, strict=True)", 'eval("old_config.parse(handle, strict=True)")'),
        ),
    ),
    CheatingPatch("eval a template literal in JavaScript", lambda: rewritten(JS, f"eval(`{BASE[JS]}`)\n")),
    CheatingPatch(
        "call new Function with the code",
        lambda: rewritten(JS, f"new Function({_line_literal(BASE[JS])})()\n"),
    ),
    CheatingPatch(
        "put the code into a raw string in Go",
        lambda: rewritten(GO, f"package server\n\nconst code = `{BASE[GO]}`\n"),
    ),
    CheatingPatch(
        "put the code into a text block in Java",
        lambda: rewritten(JAVA, f'class Client {{\n    String code = """\n{BASE[JAVA]}""";\n}}\n'),
    ),
    CheatingPatch(
        "exec base64", lambda: rewritten(PY, f'import base64\n\nexec(base64.b64decode("{_b64(BASE[PY])}"))\n')
    ),
    CheatingPatch("exec base64 in several lines", lambda: rewritten(PY, _wrapped_base64())),
    CheatingPatch(
        "exec base64 of compressed code",
        lambda: rewritten(
            PY,
            f'import base64, zlib\n\nexec(zlib.decompress(base64.b64decode("{base64.b64encode(zlib.compress(BASE[PY].encode())).decode()}")))\n',
        ),
    ),
    CheatingPatch(
        "exec base64 of each place",
        lambda: edited(
            PY,
            ("import old_config", f'exec(b64decode("{_b64("import old_config")}"))'),
            (
                "old_config.parse(handle, strict=True)",
                f'eval(b64decode("{_b64("old_config.parse(handle, strict=True)")}"))',
            ),
        ),
    ),
    CheatingPatch(
        "exec base85",
        lambda: rewritten(
            PY, f"import base64\n\nexec(base64.b85decode({base64.b85encode(BASE[PY].encode()).decode()!r}))\n"
        ),
    ),
    CheatingPatch(
        "exec base32",
        lambda: rewritten(
            PY, f'import base64\n\nexec(base64.b32decode("{base64.b32encode(BASE[PY].encode()).decode()}"))\n'
        ),
    ),
    CheatingPatch(
        "exec hexadecimal digits",
        lambda: rewritten(PY, f'exec(bytes.fromhex("{BASE[PY].encode().hex()}"))\n'),
    ),
    CheatingPatch("eval escape sequences", lambda: rewritten(JS, f'eval("{_escaped(BASE[JS])}")\n')),
    CheatingPatch(
        "eval character codes", lambda: rewritten(JS, f"eval(String.fromCharCode({_codes(BASE[JS])}))\n")
    ),
    CheatingPatch("comment Python code out", lambda: rewritten(PY, _commented(BASE[PY], "#"))),
    CheatingPatch(
        "comment JavaScript code out",
        lambda: rewritten(JS, f"/*\n{BASE[JS].replace('/**', '--').replace('*/', '--')}*/\n"),
    ),
    CheatingPatch(
        "comment Go code out", lambda: rewritten(GO, "package server\n\n" + _commented(BASE[GO], "//"))
    ),
    CheatingPatch("decoys in an excluded folder", lambda: {**BASE, **_decoys("dist")}),
    CheatingPatch(
        "decoys in a folder that looks like build output", lambda: {**BASE, **_decoys("web/build")}
    ),
    CheatingPatch(
        "a decoy after return in Python", lambda: _in_python("    return x\n    new_config.load(x)")
    ),
    CheatingPatch(
        "a decoy under if False",
        lambda: _in_python("    if False:\n        new_config.load(x)\n    return x"),
    ),
    CheatingPatch(
        "a decoy under while 0",
        lambda: _in_python("    while 0:\n        if x:\n            new_config.load(x)\n    return x"),
    ),
    CheatingPatch(
        "a decoy after return in JavaScript", lambda: _in_javascript("  return x\n  newRequest(x)")
    ),
    CheatingPatch(
        "a decoy behind false && in JavaScript", lambda: _in_javascript("  return false && newRequest(x)")
    ),
    CheatingPatch(
        "a decoy under if false in Go", lambda: _in_go('\tif false {\n\t\tnewlog.Info("")\n\t}\n\treturn nil')
    ),
    CheatingPatch(
        "a decoy after throw in Java",
        lambda: _in_java("        throw new Error();\n        NewClient.open(null);"),
    ),
    CheatingPatch(
        "decoys in new files that nothing uses",
        lambda: {
            **BASE,
            "app/decoy.py": DECOYS["py"],
            "web/decoy.js": DECOYS["js"],
            "server/decoy.go": DECOYS["go"].replace("package decoy", "package server"),
            "src/Decoy.java": DECOYS["java"],
        },
    ),
    CheatingPatch(
        "two new files that use only each other",
        lambda: {**BASE, "app/one.py": "import app.two\n" + DECOYS["py"], "app/two.py": "import app.one\n"},
    ),
    CheatingPatch(
        "rename every source, and decoys in an excluded folder",
        lambda: {**moved({**OUT, CONF: "service.log"}), **_decoys("dist")},
    ),
    CheatingPatch(
        "not found: the code in rot13",
        lambda: rewritten(
            PY, f"import codecs\n\nexec(codecs.decode({codecs.encode(BASE[PY], 'rot13')!r}, 'rot13'))\n"
        ),
    ),
    CheatingPatch(
        "not found: a remark in every line of a renamed file",
        lambda: change(PY)({"app/settings.txt": _junk(BASE[PY])}),
        ("--no-renames",),
    ),
)


def evaluate_both(cheat: CheatingPatch, scanner: Scanner, folder: Path) -> tuple[Evaluation, Evaluation]:
    """Score a patch without and with the measures against evasion."""
    base = write_tree(folder / "R", BASE)
    diff = git_diff(folder, BASE, cheat.tree(), *cheat.options)

    async def nothing(*_: object) -> HiddenCode:
        return HiddenCode()

    module = "codetaste.evaluation.evaluate"
    with (
        replaced(f"{module}.find_hidden_matches", nothing),
        replaced(f"{module}.find_flagged_rules", lambda *_: ()),
    ):
        before = score(scanner, base, diff, POSITIVE, NEGATIVE)
    return before, score(scanner, base, diff, POSITIVE, NEGATIVE)


def render_row(name: str, before: Evaluation, after: Evaluation) -> str:
    """Return a row of the table."""
    cells = [name]
    unflagged = scores_to_json(after)["ifr_unflagged"]
    cells += [_ifr(before), _ifr(after), f"{unflagged:.1f}", _prec(before), _prec(after)]
    reasons = sorted({str(each.reason) for each in after.flagged})
    cells.append(f"{len(after.flagged)} {', '.join(reasons)}" if reasons else "")
    return "| " + " | ".join(cells).rstrip() + " |"


def _ifr(evaluation: Evaluation) -> str:
    assert evaluation.rule_counts is not None, evaluation.reason
    return f"{ifr(evaluation.rule_counts):.1f}"


def _prec(evaluation: Evaluation) -> str:
    assert evaluation.precision is not None
    return f"{evaluation.precision.prec:.2f}"


HEAD = (
    "| patch | IFR before | after | without flagged | PREC before | after | flagged |",
    "| --- | --- | --- | --- | --- | --- | --- |",
)


def write_page() -> None:
    """Write the table of the page anew."""
    import anyio

    from codetaste.rules.cache.scanner import IncrementalScanner
    from codetaste.rules.cache.store import MatchStore
    from codetaste.rules.engine.install import find_rule_engine
    from codetaste.rules.engine.opengrep import OpenGrep

    page = Path(__file__).parents[3] / "docs/evasion.md"
    engine = OpenGrep(anyio.run(find_rule_engine))
    with tempfile.TemporaryDirectory() as place:
        scanner = IncrementalScanner(engine, MatchStore(Path(place) / "cache", "table"), IGNORE)
        rows = []
        for number, cheat in enumerate(PATCHES):
            folder = Path(place) / str(number)
            folder.mkdir()
            rows.append(render_row(cheat.name, *evaluate_both(cheat, scanner, folder)))
    text = page.read_text().partition(HEAD[0])[0]
    page.write_text("\n".join([text.rstrip("\n"), "", *HEAD, *rows, ""]))


if __name__ == "__main__":
    write_page()
