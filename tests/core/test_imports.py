"""Import paths of a config: each fault names what is wrong with the path."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.core.imports import load_object
from codetaste.errors import ConfigError


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("plain", "'plain' is not an import path: write package.module:name or file.py:name"),
        ("file.py", "'file.py' is not an import path"),
        (":name", "':name' is not an import path"),
        ("..above:name", "'..above:name' is not an import path"),
        ("a/b:name", "'a/b:name' is not an import path"),
        (
            "no_such_module:name",
            "no module named 'no_such_module'; a file is written as",
        ),
        ("json.tools:name", "no module named 'json.tools'"),
        ("json.tool:mian", "json.tool has no 'mian' (did you mean 'main'?)"),
        ("own.py:replyy", "own.py has no 'replyy' (did you mean 'reply'?)"),
        ("missing.py:reply", "no file "),
        ("needs.py:reply", "needs.py failed: ModuleNotFoundError: No module named 'no_such_module'"),
        ("nul.py:reply", "nul.py failed: "),
        ("large.py:reply", "large.py: larger than 16,777,216 bytes"),
    ],
)
def test_wrong_import_path_is_explained(path: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def reply(): ...")
    (tmp_path / "needs.py").write_text("import no_such_module")
    (tmp_path / "nul.py").write_bytes(b"a = 1\0")
    with (tmp_path / "large.py").open("wb") as file:
        file.truncate(3 * 1024**3)
    with pytest.raises(ConfigError) as raised:
        load_object(path, base_dir=tmp_path)
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


def test_file_is_compiled_as_if_python_had_imported_it(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def reply(text: 1 + 1): ...\nplace = __file__\n")
    assert load_object("own.py:reply", base_dir=tmp_path).__annotations__ == {"text": 2}
    assert load_object("own.py:place", base_dir=tmp_path) == str(tmp_path / "own.py")
