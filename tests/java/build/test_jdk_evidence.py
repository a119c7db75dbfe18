"""JDKs are tried in the order of what the files of a project say."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.java.build.build_system import Build, BuildTool, build_files_digest, find_build
from codetaste.java.build.ci_files import find_ci_versions
from codetaste.java.build.jdk_evidence import (
    EvidenceKind,
    JdkEvidence,
    able_jdks,
    compiles,
    find_jdk_evidence,
    order_jdks,
    parse_versions,
)

ALL = (8, 11, 17, 21, 25)


def write(tree: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tree


def evidence(tree: Path) -> list[tuple[str, int]]:
    return [(each.kind.value, each.version) for each in find_jdk_evidence(tree, find_build(tree))]


def pom(properties: str = "", plugin: str = "maven-compiler-plugin", elements: str = "") -> dict[str, str]:
    inside = f"<artifactId>{plugin}</artifactId><configuration>{elements}</configuration>"
    build = f"<build><plugins><plugin>{inside}</plugin></plugins></build>"
    return {"pom.xml": f"<project><properties>{properties}</properties>{build}</project>"}


RELEASE = "<maven.compiler.release>17</maven.compiler.release>"
SOURCE = "<source>${level}</source><target>${level}</target>"
TOOLCHAIN = "<toolchains><jdk><version>[1.8,)</version></jdk></toolchains>"
WORKFLOW = """
jobs:
  a:
    strategy:
      matrix:
        java: [ 8, '11', 17-ea ]
    steps:
      - with:
          java-version: ${{ matrix.java }}
