"""Scripts of the contract (CodeTaste, Figure 11) for one project in each of five languages.

They work on both commits of a project, install through the registries, and run without a network once they
have run with one. Dependencies are in HOME or in folders that git ignores; the project itself is installed
nowhere, so that no later commit tests the code of an earlier one.

``run_tests`` counts in a report of the runner, and ends with the runner's exit status. The report stays in a
new folder of /tmp, that of Maven in target/.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_HEAD = """\
#!/bin/bash
cd /testbed || exit 1
report="$(mktemp -d)"
"""
_COUNT = """\
count = {"passed": passed, "failed": failed, "skipped": skipped}
print(json.dumps({**count, "total": sum(count.values())}))
EOF
exit $status
"""

NOTHING = "#!/bin/bash\n# The tests need no service.\nexit 0\n"


@dataclass(frozen=True)
class Scripts:
    """The four files that a setup agent leaves."""

    setup_shell: str
    run_tests: str
    setup_system: str = NOTHING
    summary: str = "# Summary\nThe tests run.\n"

    @property
    def files(self) -> dict[str, str]:
        """The texts by file name."""
        return {
            "setup_system.sh": self.setup_system,
            "setup_shell.sh": self.setup_shell,
            "run_tests": self.run_tests,
            "SUMMARY.md": self.summary,
        }

    def write(self, folder: Path) -> None:
        """Write the files into ``folder``; all but the summary are executable."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            path = folder / name
            path.write_text(text)
            path.chmod(0o644 if name.endswith(".md") else 0o755)


PYTHON = Scripts(
    setup_shell="""\
#!/bin/bash
# pytest has an environment of its own; the package is imported from /testbed.
if [ ! -x "$HOME/.testenv/bin/pytest" ]; then
    python3 -m venv "$HOME/.testenv" &&
        "$HOME/.testenv/bin/pip" install --quiet --disable-pip-version-check pytest==8.3.5 || return 1
fi
export PATH="$HOME/.testenv/bin:$PATH" PYTHONDONTWRITEBYTECODE=1
""",
    run_tests=_HEAD
    + """\
python -m pytest -q -p no:cacheprovider --junit-xml="$report/junit.xml" h11 >&2
status=$?
python -I - "$report/junit.xml" <<'EOF'
import json
import sys
import xml.etree.ElementTree as ElementTree

passed = failed = skipped = 0
for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
    outcomes = {child.tag for child in case}
    if outcomes & {"failure", "error"}:
        failed += 1
    elif "skipped" in outcomes:
        skipped += 1
    else:
        passed += 1
"""
    + _COUNT,
    summary="# Summary\nPure Python, tested by pytest, which is in an environment below HOME.\n",
)

JAVASCRIPT = Scripts(
    setup_shell="""\
#!/bin/bash
# mocha and the packages that package.json asks for are below HOME; node_modules is a link to the latter.
# Releases of mocha from 8 on need flat 5, which is R∘X*: the runtime image would be refused.
quiet="--no-audit --no-fund --no-update-notifier --loglevel=error"
if [ ! -x "$HOME/.mocha/node_modules/.bin/mocha" ]; then
    npm install $quiet --prefix "$HOME/.mocha" mocha@5.2.0 >&2 || return 1
fi
list='Object.entries(require("/testbed/package.json").dependencies ?? {}).map(d => d.join("@")).join(" ")'
needed="$(node -p "$list")"
packages="$HOME/.packages/$(echo "$needed" | sha256sum | cut -c1-16)"
if [ ! -f "$packages/complete" ]; then
    mkdir -p "$packages/node_modules" &&
        { [ -z "$needed" ] || npm install $quiet --prefix "$packages" $needed >&2; } &&
        touch "$packages/complete" || return 1
fi
ln -sfn "$packages/node_modules" /testbed/node_modules
export PATH="$HOME/.mocha/node_modules/.bin:$PATH"
""",
    run_tests=_HEAD
    + """\
mocha --ui tdd --timeout 60s --reporter json test/test.js >"$report/mocha.json"
status=$?
cd / && node - "$report/mocha.json" <<'EOF'
const { passes, failures, pending } = JSON.parse(require("fs").readFileSync(process.argv[2], "utf8"));
const count = { passed: passes.length, failed: failures.length, skipped: pending.length };
console.log(JSON.stringify({ ...count, total: count.passed + count.failed + count.skipped }));
EOF
exit $status
""",
    summary="# Summary\nJavaScript for Node, tested by mocha, which is below HOME.\n",
)

