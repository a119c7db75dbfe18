"""What a containing program reports about its command, as lines of JSON on a pipe."""

from __future__ import annotations

import json
import os


class StatusPipe:
    """The reading end of the status pipe; reading never blocks."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._text = b""
        os.set_blocking(descriptor, False)

    def first_pid(self) -> int | None:
        """Return the pid, on the host, of the first process in the namespace; None while there is none."""
        value = self._values().get("child-pid")
        return value if isinstance(value, int) else None

    def exit_code(self) -> int | None:
        """Return the command's exit code (128 + n for signal n); None if there is none (yet)."""
        value = self._values().get("exit-code")
        return value if isinstance(value, int) else None

    def error(self) -> str:
        """Return why the command could not be contained, "" if nothing was reported."""
        return str(self._values().get("error", ""))

    def close(self) -> None:
        """Read what is left and close the pipe."""
        self._values()
        os.close(self._descriptor)
        self._descriptor = -1

    def _values(self) -> dict[str, object]:
        while self._descriptor >= 0:
            try:
                chunk = os.read(self._descriptor, 4096)
            except BlockingIOError:
                break
            if not chunk:
                break
            self._text += chunk
        values: dict[str, object] = {}
        for line in self._text.split(b"\n")[:-1]:
            values.update(json.loads(line))
        return values
