"""A small repository before and after a refactoring, and places in an image where golden code can be."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from support.source.repositories import ENVIRONMENT

Files = Mapping[str, bytes]

BASE: Files = {
    "LICENSE": b"Permission is hereby granted, free of charge, to any person obtaining a copy\n",
    "package-lock.json": b'{"lockfileVersion": 3}\n',
    "forge/__init__.py": b"from forge.heat import heat_metal_until\n",
    "forge/heat.py": b'''"""Heats metal."""

import time


def heat_metal_until(metal, wanted_degrees):
    while metal.degrees < wanted_degrees:
        metal.degrees += 25
        time.sleep(0)
    return metal


def cool_metal_down(metal, wanted_degrees):
    while metal.degrees > wanted_degrees:
        metal.degrees -= 25
    return metal
''',
    "tests/test_heat.py": b"""from forge.heat import heat_metal_until


def test_metal_gets_as_hot_as_wanted(metal):
    assert heat_metal_until(metal, 900).degrees >= 900
""",
}
GOLDEN: Files = {
    **BASE,
    "package-lock.json": b'{"lockfileVersion": 3, "integrity": "sha512-abcdefabcdefabcdefabcdef"}\n',
    "forge/__init__.py": b"from forge.temperature_controller import TemperatureController\n",
    "forge/heat.py": b'''"""Heats metal."""

from forge.temperature_controller import TemperatureController


def heat_metal_until(metal, wanted_degrees):
    return TemperatureController(metal, step_degrees=25).approach(wanted_degrees)


def cool_metal_down(metal, wanted_degrees):
    return TemperatureController(metal, step_degrees=-25).approach(wanted_degrees)
''',
    "forge/temperature_controller.py": b'''"""Brings metal to a temperature."""

# Licensed under the terms of a licence that has many words in each of its lines.


class TemperatureController:
    """Changes the temperature of one piece of metal, step by step."""

    def __init__(self, metal, step_degrees):
        self.metal, self.step_degrees = metal, step_degrees

    def approach(self, wanted_degrees):
        while self._remaining_degrees(wanted_degrees) > 0:
            self.metal.degrees += self.step_degrees
        return self.metal

    def _remaining_degrees(self, wanted_degrees):
        direction = 1 if self.step_degrees > 0 else -1
        return direction * (wanted_degrees - self.metal.degrees)
''',
}
NEW_FILE = "forge/temperature_controller.py"
COMMIT = "c0ffee" + 33 * "a" + "1"


def write_tree(folder: Path, files: Files) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def as_zip(files: Files, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return into.getvalue()


def as_tar(files: Files) -> bytes:
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return into.getvalue()


def as_pyc(path: str, content: bytes, folder: Path) -> bytes:
    """Compile a file as an installation does: the path of the source is in the result."""
    source = folder / "site-packages" / path
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_bytes(content)
    command = "import py_compile, sys; py_compile.compile(sys.argv[1], sys.argv[2], doraise=True)"
    subprocess.run([sys.executable, "-c", command, source, folder / "out.pyc"], check=True)
    return (folder / "out.pyc").read_bytes()


def as_diff(base: Path, golden: Path) -> bytes:
    command = ["git", "diff", "--no-index", "--no-color", str(base), str(golden)]
    return subprocess.run(command, capture_output=True, check=False, env=ENVIRONMENT).stdout


def repository_files(folder: Path, files: Files, *, packed: bool) -> Files:
    """Return the files of a git repository with one commit of ``files``, by path below it."""
    git = ["git", "-C", str(write_tree(folder, files))]

    def run(*args: str) -> None:
        subprocess.run([*git, *args], check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL)

    run("init", "--quiet")
    run("add", "-A")
    run("commit", "--quiet", "-m", "one")
    if packed:
        run("repack", "-adq")
        run("prune-packed")
    store = folder / ".git"
    return {
        f".git/{path.relative_to(store).as_posix()}": path.read_bytes()
        for path in sorted(store.rglob("*"))
        if path.is_file()
    }


PLACES: Mapping[str, Callable[[bytes], Files]] = {
    "a copy": lambda content: {"opt/copy.py": content},
    "a copy with the line ends of Windows": lambda content: {"opt/x": content.replace(b"\n", b"\r\n")},
    "a part of a log": lambda content: {"var/log/a.log": b"noise\n" * 99 + content[40:] + b"noise"},
    "a transcript": lambda content: {
        "home/agent/t.jsonl": json.dumps({"text": content.decode().replace("    ", "\t")}).encode()
    },
    "gzip": lambda content: {"x.gz": gzip.compress(content)},
    "bzip2": lambda content: {"x.bz2": bz2.compress(content)},
    "xz": lambda content: {"x.xz": lzma.compress(content)},
    "two streams of gzip": lambda content: {"x.gz": gzip.compress(b"one\n") + gzip.compress(content)},
    "a tar archive": lambda content: {"x.tar": as_tar({"a/b.py": content})},
    "a compressed tar archive": lambda content: {"x.tgz": gzip.compress(as_tar({"a/b.py": content}))},
    "a wheel": lambda content: {"x.whl": as_zip({"forge/x.py": content, "forge.dist-info/RECORD": b""})},
    "a stored zip archive": lambda content: {"x.jar": as_zip({"x": content}, zipfile.ZIP_STORED)},
    "a wheel in a source archive": lambda content: {
        "x.tar.gz": gzip.compress(as_tar({"dist/x.whl": as_zip({"x.py": content})}))
    },
    "a response in pip's cache": lambda content: {"c": b"cc=4," + as_zip({"x.py": content}) + b"\xc0"},
    "a large file": lambda content: {"big": b"0123456789abcdef\n" * 10**6 + content + b"\n" * 10**6},
    "a file without line ends around it": lambda content: {"big": b"x" * 9_000_000 + b"\n" + content},
}
"""Places of one golden file, each as files of an image."""
