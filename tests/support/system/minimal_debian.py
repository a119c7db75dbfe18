"""A minimal Debian 12 as a test fixture, like a fresh installation.

It has only mmdebstrap's ``minbase``, ``python3`` and ``sudo``: an externally managed Python 3.11.2, no git,
no venv, no bubblewrap. The user ``dev`` may use sudo without a password, and has the checkout in
``~/codetaste``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
ENTER = Path(__file__).with_name("enter_minimal.sh")
SUITE = "bookworm"
USER = "dev"
UID = 1000
HOME = f"/home/{USER}"
PROJECT = f"{HOME}/codetaste"

_OWN_NAMESPACES = ("unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child")
_AS_USER = ("setpriv", f"--reuid={UID}", f"--regid={UID}", "--init-groups", "env", "-i")
_CA_FILE = "/etc/ssl/machine-ca.crt"
_CA_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO")
_NETWORK_VARIABLES = (
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT"),
)


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """The output of a command in the system, both streams together, and its exit code."""

    exit_code: int
    output: str


@dataclass(frozen=True, slots=True)
class MinimalSystem:
    """An unpacked root file system."""

    root: Path

    @property
    def project(self) -> Path:
        """The path of its checkout on the host."""
        return self.root / PROJECT.lstrip("/")

    def run(self, script: str, *, timeout_s: float = 600) -> CommandOutput:
        """Run a bash script as the normal user in the checkout; all its processes end with it."""
        shell = ("bash", "-c", f"cd {PROJECT}\n{script}")
        result = subprocess.run(
            [*_OWN_NAMESPACES, "sh", ENTER, self.root, *_AS_USER, *user_environment(), *shell],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
        )
        return CommandOutput(result.returncode, result.stdout.decode(errors="replace"))


def user_environment() -> list[str]:
    """Return ``NAME=value`` for the user's shell: the host's network settings, but no API keys."""
    variables = {"HOME": HOME, "USER": USER, "LOGNAME": USER, "SHELL": "/bin/bash", "LANG": "C.UTF-8"}
    variables["PATH"] = "/usr/local/bin:/usr/bin:/bin"
    variables |= {name: _CA_FILE for name in _CA_VARIABLES if name in os.environ}
    variables |= {name: os.environ[name] for name in _NETWORK_VARIABLES if name in os.environ}
    return [f"{name}={value}" for name, value in variables.items()]


def build(archive: Path) -> None:
    """Write the root file system, with user and certificates but without a checkout, as a tar archive.

    Raises:
        subprocess.CalledProcessError: mmdebstrap failed; its messages are on standard error.
    """
    certificates = next((os.environ[name] for name in _CA_VARIABLES if name in os.environ), None)
    hooks = [
        f'chroot "$1" useradd --uid {UID} --create-home --shell /bin/bash {USER}',
        f'echo "{USER} ALL=(ALL) NOPASSWD: ALL" > "$1/etc/sudoers.d/{USER}"',
        'echo "127.0.0.1 localhost minimal" > "$1/etc/hosts"',
        *([f'mkdir -p "$1/etc/ssl" && cp "{certificates}" "$1{_CA_FILE}"'] if certificates else ()),
    ]
    unfinished = archive.with_suffix(".unfinished")
    subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=minbase", "--include=python3,sudo", "--format=tar"]
        + [f"--customize-hook={hook}" for hook in hooks]
        + [SUITE, str(unfinished)],
        stdin=subprocess.DEVNULL,
        check=True,
    )
    unfinished.rename(archive)


def unpack(archive: Path, root: Path) -> MinimalSystem:
    """Unpack the archive and put this checkout, as committed, into the user's home."""
    root.mkdir(mode=0o755)
    subprocess.run(["tar", "--extract", "--numeric-owner", "-f", archive, "-C", root], check=True)
    shutil.copyfile("/etc/resolv.conf", root / "etc/resolv.conf")
    pip_config = Path("/etc/pip.conf")
    if pip_config.is_file():
        shutil.copyfile(pip_config, root / "etc/pip.conf")
    system = MinimalSystem(root)
    export_checkout(system.project)
    return system


def export_checkout(folder: Path) -> None:
    """Write the committed files of this checkout to ``folder``, owned by the normal user."""
    folder.mkdir(parents=True)
    subprocess.run(
        ["tar", "--extract", "-f", "-", "-C", folder],
        input=committed_files(),
        check=True,
    )
    subprocess.run(["chown", "--recursive", f"{UID}:{UID}", folder], check=True)


def committed_files() -> bytes:
    """Return this checkout's last commit as a tar archive."""
    trusted = f"safe.directory={CHECKOUT}"
    git = ["git", "-c", trusted, "-C", str(CHECKOUT), "archive", "--format=tar", "HEAD"]
    return subprocess.run(git, stdout=subprocess.PIPE, check=True).stdout


def remove(root: Path) -> None:
    """Delete an unpacked system; after its commands nothing is mounted in it."""
    shutil.rmtree(root)
