"""The violations of Checkstyle's rules that an answer adds."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.java.checkstyle.service import CheckstyleService, StyleReport, StyleViolation

_NUMBER = re.compile(r"\d+")


async def find_new_violations(
    before: Mapping[str, str], after: Mapping[str, str], service: CheckstyleService
) -> list[StyleViolation]:
    """Return the violations in changed files that are not there before.

    One that moves, with its line of code, to another place or file is not new; nor is one whose numbers
    change, such as the length of a method that is shorter now and still too long.

    Args:
        before: texts of the changed files, by path.
        after: the same files after, and new ones.
        service: Checkstyle.

    Raises:
        JavaError: Checkstyle gave no answer.
    """
    old = await service.check(before)
    new = await service.check(after)
    known = Counter(identity for identity, _ in _identities(old, before))
    added = []
    for identity, violation in _identities(new, after):
        if known[identity]:
            known[identity] -= 1
        else:
            added.append(violation)
    return added


def _identities(
    report: StyleReport, texts: Mapping[str, str]
) -> Iterator[tuple[tuple[str, str, str], StyleViolation]]:
    lines = {path: text.splitlines() for path, text in texts.items()}
    for each in report.violations:
        of_file = lines[each.path]
        code = of_file[each.line - 1].strip() if 0 < each.line <= len(of_file) else ""
        yield (each.rule, _NUMBER.sub("0", each.message), code), each
