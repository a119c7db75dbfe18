"""Why a run of an instance's three scripts gave no valid result."""

from __future__ import annotations

from enum import StrEnum


class RunProblem(StrEnum):
    """What went wrong in a test run, or with the machine under it."""

    SETUP_SYSTEM_FAILED = "setup_system_failed"
    SETUP_SHELL_FAILED = "setup_shell_failed"
    NO_RESULT = "no_result"
    """The last line of ``run_tests``' standard output is no result."""
    BAD_COUNTS = "bad_counts"
    """The last line is a JSON object whose counts are missing or impossible."""
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    """The run exceeded its own limit of memory."""
    DISK_FULL = "disk_full"
    """The run exceeded its own limit of disk space."""
    TOO_MANY_PROCESSES = "too_many_processes"
    SUPERVISOR_KILLED = "supervisor_killed"
    """The run killed what runs commands in its sandbox."""
    BAD_PATCH = "bad_patch"
    """The patch cannot be applied."""
    SANDBOX_LOST = "sandbox_lost"
    """The container or its engine went away."""
    IMAGE_UNAVAILABLE = "image_unavailable"
    HOST_OUT_OF_MEMORY = "host_out_of_memory"
    """The machine lacks the memory that the run is guaranteed."""
    HOST_DISK_FULL = "host_disk_full"

    @property
    def infrastructure(self) -> bool:
        """Whether the machine is to blame: the run is tried again, and never counts as a failed test."""
        return self in _INFRASTRUCTURE


_INFRASTRUCTURE = frozenset({
    RunProblem.SANDBOX_LOST,
    RunProblem.IMAGE_UNAVAILABLE,
    RunProblem.HOST_OUT_OF_MEMORY,
    RunProblem.HOST_DISK_FULL,
})  # fmt: skip
