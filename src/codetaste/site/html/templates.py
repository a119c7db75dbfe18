"""Templates with escaping: everything that comes from runs is text, never markup."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from codetaste.site.html.address import relative

if TYPE_CHECKING:
    from codetaste.site.site import Site


@cache
def environment() -> Environment:
    """Return the templates of ``site/templates``."""
    return Environment(
        loader=PackageLoader("codetaste.site", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_page(site: Site, template: str, address: str, title: str, **values: Any) -> bytes:  # noqa: ANN401
    """Return the page at ``address``.

    Args:
        site: the site that it belongs to.
        template: a file of ``site/templates`` that extends ``base.html``.
        address: of the page; links are made relative to it.
        title: of the page, as text.
        values: the template's own variables.
    """
    text = (
        environment()
        .get_template(template)
        .render(
            site=site,
            address=address,
            title=title,
            link=lambda target: relative(target, address),
            **values,
        )
    )
    # A lone surrogate, which file names and JSON can have, is no text of a page.
    return text.encode("utf-8", "replace")
