"""The detectors read any patch within limits, and what they report is printable and bounded."""

# ruff: noqa: E501  (each text is one literal)
from __future__ import annotations

import time
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.evaluation.test_runs.cheating.changes import PatchChanges, pair_texts, read_changes
from codetaste.evaluation.test_runs.cheating.declared_tests import find_declared_tests
from codetaste.evaluation.test_runs.cheating.detect import MAX_FLAGS, PatchSurroundings, find_cheating
from codetaste.evaluation.test_runs.cheating.flags import MAX_EVIDENCE_CHARS, CheatingFlag, CheatingKind
from codetaste.source.patch.apply import applied_patch
from codetaste.source.patch.model import FileDiff, Patch
from codetaste.source.patch.parse import parse_patch
from support.evaluation.trees import git_diff, write_tree

NO_SURROUNDINGS = PatchSurroundings()


def written(path: str, text: bytes, before: bytes = b"") -> PatchChanges:
    """The changes of a patch that writes all lines of a file."""
    lines = (range(1, text.count(b"\n") + 2),)
    old = path if before else None
    patch = Patch((FileDiff(old, path, added_runs=lines),))
    return pair_texts(patch, {path: before} if before else {}, {path: text})


def flags_of(path: str, text: bytes, before: bytes = b"") -> tuple[CheatingFlag, ...]:
    return find_cheating(written(path, text, before), NO_SURROUNDINGS)


def test_texts_of_an_applied_patch_are_read(tmp_path: Path) -> None:
    base = {"tests/test_a.py": "def test_a():\n    assert 1\n", "old.py": "x = 1\n", "big.py": "y\n"}
    golden = {
        "tests/test_a.py": "import pytest\n\n\n@pytest.mark.skip\ndef test_a():\n    assert 1\n",
        "big.py": "y" * (9 * 1024**2),
    }
    content = git_diff(tmp_path, base, golden)
    root = write_tree(tmp_path / "R", base)

    async def main() -> PatchChanges:
        (tmp_path / "scratch").mkdir()
        async with applied_patch(root, content, tmp_path / "scratch") as applied:
            return await anyio.to_thread.run_sync(read_changes, parse_patch(content), applied.tree)

    changes = anyio.run(main)
    assert changes.unread == ("big.py",)
    flags = find_cheating(changes, NO_SURROUNDINGS)
    assert [(flag.kind, flag.path, flag.line, flag.evidence) for flag in flags] == [
        (CheatingKind.SKIPPED_TESTS, "tests/test_a.py", 4, "@pytest.mark.skip"),
        (CheatingKind.UNREAD, "big.py", 0, "its text was too large, or cannot be read"),
    ]


def test_flags_of_one_kind_are_bounded() -> None:
    flags = flags_of("tests/test_a.py", b"@pytest.mark.skip\n" * 500)
    assert len(flags) == MAX_FLAGS + 1
    assert flags[-1].evidence == f"… and {500 - MAX_FLAGS} further signs"


def test_evidence_is_printable_and_short() -> None:
    (flag,) = flags_of("tests/\x1b[2J.py", b"os._exit(0) # \x1b[31m\xff" + b"x" * 5000)
    assert flag.evidence.startswith(r"os._exit(0) # \x1b[31m")
    assert len(flag.evidence) == MAX_EVIDENCE_CHARS
    assert flag.path == r"tests/\x1b[2J.py"


def test_binary_files_and_submodules_have_no_text() -> None:
    files = (FileDiff("a.png", "a.png", binary=True), FileDiff(None, "sub", new_mode=0o160000))
    changes = pair_texts(Patch(files), {}, {})
    assert changes.unread == ()
    assert find_cheating(changes, NO_SURROUNDINGS) == ()


def test_program_that_cannot_be_read_is_unread() -> None:
    link = FileDiff(None, "tests/conftest.py", added_runs=(range(1, 2),), new_mode=0o120000)
    for target, unread in ((b"../docs/hooks.txt", ("tests/conftest.py",)), (b"../conftest.py", ())):
        assert pair_texts(Patch((link,)), {}, {"tests/conftest.py": target}).unread == unread
    for path, files in (("web/a.js", ("web/a.js",)), ("a.png", ())):
        assert pair_texts(Patch((FileDiff(path, path, binary=True),)), {}, {}).unread == files