"""
TRAVIS = "language: java\njdk:\n  - openjdk8\n  - oraclejdk11\nscript: x\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (pom(RELEASE), [("level", 17)]),
        (pom("<level>1.8</level>", elements=SOURCE), [("level", 8)]),
        (pom(elements="<release>${unknown}</release>"), []),
        ({"pom.xml": "<project/>", "core/pom.xml": pom(RELEASE)["pom.xml"]}, [("level", 17)]),
        (pom(plugin="maven-toolchains-plugin", elements=TOOLCHAIN), [("pinned", 8)]),
        ({"pom.xml": "<project/>", ".java-version": "temurin-21.0.2\n"}, [("pinned", 21)]),
        ({"pom.xml": "<project/>", ".java-version": "1.8\n"}, [("pinned", 8)]),
        ({"pom.xml": "<project/>", ".sdkmanrc": "# env\njava=17.0.9-tem\n"}, [("pinned", 17)]),
        ({"pom.xml": "<project/>", ".tool-versions": "java temurin-11.0.1+13\n"}, [("pinned", 11)]),
        ({"build.gradle": "sourceCompatibility = JavaVersion.VERSION_1_8\n"}, [("level", 8)]),
        ({"build.gradle": "targetCompatibility = '1.8'\n"}, [("level", 8)]),
        ({"build.gradle.kts": "languageVersion.set(JavaLanguageVersion.of(21))"}, [("pinned", 21)]),
        ({"build.gradle": "", "app/build.gradle": "compileJava.options.release = 11"}, [("level", 11)]),
        (
            {"pom.xml": "<project/>", ".github/workflows/ci.yml": WORKFLOW},
            [("tested", 8), ("tested", 11), ("tested", 17)],
        ),
        ({"pom.xml": "<project/>", ".travis.yml": TRAVIS}, [("tested", 8), ("tested", 11)]),
        ({"pom.xml": "not <xml"}, []),
        ({"pom.xml": '<!DOCTYPE a [<!ENTITY b "c">]><project/>'}, []),
    ],
)
def test_evidence_of_one_project(
    tmp_path: Path, files: dict[str, str], expected: list[tuple[str, int]]
) -> None:
    assert evidence(write(tmp_path, files)) == expected


def test_pinned_jdks_come_first_then_those_of_ci_then_the_oldest_that_compiles() -> None:
    level, ci, pin = (
        JdkEvidence(kind, version, "a file")
        for kind, version in ((EvidenceKind.LEVEL, 8), (EvidenceKind.TESTED, 17), (EvidenceKind.PINNED, 21))
    )
    assert order_jdks([], ALL) == ALL
    assert order_jdks([level], ALL) == ALL
    assert order_jdks([level, ci], ALL) == (17, 8, 11, 21, 25)
    assert order_jdks([level, ci, pin], ALL) == (21, 17, 8, 11, 25)


def test_jdk_between_two_of_ours_is_the_next_newer_one_and_an_unable_one_comes_last() -> None:
    pin = JdkEvidence(EvidenceKind.PINNED, 16, ".java-version")
    assert order_jdks([pin], ALL)[0] == 17
    old = JdkEvidence(EvidenceKind.LEVEL, 5, "pom.xml")
    assert order_jdks([old], ALL) == (8, 11, 17, 21, 25)
    assert able_jdks([old], ALL) == (8,)
    assert able_jdks([JdkEvidence(EvidenceKind.LEVEL, 26, "pom.xml")], ALL) == ()
    assert order_jdks([pin, old], ALL)[0] == 8


@given(st.lists(st.tuples(st.sampled_from(EvidenceKind), st.integers(1, 40))), st.sets(st.sampled_from(ALL)))
def test_order_has_each_available_jdk_once(
    found: list[tuple[EvidenceKind, int]], available: set[int]
) -> None:
    given_evidence = [JdkEvidence(kind, version, "") for kind, version in found]
    order = order_jdks(given_evidence, sorted(available))
    assert sorted(order) == sorted(available)
    able = able_jdks(given_evidence, sorted(available))
    assert set(order[: len(able)]) == set(able)


@pytest.mark.parametrize(
    ("jdk", "levels"), [(8, range(1, 9)), (11, range(6, 12)), (17, range(7, 18)), (21, range(8, 22))]
)
def test_compilers_know_a_range_of_levels(jdk: int, levels: range) -> None:
    assert [level for level in range(1, 40) if compiles(jdk, level)] == list(levels)


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("1.8.0_202", 8),
        ("17.0.1-tem", 17),
        ("[1.8,)", 8),
        ("21", 21),
        ("VERSION_17", None),
        ("1_8", 8),
        ("", None),
    ],
)
def test_feature_release_of_a_version(text: str, release: int | None) -> None:
    assert parse_versions(text) == (() if release is None else (release,))


def test_build_is_maven_before_gradle_and_another_tool_is_named(tmp_path: Path) -> None:
    assert find_build(tmp_path) == Build(None, "no pom.xml or build.gradle at the top")
    write(tmp_path, {"build.xml": ""})
    assert "Ant" in find_build(tmp_path).problem
    url = "distributionUrl=https\\://services.example.org/distributions/gradle-7.4.2-bin.zip"
    write(tmp_path, {"build.gradle.kts": "", "gradle/wrapper/gradle-wrapper.properties": url})
    found = find_build(tmp_path)
    assert (found.tool, found.wrapper, found.needs_wrapper) == (BuildTool.GRADLE, "7.4.2", True)
    assert found.wrapper_url == "https://services.example.org/distributions/gradle-7.4.2-bin.zip"
    write(tmp_path, {"pom.xml": ""})
    assert find_build(tmp_path).tool is BuildTool.MAVEN


def test_digest_is_that_of_build_files_alone(tmp_path: Path) -> None:
    digests = [
        build_files_digest(write(tmp_path, files))
        for files in (
            {"pom.xml": "<project/>", "src/A.java": "class A {}"},
            {"src/A.java": "class A { }"},
            {"core/pom.xml": "<project/>"},
            {".mvn/extensions.xml": "<extensions/>"},
        )
    ]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


@given(st.text())
def test_any_ci_file_is_read(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        tree = write(Path(folder), {".travis.yml": ""})
        (tree / ".travis.yml").write_text(text, encoding="utf-8", errors="replace")
        assert all(
            5 <= int(version.removeprefix("1.").split(".")[0]) <= 40 for version, _ in find_ci_versions(tree)
        )


ODD_LINES = {
    ".sdkmanrc": "\n" * 200_000,
    ".tool-versions": "\n" * 200_000,
    ".travis.yml": "java: " + "-" * 200_000 + "\njdk: 11",
    "build.gradle": "sourceCompatibility" + " " * 200_000,
}


@pytest.mark.parametrize("name", ODD_LINES)
def test_no_line_of_a_project_keeps_it_busy(tmp_path: Path, name: str) -> None:
    """Patterns that go back over a line again and again would take minutes for each of these files."""
    write(tmp_path, {"build.gradle": "", name: ODD_LINES[name]})
    assert evidence(tmp_path) == ([("tested", 11)] if name == ".travis.yml" else [])


def test_properties_that_grow_without_a_bound_say_nothing(tmp_path: Path) -> None:
    grow = "".join(f"<a{n}>{f'${{a{n + 1}}}' * 1000}</a{n}>" for n in range(9))
    level = "<maven.compiler.source>${a0}</maven.compiler.source><java.version>11</java.version>"
    assert evidence(write(tmp_path, pom(f"{grow}<a9>x</a9>{level}"))) == [("level", 11)]


def test_a_build_file_can_have_any_size_and_any_name(tmp_path: Path) -> None:
    write(tmp_path, {"build.gradle": "x" * 2_000_000})
    before = build_files_digest(tmp_path)
    write(tmp_path, {"build.gradle": "x" * 2_000_000 + "y"})
    assert build_files_digest(tmp_path) != before
    write(tmp_path, {"a\n\udcff.gradle": "sourceCompatibility = 8"})
    lines = [str(each) for each in find_jdk_evidence(tmp_path, find_build(tmp_path))]
    assert lines == ["level 8 (a \\udcff.gradle)"]
    wrapper = f"distributionUrl=gradle-{'9' * 5000}.zip"
    write(tmp_path, {"gradle/wrapper/gradle-wrapper.properties": wrapper})
    assert find_build(tmp_path).needs_wrapper