GO = Scripts(
    setup_shell="""\
#!/bin/bash
# Modules are in the cache below HOME. "go mod download" would add a line to an old go.mod. No C is compiled.
export GOTOOLCHAIN=local GOFLAGS=-mod=readonly CGO_ENABLED=0
(cd /testbed && go list -deps -test ./... >/dev/null) || return 1
""",
    run_tests=_HEAD
    + """\
go test -json -count=1 ./... >"$report/go-test.jsonl"
status=$?
python3 -I - "$report/go-test.jsonl" <<'EOF'
import json
import sys

ends = {}
for line in open(sys.argv[1], encoding="utf-8"):
    if not line.startswith("{"):
        continue  # a compiler's message
    event = json.loads(line)
    if "Test" in event and event["Action"] in {"run", "pass", "fail", "skip"}:
        ends[event["Package"], event["Test"]] = event["Action"]
passed, skipped = (list(ends.values()).count(action) for action in ("pass", "skip"))
failed = len(ends) - passed - skipped
"""
    + _COUNT,
    summary="# Summary\nA Go module, tested by go test.\n",
)

RUST = Scripts(
    setup_shell="""\
#!/bin/bash
# Crates and the lock file are below HOME; git ignores Cargo.lock and target. Old releases of cargo read the
# index without git only when told so. The pinned crate is the last for old compilers.
minor="$(rustc --version | cut -d. -f2)"
if [ "$minor" -lt 68 ]; then
    export RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_SPARSE_REGISTRY=true
fi
lock="$HOME/.locks/$(sha256sum /testbed/Cargo.toml | cut -c1-16)"
if [ ! -f "$lock" ]; then
    (cd /testbed && cargo generate-lockfile --quiet &&
        cargo update --quiet --package unicode-segmentation --precise 1.10.1 &&
        cargo fetch --quiet --locked && mkdir -p "${lock%/*}" && cp Cargo.lock "$lock") || return 1
fi
cp "$lock" /testbed/Cargo.lock
""",
    run_tests=_HEAD
    + """\
cargo test --offline --locked --lib --all-features >"$report/cargo-test.txt"
status=$?
python3 -I - "$report/cargo-test.txt" <<'EOF'
import json
import re
import sys

ends = re.findall(r"^test .+ \\.\\.\\. (ok|FAILED|ignored)", open(sys.argv[1], encoding="utf-8").read(), re.M)
passed, failed, skipped = (ends.count(end) for end in ("ok", "FAILED", "ignored"))
"""
    + _COUNT,
    summary="# Summary\nA Rust crate, tested by cargo test.\n",
)

JAVA = Scripts(
    setup_shell="""\
#!/bin/bash
# Plugins and libraries are below HOME; one small test class makes Maven fetch what runs tests, too. Goals
# instead of a phase leave out the plugins that check and pack.
export MAVEN_TESTS="-q -B -Dmaven.repo.local=$HOME/.m2/repository \
    resources:resources compiler:compile resources:testResources compiler:testCompile surefire:test"
case "$MAVEN_OPTS" in
*TieredStopAtLevel*) ;;
*) export MAVEN_OPTS="$MAVEN_OPTS -XX:TieredStopAtLevel=1 -XX:+UseSerialGC" ;;  # a start counts, not the end
esac
stamp="$HOME/.m2/ready-$(sha256sum /testbed/pom.xml | cut -c1-16)"
if [ ! -f "$stamp" ]; then
    (cd /testbed && mvn -Dtest=OptionGroupTest $MAVEN_TESTS >&2 && touch "$stamp") || return 1
fi
""",
    run_tests=_HEAD
    + """\
rm -rf target/surefire-reports
mvn -o $MAVEN_TESTS >&2
status=$?
python3 -I - target/surefire-reports <<'EOF'
import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

passed = failed = skipped = 0
for report in Path(sys.argv[1]).glob("TEST-*.xml"):
    for case in ElementTree.parse(report).iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            failed += 1
        elif "skipped" in outcomes:
            skipped += 1
        else:
            passed += 1
"""
    + _COUNT,
    summary="# Summary\nA Java library, built and tested by Maven.\n",
)