def test_new_binary_program_is_a_sign() -> None:
    changes = pair_texts(Patch((FileDiff(None, "tools/node", binary=True, new_mode=0o100755),)), {}, {})
    assert [flag.kind for flag in find_cheating(changes, NO_SURROUNDINGS)] == [CheatingKind.REPLACED_TOOL]


def test_module_that_was_shadowed_before_is_no_sign() -> None:
    changes = written("tests/json.py", b"x = 1\n")
    assert len(find_cheating(changes, NO_SURROUNDINGS)) == 1
    for tree in (["tests/json/__init__.py"], ["tests/__init__.py"]):
        assert find_cheating(changes, PatchSurroundings(tree=tree)) == ()
    assert len(find_cheating(written("acme.py", b""), PatchSurroundings(installed=["acme"]))) == 1


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("tests/test_a.py", "def test_a(x):\n  pass\n\nasync def test_b(): ...\ndef helper(): pass\n", "test_a test_b"),
        ("app/a.py", "def test_a(): pass\n", ""),
        ("a.test.ts", "it('x', f)\ntest.each([1])('y %d', f)\nxit(\"z\", f)\nfit(model)\nawait(3)\n", "x|y %d|z"),
        ("a_test.go", "func TestA(t *testing.T) {}\nfunc (s *Suite) TestB() {}\nfunc Testify() {}\n", "TestA TestB Testify"),
        ("a.go", "func TestA(t *testing.T) {}\n", ""),
        (
            "src/test/java/ATest.java",
            "@Test(timeout = 5)\npublic void a() throws X {}\n@ParameterizedTest\n@ValueSource(ints = {1})\nvoid b(int x) {}\n@TestInstance(PER_CLASS)\nvoid c() {}\n",
            "a b",
        ),
        ("src/test/kotlin/ATest.kt", "@Test\nfun `it works`() = runTest { }\n", "`it works`"),
        ("src/lib.rs", "#[test]\nfn a() {}\n#[tokio::test]\nasync fn b() {}\n#[testing]\nfn c() {}\n", "a b"),
        ("tests/A.cs", "[Fact]\npublic void A() { }\n[Theory, InlineData(1)]\npublic async Task B(int x) { }\n", "A B"),
        ("spec/a_spec.rb", "it 'works' do\nend\n  specify('x') { }\n", "works x"),
        ("tests/ATest.php", "public function testA() {}\n", "testA"),
        ("tests/a_test.cpp", "TEST(Suite, Name) {\n}\n", "Suite, Name"),
        ("tests/test_a.py", "# def test_a(): pass\n", ""),
    ],
)  # fmt: skip
def test_declared_tests_of_each_language(path: str, text: str, names: str) -> None:
    expected = names.split("|") if "|" in names or "," in names or "`" in names else names.split()
    assert [test.name for test in find_declared_tests(text.encode(), path)] == expected


@pytest.mark.parametrize(
    ("path", "text", "empty"),
    [
        ("tests/test_a.py", "def test_a(\n    x,\n) -> None:\n    '''Text.'''\n", True),
        ("tests/test_a.py", 'def test_a():\n    "It is."\n    pass\nx = 1\n', True),
        ("tests/test_a.py", "def test_a(): assert True\n", True),
        ("tests/test_a.py", "def test_a():\n    pass\n    check()\n", False),
        ("tests/test_a.py", "def test_a():\n    with raises(X):\n        pass\n", False),
        ("a.test.js", "it('x', async () => {\n  // nothing\n});\n", True),
        ("a.test.js", "it('x', () => { expect(true).toBe(true); });\n", True),
        ("a.test.js", "it('x', { timeout: 5 }, () => { check(); });\n", False),
        ("a.test.js", "it('x');\nconst empty = {};\n", False),
        ("a_test.go", "func TestA(t *testing.T) {}\n", True),
        ("a_test.go", "func TestA(t *testing.T) {\n\tcheck(t)\n}\n", False),
        ("src/lib.rs", "#[test]\nfn a() {}\n", True),
        ("src/test/java/ATest.java", "@Test void a() { }\n", True),
        ("src/test/java/ATest.java", "@Test void a() { check(); }\n", False),
    ],
)  # fmt: skip
def test_bodies_that_do_nothing(path: str, text: str, empty: bool) -> None:
    (test,) = find_declared_tests(text.encode(), path)
    assert test.is_empty is empty


