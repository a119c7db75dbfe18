"""The coding agent's tools in a real sandbox: what they change, return and refuse."""

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
from support.harness.tool_session import ToolSession, open_tool_session

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
def session(tmp_path_factory: pytest.TempPathFactory, require: Callable[..., None]) -> Iterator[ToolSession]:
    try:
        choose_engine("bubblewrap")
    except CodetasteError as error:
        require("bwrap", ok=False, reason=str(error))
    with open_tool_session(tmp_path_factory.mktemp("sandboxes")) as opened:
        yield opened


def refusal(session: ToolSession, path: str, old: str, new: str, **more: object) -> str:
    with pytest.raises(ToolError) as caught:
        session.edit(path, old, new, **more)
    assert "\n" not in str(caught.value).replace(path, "")
    return str(caught.value)


def test_bash_returns_output_in_order_and_exit_code(session: ToolSession) -> None:
    assert session.bash("echo a; echo b >&2; echo c") == "a\nb\nc\n"
    assert session.bash("true") == "[no output, exit code 0]"
    assert session.bash("printf x; exit 3") == "x\n[exit code 3]"
    assert session.bash("exit 7") == "[exit code 7]"
    assert session.bash("pwd; [[ x == x ]] && echo bash; tty") == "/testbed\nbash\nnot a tty\n[exit code 1]"
    assert "syntax error" in session.bash("if then")
    assert session.bash("kill -SEGV $$") == "[exit code 139]"


def test_long_output_is_truncated_in_the_middle(session: ToolSession) -> None:
    output = session.bash("echo first; yes | head -c 3000000; echo last")
    assert len(output) < 5000
    assert output.startswith("first\n")
    assert output.endswith("last\n")
    assert "left out" in output
    assert session.bash("printf '\\377\\376'") == "\N{REPLACEMENT CHARACTER}" * 2


def test_command_past_time_limit_is_killed_with_its_children(session: ToolSession) -> None:
    assert session.bash("echo begun; sleep 987", timeout_s=3) == "begun\n[ended after 3 s]"
    assert session.bash("(setsid nohup sleep 988 >/dev/null 2>&1 &) ; echo started") == "started\n"
    assert "sleep" not in session.bash("cat /proc/[0-9]*/comm")


@pytest.mark.parametrize("command", ["\0", "a" * 100_001, "\ud800"])
def test_command_that_cannot_be_passed_is_refused(session: ToolSession, command: str) -> None:
    with pytest.raises(ToolError):
        session.bash(command)


@pytest.mark.parametrize("name", NAMES)
def test_file_of_any_name_is_created_and_edited(session: ToolSession, name: str) -> None:
    folder = f"names/{NAMES.index(name)}"
    session.edit(f"{folder}/{name}", "", "one\ntwo\n", create=True)
    message = session.edit(f"/testbed/{folder}/{name}", "two", "2")
    assert message.endswith("at line 2.")
    listed = session.run_shell(f"cd /testbed/{folder} && find . -type f -print0").stdout
    assert listed == f"./{name}".encode() + b"\0"
    assert session.run_shell(f'cd /testbed/{folder} && cat -- "$0"', f"./{name}").stdout == b"one\n2\n"
    assert "pwned" not in session.bash("ls /testbed")


def test_edit_outside_allowed_folders_is_refused(session: ToolSession) -> None:
    session.run_shell(
        "mkdir -p /testbed/out /tmp/elsewhere && cd /testbed/out && echo secret >/tmp/elsewhere/file && "
        "ln -s /tmp/elsewhere away && ln -s /tmp/elsewhere/file link && ln -s /tmp/elsewhere/new dangling && "
        "ln -s loop loop && ln -s ../../../tmp/elsewhere up && ln -s / root && mkdir dir && mkfifo pipe && "
        "ln -s /testbed all && ln -s /dev/zero zero"
    )
    for path in ("away/file", "link", "up/file", "root/tmp/elsewhere/file", "loop", "zero"):
        assert "leads out of" in refusal(session, f"out/{path}", "secret", "changed")
    for path in ("away/new", "dangling", "up/a/b", "root/home/agent/new", "root/tmp/new"):
        assert "leads out of" in refusal(session, f"out/{path}", "", "made", create=True)
    for path in (
        "/tmp/elsewhere/file",
        "../tmp/elsewhere/file",
        "/testbed/../etc/passwd",
        "/testbedx",
        "/",
        ".",
    ):
        assert "only files below" in refusal(session, path, "a", "b")
    assert "directory" in refusal(session, "out/dir", "a", "b")
    assert "not a regular file" in refusal(session, "out/pipe", "a", "b")
    for path in ("", "a\0b", "a" * 5000, "\udcff"):
        with pytest.raises(ToolError):
            session.edit(path, "a", "b")
    assert session.run_shell("ls /tmp/elsewhere; cat /tmp/elsewhere/file").stdout == b"file\nsecret\n"
    session.edit("/output/plans/one.md", "", "a plan", create=True)
    assert session.read_file("/output/plans/one.md") == b"a plan"


def test_link_inside_folder_is_followed_and_preserved(session: ToolSession) -> None:
    session.write_file("/testbed/in/target", b"one")
    session.run_shell("cd /testbed/in && ln -s target link && ln -s . self && ln -s nowhere yet")
    session.edit("in/self/link", "one", "two")
    assert session.read_file("/testbed/in/target") == b"two"
    session.edit("in/yet", "", "made", create=True)
    assert (
        session.run_shell("cd /testbed/in && readlink link yet && cat nowhere").stdout
        == b"target\nnowhere\nmade"
    )


