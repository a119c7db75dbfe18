import pytest

from codetaste.mining.prefilter.code_files import CODE_SUFFIXES, count_code_edits, is_code_file
from codetaste.mining.prefilter.diff import ChangeStatus, FileChange
from codetaste.source.languages import LANGUAGE_OF_SUFFIX


@pytest.mark.parametrize(
    "path",
    [
        "a.py",
        "src/deep/B.CPP",
        "x.test.tsx",
        "lib.rs",
        "Main.java",
        "a b.go",
        "s.zsh",
        "A.vue",
        "k.cu",
        "e.hs",
    ],
)
def test_files_of_programming_languages_are_code(path: str) -> None:
    assert is_code_file(path)


@pytest.mark.parametrize(
    "path",
    [
        *("README.md", "docs/index.rst", "a.txt", "b.adoc", "LICENSE", "Makefile", "Dockerfile", ".py", "py"),
        *("a.json", "a.yaml", "a.yml", "a.toml", "a.xml", "a.ini", "a.csv", "a.sql", "a.ipynb", "a.lock"),
        *("a.html", "a.css", "a.scss", "a.svg", "go.mod", "go.sum", "a.po", "a.proto", "a.py/b", "a.gradle"),
        *("a.pyc", "a.cfg", "a.properties", "a.tf", "CMakeLists.txt", "a.snap", "a.png", "a.jar", ""),
    ],
)
def test_documentation_data_and_configuration_are_not(path: str) -> None:
    assert not is_code_file(path)


def test_languages_of_instances_are_code() -> None:
    assert frozenset(LANGUAGE_OF_SUFFIX) <= CODE_SUFFIXES
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in CODE_SUFFIXES)


def test_a_submodule_with_the_name_of_a_script_has_no_code() -> None:
    link = FileChange("d3.js", None, ChangeStatus.MODIFIED, 1, 1, submodule=True)
    script = FileChange("d3.js", None, ChangeStatus.MODIFIED, 1, 1)
    assert (count_code_edits(link), count_code_edits(script)) == (0, 2)
