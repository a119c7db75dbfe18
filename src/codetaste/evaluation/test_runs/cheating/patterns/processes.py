"""Code that starts a process in a session of its own: it may outlive the test run."""

from __future__ import annotations

from codetaste.evaluation.test_runs.cheating.flags import CheatingKind
from codetaste.evaluation.test_runs.cheating.patterns.line_pattern import (
    ANY,
    GO,
    NATIVE,
    PHP,
    PYTHON,
    RUBY,
    RUST,
    SCRIPT,
    View,
    pattern,
)

_KIND = CheatingKind.DAEMON

PATTERNS = (
    pattern(
        _KIND,
        PYTHON,
        r"\bstart_new_session\s*=\s*True\b",
        r"\bprocess_group\s*=\s*\d",
        r"\bos\.(?:setsid|fork|forkpty|setpgrp|setpgid|posix_spawn)\b",
        r"\bdaemon(?:ize\s*\(|\.DaemonContext\b)",
        r"\bDaemonContext\s*\(",
    ),
    pattern(_KIND, SCRIPT, r"\bdetached\s*:\s*true\b"),
    pattern(_KIND, GO, r"\bSet(?:sid|pgid)\s*[:=]\s*true\b"),
    pattern(_KIND, RUST, r"\b(?:libc|nix::unistd|unistd)::(?:setsid|fork|daemon)\b", r"\.process_group\s*\("),
    pattern(_KIND, RUBY, r"\bProcess\.(?:daemon|setsid|detach)\b", r"(?<![\w.:])fork\s+do\b"),
    pattern(_KIND, PHP, r"\b(?:pcntl_fork|posix_setsid)\s*\("),
    pattern(_KIND, NATIVE, r"(?<![\w.>:])(?:setsid|daemon|fork|vfork)\s*\(\s*(?:\)|\d)"),
    pattern(
        _KIND,
        ANY,
        r"(?:^|[\s\"'`;&|(\[,])(?:nohup|setsid|disown)(?:\s+[\w./$\"'-]|[\"'`],|\s*$)",
        view=View.CODE,
    ),
)
