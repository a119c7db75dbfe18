"""Real projects with their tests, one in each of five languages, that the registries have.

Each project is two releases with a refactoring between them; ``archives.py`` fetches them.
"""

from __future__ import annotations

from dataclasses import dataclass

from support.environment.scripts import GO, JAVA, JAVASCRIPT, PYTHON, RUST, Scripts


@dataclass(frozen=True)
class Counts:
    """What ``run_tests`` reports; no test fails."""

    passed: int
    skipped: int = 0

    @property
    def as_json(self) -> dict[str, int]:
        """The last line of ``run_tests``."""
        total = self.passed + self.skipped
        return {"passed": self.passed, "failed": 0, "skipped": self.skipped, "total": total}


@dataclass(frozen=True)
class Breakage:
    """A change of one function of R after which tests fail: ``old`` is in the file once."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Project:
    """A project as a registry has it.

    Attributes:
        language: as in instances.csv.
        name: what the registry calls it.
        repo: ``OWNER/REPO`` in a benchmark.
        base: version of R.
        golden: version of R∘X*.
        scripts: what sets up and tests both.
        base_counts: test results of R.
        golden_counts: test results of R∘X*.
        breakage: what makes tests of R fail.
        patterns: regular expressions of rules, the first matches R alone, the second R∘X* alone.
        ignored: lines of .gitignore, which archives leave out.
        hashes: sha256 of the two archives, where the client does not check them.
    """

    language: str
    name: str
    repo: str
    base: str
    golden: str
    scripts: Scripts
    base_counts: Counts
    golden_counts: Counts
    breakage: Breakage
    patterns: tuple[str, str]
    ignored: tuple[str, ...] = ()
    hashes: tuple[str, str] = ("", "")


H11 = Project(
    language="python",
    name="h11",
    repo="python-hyper/h11",
    base="0.12.0",
    golden="0.13.0",
    scripts=PYTHON,
    base_counts=Counts(79),
    golden_counts=Counts(78),
    breakage=Breakage(
        "h11/_headers.py",
        "def get_comma_header(headers, name):\n",
        "def get_comma_header(headers, name):\n    return []\n",
    ),
    patterns=(r"def get_comma_header\(headers, name\):", r"def get_comma_header\(headers: "),
    ignored=("__pycache__/", ".pytest_cache/"),
    hashes=(
        "47222cb6067e4a307d535814917cd98fd0a57b6788ce715755fa2b6c28b56042",
        "70813c1135087a248a4d38cc0e1a0181ffab2188141a93eaf567940c3957ff06",
    ),
)
"""Annotates types everywhere; tested by pytest."""

FLAT = Project(
    language="javascript",
    name="flat",
    repo="hughsk/flat",
    base="4.1.1",
    golden="5.0.0",
    scripts=JAVASCRIPT,
    base_counts=Counts(44),
    golden_counts=Counts(50),
    breakage=Breakage(
        "index.js", "function flatten (target, opts) {\n", "function flatten (target, opts) {\n  return {}\n"
    ),
    patterns=(r"\bvar delimiter\b", r"\bconst delimiter\b"),
    ignored=("node_modules",),
)
"""Replaces ``var``; tested by mocha."""

CAST = Project(
    language="go",
    name="github.com/spf13/cast",
    repo="spf13/cast",
    base="1.4.1",
    golden="1.5.0",
    scripts=GO,
    base_counts=Counts(145),
    golden_counts=Counts(146),
    breakage=Breakage(
        "caste.go",
        "func ToBoolE(i interface{}) (bool, error) {\n",
        "func ToBoolE(i interface{}) (bool, error) {\n\ti = nil\n",
    ),
    patterns=(r"strconv\.ParseInt\(s, 0, 0\)", r"func trimZeroDecimal\("),
)
"""Moves repeated code into functions, and to another test library; tested by go test."""

HECK = Project(
    language="rust",
    name="heck",
    repo="withoutboats/heck",
    base="0.3.3",
    golden="0.4.0",
    scripts=RUST,
    base_counts=Counts(85),
    golden_counts=Counts(85),
    breakage=Breakage("src/lib.rs", "in s.unicode_words() {", "in s.unicode_words().skip(1) {"),
    patterns=(r"trait CamelCase\b", r"trait ToUpperCamelCase\b"),
    ignored=("/target", "/Cargo.lock"),
)
"""Renames traits and files, and adds types that format without an allocation; tested by cargo test."""

COMMONS_CLI = Project(
    language="java",
    name="commons-cli:commons-cli",
    repo="apache/commons-cli",
    base="1.5.0",
    golden="1.6.0",
    scripts=JAVA,
    base_counts=Counts(382, skipped=56),
    golden_counts=Counts(389, skipped=59),
    breakage=Breakage(
        "src/main/java/org/apache/commons/cli/Util.java", 'startsWith("--")', 'startsWith("---")'
    ),
    patterns=(r"Collection<Option> processed", r"static final Option\[\] EMPTY_ARRAY"),
    ignored=("target/",),
)
"""Uses constants for empty arrays, and renames parameters; tested by Maven with surefire."""

PROJECTS = {project.language: project for project in (H11, FLAT, CAST, HECK, COMMONS_CLI)}
"""The projects by language."""
