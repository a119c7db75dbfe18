"""Make a table of pinned jars from what Maven resolves: coordinates, SHA-256, size.

``python tests/support/java/resolve_artifacts.py NAME GROUP:ARTIFACT:VERSION[:CLASSIFIER]…`` writes
``src/codetaste/java/artifacts/sets/NAME.csv``, the jars of the given projects and of all that they need at
run time, in the order of Maven's class path. It needs Maven and its repository.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import tempfile
from hashlib import file_digest
from pathlib import Path

SETS = Path(__file__).resolve().parents[3] / "src/codetaste/java/artifacts/sets"
POM = """<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId>
<version>1</version><dependencies>{}</dependencies></project>
"""
LISTED = re.compile(r"([\w.-]+:[\w.-]+):jar(:[\w.-]+)?:([\w.-]+):(?:compile|runtime):(\S+)")
"""group:artifact:jar[:classifier]:version:scope:PATH"""
KEYS = ("groupId", "artifactId", "version", "classifier")


def dependency(coordinates: str) -> str:
    parts = zip(KEYS, coordinates.split(":"), strict=False)
    return f"<dependency>{''.join(f'<{key}>{value}</{key}>' for key, value in parts)}</dependency>"


def resolve(wanted: list[str]) -> list[tuple[str, str, int]]:
    """Return coordinates, digest and size of each jar, in the order of the class path."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pom.xml").write_text(POM.format("".join(map(dependency, wanted))))
        maven = ["mvn", "-B", "-DincludeScope=runtime"]
        subprocess.run(
            [*maven, "-q", "dependency:build-classpath", "-Dmdep.outputFile=path"], cwd=folder, check=True
        )
        paths = Path(folder, "path").read_text().split(":")
        listing = [*maven, "dependency:list", "-DoutputAbsoluteArtifactFilename=true"]
        output = subprocess.run(listing, cwd=folder, check=True, capture_output=True, text=True).stdout
    found = {match[4]: f"{match[1]}:{match[3]}{match[2] or ''}" for match in LISTED.finditer(output)}
    rows = []
    for path in map(Path, paths):
        with path.open("rb") as file:
            rows.append((found[str(path)], file_digest(file, "sha256").hexdigest(), path.stat().st_size))
    return rows


def main(name: str, *wanted: str) -> None:
    with (SETS / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("coordinates", "sha256", "bytes"))
        writer.writerows(resolve(list(wanted)))


if __name__ == "__main__":
    main(*sys.argv[1:])