def test_edit_preserves_other_bytes_line_endings_and_mode(session: ToolSession) -> None:
    for path, content in (
        ("/testbed/same/binary", bytes(range(256)) * 3 + b"mark\0"),
        ("/testbed/same/latin1", "caf\xe9 mark\r\n".encode("latin-1")),
        ("/testbed/same/open-end", b"no newline at the end: mark"),
        ("/testbed/same/bom", b"\xef\xbb\xbfmark\n"),
        ("/testbed/same/mixed", b"a\r\nmark\nc\r\n"),
    ):
        session.write_file(path, content)
        session.edit(path, "mark", "mark \N{BALLOON}")
        assert session.read_file(path) == content.replace(b"mark", "mark \N{BALLOON}".encode())
    session.write_file("/testbed/same/run.sh", b"#!/bin/sh\necho mark\n")
    session.run_shell("chmod 751 /testbed/same/run.sh")
    session.edit("same/run.sh", "mark", "done")
    assert session.run_shell("stat -c %a /testbed/same/run.sh; /testbed/same/run.sh").stdout == b"751\ndone\n"
    assert session.run_shell("ls -A /testbed/same").stdout.count(b"codetaste") == 0


def test_edit_preserves_windows_line_endings(session: ToolSession) -> None:
    session.write_file("/testbed/dos.txt", b"one\r\ntwo\r\nthree\r\n")
    session.edit("dos.txt", "one\ntwo\n", "1\n2\n2b\n")
    assert session.read_file("/testbed/dos.txt") == b"1\r\n2\r\n2b\r\nthree\r\n"
    session.edit("dos.txt", "2\r\n2b", "2")
    assert session.read_file("/testbed/dos.txt") == b"1\r\n2\r\nthree\r\n"


def test_invalid_edit_reports_fault_and_leaves_file(session: ToolSession) -> None:
    session.write_file("/testbed/wrong", b"a b\nx\na b\n")
    assert "no such file" in refusal(session, "missing", "a", "b")
    assert "set create" in refusal(session, "missing", "", "b")
    assert "exists already" in refusal(session, "wrong", "", "b", create=True)
    assert "exists already" in refusal(session, "wrong", "", "b")
    assert "no old text" in refusal(session, "missing", "a", "b", create=True)
    assert "not in the file:" in refusal(session, "wrong", "y", "b")
    assert "different white space" in refusal(session, "wrong", "a  b\n  x", "b")
    assert "2 times (lines 1, 3)" in refusal(session, "wrong", "a b", "c")
    assert "the same" in refusal(session, "wrong", "x", "x")
    assert "surrogate" in refusal(session, "wrong", "x", "\ud800")
    assert session.read_file("/testbed/wrong") == b"a b\nx\na b\n"
    assert session.edit("wrong", "a b", "c", replace_all=True).endswith("at lines 1, 3.")
    assert session.read_file("/testbed/wrong") == b"c\nx\nc\n"
    assert session.edit("wrong", "c\nx\nc\n", "").endswith("at line 1.")
    assert session.read_file("/testbed/wrong") == b""


def test_edit_of_file_over_size_limit_is_refused(session: ToolSession) -> None:
    session.run_shell(
        f"cd /testbed && head -c {FILE_BYTES} /dev/zero >largest && head -c {FILE_BYTES + 1} /dev/zero >more"
    )
    assert "larger than" in refusal(session, "more", "a", "b")
    session.run_shell("cd /testbed && printf mark | dd of=largest conv=notrunc 2>/dev/null")
    session.edit("largest", "mark", "MARK")
    assert (
        session.run_shell("head -c 5 /testbed/largest; wc -c </testbed/largest").stdout
        == b"MARK\0%d\n" % FILE_BYTES
    )
    assert "larger than" in refusal(session, "largest", "MARK", "longer")


def test_edit_of_unwritable_file_is_refused(session: ToolSession) -> None:
    session.write_file("/testbed/shut/file", b"mark\n")
    session.run_shell("chmod 500 /testbed/shut")
    assert "could not be written" in refusal(session, "shut/file", "mark", "x")
    assert "could not be written" in refusal(session, "shut/file/below", "", "x", create=True)
    session.run_shell("chmod 700 /testbed/shut")
    assert session.run_shell("cd /testbed/shut && ls -A && cat file").stdout == b"file\nmark\n"
    session.run_shell("chmod 000 /testbed/shut/file")
    assert "could not be read" in refusal(session, "shut/file", "mark", "x")


def test_tool_parameters_have_descriptions() -> None:
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
def test_replace_text_equals_python_replace(content: str, old: str, new: str) -> None:
    windows_only = "\r\n" in content and not re.search(r"(?<!\r)\n", content)
    if windows_only:  # then newlines of old and new become those of the file
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
def test_edit_in_sandbox_equals_python_text_edit(
    session: ToolSession, content: str, data: some.DataObject
) -> None:
    content = content.replace("\r", "")
    start = data.draw(some.integers(0, len(content)))
    old, new = content[start : start + data.draw(some.integers(1, 20))], data.draw(some.text(max_size=50))
    session.write_file("/testbed/random", content.encode())
    if not old or old == new:
        return
    session.edit("random", old, new, replace_all=True)
    assert session.read_file("/testbed/random").decode() == content.replace(old, new)


@given(some.text(some.sampled_from("./a~\0é\ud800 "), max_size=12))
def test_sandbox_path_is_always_inside_allowed_folders(path: str) -> None:
    try:
        found = sandbox_path(path)
    except ToolError:
        return
    assert found.startswith(("/testbed/", "/output/"))
    assert not {"..", ".", ""} & set(found.split("/")[1:])
