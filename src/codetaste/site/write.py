"""Write a site to a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.core.files import write_atomically
from codetaste.site.build import site_files

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.site.site import Site


def write_site(site: Site, folder: Path) -> int:
    """Write every file of the site; returns their number. Blocking.

    Raises:
        StorageFull: no space left.
        JournalError: a file cannot be written.
    """
    number = 0
    for whole in site_files(site):
        for file in whole.with_parts():
            write_atomically(folder / file.address, file.make())
            number += 1
    return number
