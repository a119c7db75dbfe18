"""What all commands share: closed, full and narrow streams, one-line errors, exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


def run_body(
    body: str, *, shell: str = "", env: dict[str, str] | None = None, as_json: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run ``body`` as a command under ``run_command``, with the shell's redirections ``shell``."""
    code = "from codetaste.console.command import run_command\n"
    code += "from codetaste.console.streams import notify, print_result\n" + textwrap.dedent(body)
    code += f"\nraise SystemExit(run_command(command, as_json={as_json}))\n"
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, **(env or {})},
    )


PRINTING = """
    def command():
        print("a user's tool says something")
        print_result('{"result": 1}')
        return 0
"""


def test_foreign_output_is_excluded_from_result() -> None:
    done = run_body(PRINTING)
    assert json.loads(done.stdout) == {"result": 1}
    assert "a user's tool" in done.stderr


def test_a_closed_standard_error_does_not_put_messages_into_the_result() -> None:
    done = run_body(PRINTING, shell="2>&-")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"result": 1})


def test_opened_files_do_not_replace_a_closed_stream() -> None:
    body = """
        import os
        def command():
            print_result(str(os.open("/dev/null", os.O_RDONLY)))
            return 0
    """
    assert int(run_body(body, shell="2>&- <&-").stdout) > 2


def test_full_standard_error_does_not_stop_a_command() -> None:
    body = """
        def command():
            notify("for the person")
            print_result("done")
            return 0
    """
    done = run_body(body, shell="2>/dev/full")
    assert (done.stdout, done.returncode) == ("done\n", 0)


def test_forbidden_path_is_a_one_line_error() -> None:
    body = """
        import errno, os
        def command():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "locked/outputs")
    """
    done = run_body(body, as_json=True)
    assert (done.returncode, done.stderr) == (2, "codetaste: locked/outputs: Permission denied\n")
    assert json.loads(done.stdout)["error"]["messages"] == ["locked/outputs: Permission denied"]


def test_unwritable_result_is_a_one_line_error() -> None:
    done = run_body(PRINTING, shell=">/dev/full")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("codetaste: standard output cannot be written: ")
    assert "Traceback" not in done.stderr


def test_a_narrow_encoding_loses_no_result() -> None:
    body = """
        def command():
            print_result("R∘X*")
            return 0
    """
    done = run_body(body, env={"PYTHONIOENCODING": "ascii"})
    assert (done.stdout, done.returncode) == ("R\\u2218X*\n", 0)


@pytest.mark.parametrize(("fault", "code"), [("BrokenPipeError()", 141), ("KeyboardInterrupt()", 130)])
def test_interrupt_in_a_group_of_tasks_ends_the_command_quietly(fault: str, code: int) -> None:
    body = f"""
        def command():
            raise BaseExceptionGroup("tasks", [BaseExceptionGroup("inner", [{fault}])])
    """
    done = run_body(body)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def write_config_with_signalling_tool(name: str, folder: Path) -> Path:
    """Write a config with a tool that sends ``name`` to this process when it is imported."""
    (folder / "signals.py").write_text(
        "import os, signal\nfrom codetaste.agent.tool import tool\n"
        '@tool\nasync def look(context: object) -> str:\n    """Look."""\n    return ""\n'
        f"os.kill(os.getpid(), signal.{name})\n"
    )
    text = (CHECKOUT / "examples/quickstart.toml").read_text("utf-8")
    text = text.replace("quickstart_model.py", str(CHECKOUT / "examples/quickstart_model.py"))
    (folder / "config.toml").write_text(text + '\ntools = ["signals.py:look"]\n', "utf-8")
    return folder / "config.toml"


def run_config(config: Path, *options: str, before: str = "exec") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f'{before} "$@"', "sh", sys.executable, "-m", "codetaste.run", str(config), *options],
        cwd=config.parent,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        # The process that runs the tests may ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_before_the_first_job_ends_a_run_without_a_traceback(name: str, tmp_path: Path) -> None:
    done = run_config(write_config_with_signalling_tool(name, tmp_path))
    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr


def test_run_that_ignores_sighup_survives_it(tmp_path: Path) -> None:
    done = run_config(
        write_config_with_signalling_tool("SIGHUP", tmp_path), "--dry-run", before="trap '' HUP; exec"
    )
    assert done.returncode == 0
    assert "at most" in done.stdout


INTERRUPTING = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
"""


@pytest.mark.parametrize("program", ["codetaste run", "codetaste.run"])
@pytest.mark.parametrize("name", ["anyio", "cyclopts", "pydantic", "codetaste.run.limits"])
def test_ctrl_c_while_python_still_imports_is_quiet(tmp_path: Path, program: str, name: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING.format(name=name))
    done = subprocess.run(
        [sys.executable, "-m", *program.split(), "nofile.toml"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_importing_codetaste_leaves_the_signals_of_a_process_alone() -> None:
    code = "import signal, codetaste.run, codetaste.cli.app\n"
    code += "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_program_fault_is_json_and_prints_its_traceback() -> None:
    body = """
        def command():
            raise KeyError("gone")
    """
    done = run_body(body, as_json=True)
    assert json.loads(done.stdout)["error"] == {"cause": "fault", "messages": ["KeyError: 'gone'"]}
    assert done.returncode == 1
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(
    ("fault", "cause", "code"),
    [
        ("ConfigError('a', 'b')", "config", 2),
        ("SourceError('a\\nb')", "source", 1),
        ("KeyboardInterrupt()", "cancelled", 130),
    ],
)
def test_error_is_the_result_under_json(fault: str, cause: str, code: int) -> None:
    body = f"""
        from codetaste.errors import ConfigError, SourceError
        def command():
            raise {fault}
    """
    done = run_body(body, as_json=True)
    messages = ["stopped"] if cause == "cancelled" else ["a", "b"]
    error = {"cause": cause, "messages": messages}
    assert json.loads(done.stdout) == {"json_format": 1, "error": error, "exit_code": code}
    assert done.returncode == code


def test_json_output_after_result_is_suppressed() -> None:
    body = """
        def command():
            print_result('{"result": 1}')
            raise KeyboardInterrupt
    """
    done = run_body(body, as_json=True)
    assert json.loads(done.stdout) == {"result": 1}
    assert done.returncode == 130


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["report", "--bogus"], "Unknown option: --bogus"),
        (["case-study"], '"case-study" parameter RUN requires an argument'),
        (["report", "--\x1b[31mred\n"], r"Unknown option: --\x1b[31mred"),
    ],
)
def test_wrong_arguments_are_one_line_on_standard_error(arguments: list[str], expected: str) -> None:
    command = [sys.executable, "-m", "codetaste", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("codetaste: ")
    assert expected in line
