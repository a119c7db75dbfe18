"""The coding agent's tools in a real box: what they do to files, what they say, and what they never touch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from codetaste.agent.code_tools import CODE_TOOLS, replace_text
from codetaste.agent.sandbox_files import FILE_BYTES, sandbox_path
from codetaste.errors import CodetasteError, ToolError
from codetaste.sandbox.containment.engine import choose_engine
from support.harness.tool_session import Coder, coder_in

NAMES = [
    "plain.txt",
    "with space.txt",
    " leading and trailing ",
    "-rf",
    "--help",
    "$(touch pwned)",
    "`touch pwned`",
    "a;touch pwned",
    "quo'te\"s",
    "back\\slash",
    "*?[glob]",
    "new\nline",
    "ends in newline\n",
    "tab\there",
    "ünï→中🎈",
    "%s%n",
    "a" * 200,
    "~root",
    "=x",
    "#comment",
    "...",
    ".hidden",
    "deep/er/and/deeper/file",
]


@pytest.fixture(scope="module")
def coder(tmp_path_factory: pytest.TempPathFactory, require: Callable[..., None]) -> Iterator[Coder]:
    try:
        choose_engine("bubblewrap")
    except CodetasteError as error:
        require("bwrap", ok=False, reason=str(error))
    with coder_in(tmp_path_factory.mktemp("boxes")) as made:
        yield made


def refusal(coder: Coder, path: str, old: str, new: str, **more: object) -> str:
    with pytest.raises(ToolError) as caught:
        coder.edit(path, old, new, **more)
    assert "\n" not in str(caught.value).replace(path, "")
    return str(caught.value)


def test_a_command_says_what_it_printed_in_order_and_how_it_ended(coder: Coder) -> None:
    assert coder.bash("echo a; echo b >&2; echo c") == "a\nb\nc\n"
    assert coder.bash("true") == "[no output, exit code 0]"
    assert coder.bash("printf x; exit 3") == "x\n[exit code 3]"
    assert coder.bash("exit 7") == "[exit code 7]"
    assert coder.bash("pwd; [[ x == x ]] && echo bash; tty") == "/testbed\nbash\nnot a tty\n[exit code 1]"
    assert "syntax error" in coder.bash("if then")
    assert coder.bash("kill -SEGV $$") == "[exit code 139]"


def test_long_output_is_truncated_in_the_middle(coder: Coder) -> None:
    said = coder.bash("echo first; yes | head -c 3000000; echo last")
    assert len(said) < 5000
    assert said.startswith("first\n")
    assert said.endswith("last\n")
    assert "left out" in said
    assert coder.bash("printf '\\377\\376'") == "\N{REPLACEMENT CHARACTER}" * 2


def test_command_past_time_limit_is_killed_with_its_children(coder: Coder) -> None:
    assert coder.bash("echo begun; sleep 987", timeout_s=1) == "begun\n[ended after 1 s]"
    assert coder.bash("(setsid nohup sleep 988 >/dev/null 2>&1 &) ; echo started") == "started\n"
    assert "sleep" not in coder.bash("cat /proc/[0-9]*/comm")


@pytest.mark.parametrize("command", ["\0", "a" * 100_001, "\ud800"])
def test_what_no_program_can_be_given_is_the_model_s_mistake(coder: Coder, command: str) -> None:
    with pytest.raises(ToolError):
        coder.bash(command)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_any_name_is_made_and_edited(coder: Coder, name: str) -> None:
    folder = f"names/{NAMES.index(name)}"
    coder.edit(f"{folder}/{name}", "", "one\ntwo\n", create=True)
    said = coder.edit(f"/testbed/{folder}/{name}", "two", "2")
    assert said.endswith("at line 2.")
    listed = coder.raw(f"cd /testbed/{folder} && find . -type f -print0").stdout
    assert listed == f"./{name}".encode() + b"\0"
    assert coder.raw(f'cd /testbed/{folder} && cat -- "$0"', f"./{name}").stdout == b"one\n2\n"
    assert "pwned" not in coder.bash("ls /testbed")


def test_edit_outside_allowed_folders_is_refused(coder: Coder) -> None:
    coder.raw(
        "mkdir -p /testbed/out /tmp/elsewhere && cd /testbed/out && echo secret >/tmp/elsewhere/file && "
        "ln -s /tmp/elsewhere away && ln -s /tmp/elsewhere/file link && ln -s /tmp/elsewhere/new dangling && "
        "ln -s loop loop && ln -s ../../../tmp/elsewhere up && ln -s / root && mkdir dir && mkfifo pipe && "
        "ln -s /testbed all && ln -s /dev/zero zero"
    )
    for path in ("away/file", "link", "up/file", "root/tmp/elsewhere/file", "loop", "zero"):
        assert "leads out of" in refusal(coder, f"out/{path}", "secret", "changed")
    for path in ("away/new", "dangling", "up/a/b", "root/home/agent/new", "root/tmp/new"):
        assert "leads out of" in refusal(coder, f"out/{path}", "", "made", create=True)
    for path in (
        "/tmp/elsewhere/file",
        "../tmp/elsewhere/file",
        "/testbed/../etc/passwd",
        "/testbedx",
        "/",
        ".",
    ):
        assert "only files below" in refusal(coder, path, "a", "b")
    assert "directory" in refusal(coder, "out/dir", "a", "b")
    assert "not a regular file" in refusal(coder, "out/pipe", "a", "b")
    for path in ("", "a\0b", "a" * 5000, "\udcff"):
        with pytest.raises(ToolError):
            coder.edit(path, "a", "b")
    assert coder.raw("ls /tmp/elsewhere; cat /tmp/elsewhere/file").stdout == b"file\nsecret\n"
    coder.edit("/output/plans/one.md", "", "a plan", create=True)
    assert coder.get("/output/plans/one.md") == b"a plan"


def test_link_inside_the_folder_is_followed_and_preserved(coder: Coder) -> None:
    coder.put("/testbed/in/target", b"one")
    coder.raw("cd /testbed/in && ln -s target link && ln -s . self && ln -s nowhere yet")
    coder.edit("in/self/link", "one", "two")
    assert coder.get("/testbed/in/target") == b"two"
    coder.edit("in/yet", "", "made", create=True)
    assert coder.raw("cd /testbed/in && readlink link yet && cat nowhere").stdout == b"target\nnowhere\nmade"


def test_bytes_endings_modes_and_all_else_of_a_file_stay(coder: Coder) -> None:
    for path, content in (
        ("/testbed/keep/binary", bytes(range(256)) * 3 + b"mark\0"),
        ("/testbed/keep/latin1", "caf\xe9 mark\r\n".encode("latin-1")),
        ("/testbed/keep/open-end", b"no newline at the end: mark"),
        ("/testbed/keep/bom", b"\xef\xbb\xbfmark\n"),
        ("/testbed/keep/mixed", b"a\r\nmark\nc\r\n"),
    ):
        coder.put(path, content)
        coder.edit(path, "mark", "mark \N{BALLOON}")
        assert coder.get(path) == content.replace(b"mark", "mark \N{BALLOON}".encode())
    coder.put("/testbed/keep/run.sh", b"#!/bin/sh\necho mark\n")
    coder.raw("chmod 751 /testbed/keep/run.sh")
    coder.edit("keep/run.sh", "mark", "done")
    assert coder.raw("stat -c %a /testbed/keep/run.sh; /testbed/keep/run.sh").stdout == b"751\ndone\n"
    assert coder.raw("ls -A /testbed/keep").stdout.count(b"codetaste") == 0


def test_a_file_of_windows_keeps_its_line_endings(coder: Coder) -> None:
    coder.put("/testbed/dos.txt", b"one\r\ntwo\r\nthree\r\n")
    coder.edit("dos.txt", "one\ntwo\n", "1\n2\n2b\n")
    assert coder.get("/testbed/dos.txt") == b"1\r\n2\r\n2b\r\nthree\r\n"
    coder.edit("dos.txt", "2\r\n2b", "2")
    assert coder.get("/testbed/dos.txt") == b"1\r\n2\r\nthree\r\n"


def test_invalid_edit_reports_fault_and_leaves_file(coder: Coder) -> None:
    coder.put("/testbed/wrong", b"a b\nx\na b\n")
    assert "no such file" in refusal(coder, "missing", "a", "b")
    assert "set create" in refusal(coder, "missing", "", "b")
    assert "exists already" in refusal(coder, "wrong", "", "b", create=True)
    assert "exists already" in refusal(coder, "wrong", "", "b")
    assert "no old text" in refusal(coder, "missing", "a", "b", create=True)
    assert "not in the file:" in refusal(coder, "wrong", "y", "b")
    assert "different white space" in refusal(coder, "wrong", "a  b\n  x", "b")
    assert "2 times (lines 1, 3)" in refusal(coder, "wrong", "a b", "c")
    assert "the same" in refusal(coder, "wrong", "x", "x")
    assert "surrogate" in refusal(coder, "wrong", "x", "\ud800")
    assert coder.get("/testbed/wrong") == b"a b\nx\na b\n"
    assert coder.edit("wrong", "a b", "c", replace_all=True).endswith("at lines 1, 3.")
    assert coder.get("/testbed/wrong") == b"c\nx\nc\n"
    assert coder.edit("wrong", "c\nx\nc\n", "").endswith("at line 1.")
    assert coder.get("/testbed/wrong") == b""


def test_edit_file_over_size_limit_is_refused(coder: Coder) -> None:
    coder.raw(
        f"cd /testbed && head -c {FILE_BYTES} /dev/zero >largest && head -c {FILE_BYTES + 1} /dev/zero >more"
    )
    assert "larger than" in refusal(coder, "more", "a", "b")
    coder.raw("cd /testbed && printf mark | dd of=largest conv=notrunc 2>/dev/null")
    coder.edit("largest", "mark", "MARK")
    assert (
        coder.raw("head -c 5 /testbed/largest; wc -c </testbed/largest").stdout == b"MARK\0%d\n" % FILE_BYTES
    )
    assert "larger than" in refusal(coder, "largest", "MARK", "longer")


def test_edit_unwritable_file_leaves_it_unchanged(coder: Coder) -> None:
    coder.put("/testbed/shut/file", b"mark\n")
    coder.raw("chmod 500 /testbed/shut")
    assert "could not be written" in refusal(coder, "shut/file", "mark", "x")
    assert "could not be written" in refusal(coder, "shut/file/below", "", "x", create=True)
    coder.raw("chmod 700 /testbed/shut")
    assert coder.raw("cd /testbed/shut && ls -A && cat file").stdout == b"file\nmark\n"
    coder.raw("chmod 000 /testbed/shut/file")
    assert "could not be read" in refusal(coder, "shut/file", "mark", "x")


def test_the_tools_say_to_a_model_what_they_want() -> None:
    specs = {tool.spec.name: tool.spec for tool in CODE_TOOLS}
    assert list(specs) == ["bash", "edit", "finish"]
    assert specs["edit"].parameters["required"] == ["path", "old", "new"]
    assert all(
        each.get("description") for spec in specs.values() for each in spec.parameters["properties"].values()
    )
    assert [tool.replay_on_resume for tool in CODE_TOOLS] == [True, True, False]


pieces = some.text(some.sampled_from("ab\n\r é"), max_size=12)


@given(content=pieces, old=pieces.filter(bool), new=pieces)
@example(content="aaa", old="aa", new="b")
@settings(max_examples=500)
def test_replacing_is_what_python_does_with_text(content: str, old: str, new: str) -> None:
    whole_windows = "\r\n" in content and not re.search(r"(?<!\r)\n", content)
    if whole_windows:  # then newlines of old and new are those of the file
        old, new = (re.sub(r"(?<!\r)\n", "\r\n", text) for text in (old, new))
    count = content.count(old)
    for every in (False, True):
        try:
            changed, lines = replace_text(content.encode(), old.encode(), new.encode(), every=every)
        except ToolError:
            assert count == 0 or old == new or (count > 1 and not every)
            continue
        assert changed.decode() == content.replace(old, new)
        assert len(lines) == count
        assert lines[0] == content[: content.index(old)].count("\n") + 1


@given(content=some.text(max_size=200), data=some.data())
@settings(max_examples=25)
def test_edit_in_sandbox_equals_python_text_edit(coder: Coder, content: str, data: some.DataObject) -> None:
    content = content.replace("\r", "")
    start = data.draw(some.integers(0, len(content)))
    old, new = content[start : start + data.draw(some.integers(1, 20))], data.draw(some.text(max_size=50))
    coder.put("/testbed/random", content.encode())
    if not old or old == new:
        return
    coder.edit("random", old, new, replace_all=True)
    assert coder.get("/testbed/random").decode() == content.replace(old, new)


@given(some.text(some.sampled_from("./a~\0é\ud800 "), max_size=12))
def test_sandbox_path_is_always_inside_allowed_folders(path: str) -> None:
    try:
        found = sandbox_path(path)
    except ToolError:
        return
    assert found.startswith(("/testbed/", "/output/"))
    assert not {"..", ".", ""} & set(found.split("/")[1:])