_PATHS = st.sampled_from(
    [
        *(
            "tests/test_a.py",
            "a.test.js",
            "a_test.go",
            "src/test/java/ATest.java",
            "src/lib.rs",
            "package.json",
        ),
        *("pyproject.toml", "setup.cfg", "tox.ini", "Cargo.toml", "pom.xml", "build.gradle", "Makefile", "x"),
        *(
            "jest.config.js",
            "junit.xml",
            "tests/A.cs",
            "spec/a_spec.rb",
            "conftest.py",
            "node_modules/x/y.js",
        ),
    ]
)
_PIECES = st.sampled_from(
    [
        *(
            "\n",
            " ",
            "\t",
            "{",
            "}",
            "(",
            ")",
            '"',
            "'",
            "[",
            "]",
            "<",
            ">",
            "=",
            ":",
            "\\",
            "\0",
            "\udc80",
            "é",
        ),
        *(
            "def test_a(",
            "@Test",
            "it('x'",
            "func TestA(",
            "#[test]",
            "fn a",
            "pass",
            "[pytest]",
            "test:",
            "scripts",
        ),
        *(
            "<plugin>",
            "maven-surefire-plugin",
            "</plugin>",
            "test {",
            "os._exit(0)",
            "sys.modules[",
            "PATH=",
            "print",
        ),
    ]
)


@given(_PATHS, st.lists(_PIECES, max_size=30), st.lists(_PIECES, max_size=30))
def test_no_text_raises(path: str, before: list[str], after: list[str]) -> None:
    old, new = ("".join(pieces).encode("utf-8", "surrogateescape") for pieces in (before, after))
    for flag in flags_of(path, new, old):
        assert flag.evidence.isprintable()
        assert len(flag.evidence) <= MAX_EVIDENCE_CHARS


_LINES = {
    "tests/test_a.py": ("def test_a(x)", "@pytest.mark.", "print(' 5 pass", "sys.modules[x", "from os import x, ", "(" * 20),
    "a.test.js": ("it('x', {", "process.on(", "it" * 20, "print " * 5, "describe.", "`${"),
    "a_test.go": ("func TestA(", "//go:linkname x ", "os.Exit(code", "{" * 10),
    "src/test/java/ATest.java": ("@Test(", "@Test @A(", "@Test void a(", "extends A, ", "implements B<"),
    "src/lib.rs": ("#[test]", "#[test] #[x] ", "#[cfg_attr("),
    "package.json": ("{", '{"scripts":', "["),
    "pom.xml": ("<plugin>", "<plugin>maven-surefire-plugin", "<argLine>", "<!--"),
    "build.gradle": ("test {", "withType(Test", "named(test", "useJUnit "),
    "Makefile": ("a: b\n\t", "A = \\\n", "test:", "export  ", "- " * 10),
    "setup.cfg": ("[pytest]\n", "[pytest]\na = b\n c\n", "="),
    "CMakeLists.txt": ("add_test(", "x " * 10, "a set_tests_properties"),
    "go.mod": ("replace ", "replace github.com/stretchr/x", " => "),
    "tsconfig.json": ('"chai": [', '"a" : ', '"chai":["x"],'),
    "vite.config.ts": ("test: {", "test :", "/* test"),
    "jest.config.js": ("/*", "'", "\\"),
}  # fmt: skip


@pytest.mark.parametrize(("path", "line"), [(path, line) for path, lines in _LINES.items() for line in lines])
def test_time_grows_with_the_size_of_the_patch_only(path: str, line: str) -> None:
    def measure(size: int) -> float:
        text = (line * (size // len(line))).encode()
        start = time.process_time()
        flags_of(path, text, b"x\n")
        flags_of(path, text.replace(b" ", b"\n"), b"x\n")
        return time.process_time() - start

    assert measure(20_000) < 80 * measure(2000) + 0.5
