"""Check requests against an allow list: the fields, types and values that may pass, by exact spelling.

No tokenizer makes more tokens than there are UTF-8 bytes, and JSON never has fewer bytes than its text. So
the JSON of what an allow list contains bounds its tokens; a picture has at most ``PER_PICTURE`` more. All
else might be billed otherwise, and is refused by its path, ``messages[3].content[1].type = "Document"``. A
model's config opens it by its key, ``messages[].content[].type=Document``, with the most that it may cost.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

from codetaste.core.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

PER_PICTURE = 50_000
"""Tokens of the costliest picture that a provider documents (gpt-4o-mini: 2,833 and 8 tiles of 5,667)."""

_MAX_REFUSALS = 4
"""Refusals that are named for one request."""

_MAX_EXAMINED = 1_000
"""Findings that are examined after the first refusal: the others may be as many as a body has values."""

_MAX_VALUE_CHARS = 80

_SCALARS = frozenset({str, int, float, bool})

_Place = tuple[Any, str | int] | None
"""The place of a value: that of its container, and its name or index in it."""


class Findings:
    """What one request has that is not in the allow list.

    Attributes:
        refusals: its paths with their values, of the first few.
        keys: the keys that would open them.
        opened: the keys in use that the model's config opens; all of them if there are no refusals.
    """

    def __init__(self, prices: Mapping[str, Decimal]) -> None:
        self.refusals: list[str] = []
        self.keys: list[str] = []
        self.opened: set[str] = set()
        self._prices = prices
        self._examined = 0

    @property
    def extra_usd(self) -> Decimal:
        """What the opened features may cost besides tokens, in US dollars."""
        return sum((self._prices[key] for key in self.opened), Decimal(0))

    def describe(self) -> str:
        """Return in one line what is refused and the config key that opens it."""
        opening = ", ".join(f"{_shown(key)} = …" for key in self.keys)
        what = "is" if len(self.keys) == 1 else "are"
        return (
            f"{', '.join(self.refusals)} {what} not allowed under a budget, as the cost is "
            f"unknown; allow = {{ {opening} }} in [[models]] opens it, with the US dollars that it may cost"
        )

    def add(self, place: _Place, value: object = None, *, by_value: bool = False) -> None:
        """Add what is at ``place``; ``by_value``: another value may be allowed there."""
        if len(self.refusals) >= _MAX_REFUSALS or self._examined >= _MAX_EXAMINED:
            return
        self._examined += bool(self.refusals)
        path, key = _path(place)
        if by_value:
            key = f"{key}={_shown(value).strip(chr(34))}"
        if key in self._prices:
            self.opened.add(key)
        elif key not in self.keys:
            self.keys.append(key)
            self.refusals.append(f"{path} = {_shown(value)}")


class Form(Protocol):
    """The form that a value must have. Where a form is, a null may be too."""

    def check(self, value: Any, place: _Place, found: Findings) -> None:  # noqa: ANN401 - JSON data
        """Add to ``found`` what is not allowed in ``value``."""
        ...


@dataclass(frozen=True, slots=True)
class AnyData:
    """JSON of any form: text for the model or for the client."""

    def check(self, value: Any, place: _Place, found: Findings) -> None:  # noqa: ANN401
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class AnyScalar:
    """A text, a number, or true or false."""

    def check(self, value: Any, place: _Place, found: Findings) -> None:  # noqa: ANN401
        """Add ``value`` if it is a list or an object."""
        if type(value) not in _SCALARS:
            found.add(place, value)


DATA, SCALAR = AnyData(), AnyScalar()
PICTURE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""A document or video in the place of a picture costs more than one."""
PICTURE_URLS = tuple(f"data:{kind};" for kind in PICTURE_TYPES)


class OneOf:
    """One of some texts, numbers or flags."""

    def __init__(self, *values: str | int | bool) -> None:
        self.values = frozenset((type(value), value) for value in values)

    def check(self, value: Any, place: _Place, found: Findings) -> None:  # noqa: ANN401
        """Add ``value`` if it is another one."""
        if type(value) not in _SCALARS:
            found.add(place, value)
        elif (type(value), value) not in self.values:
            found.add(place, value, by_value=True)


@dataclass(frozen=True, slots=True)
class Beginning:
    """A text with one of some beginnings, such as those of URLs with the data in them."""

    texts: tuple[str, ...]

    def check(self, value: Any, place: _Place, found: Findings) -> None:  # noqa: ANN401
        """Add ``value`` if it begins otherwise."""
        if not isinstance(value, str) or not value.startswith(self.texts):
            found.add(place, value)


class Fields:
    """An object with some fields.

    Args:
        forms: the fields.
        own: fields of which one must have content beside an ``id``; without them the object would be a
            reference to content that is stored at the provider.
        needs: fields that must be there: without them servers differ in what they make of the rest, or do
            what is billed apart.
    """

    def __init__(
        self, forms: Mapping[str, Form], own: tuple[str, ...] = (), needs: tuple[str, ...] = ()
    ) -> None:
        self.forms, self.own, self.needs = dict(forms), own, needs

    def check(self, value: Any, place: _Place, found: Findings) -> None:  # noqa: ANN401
        """Add the fields that are not allowed."""
        if type(value) is not dict:
            found.add(place, value)
            return
        own = self.own
        if own and value.get("id") is not None and not any(_has_content(value.get(name)) for name in own):
            found.add((place, "id"), value["id"])
        for name in self.needs:
            if value.get(name) is None:
                found.add((place, name), None)
        get, scalar = self.forms.get, SCALAR
        for name, inner in value.items():
            form = get(name)
            if form is scalar and (type(inner) is str or inner is None):
                continue  # nearly all fields
            if form is None:
                found.add((place, name), inner)
            elif inner is not None and form is not DATA:
                form.check(inner, (place, name), found)


class Kinds:
    """An object whose fields depend on its type.

    Args:
        forms: the fields of each type, without the type itself.
        tag: the field with the type.
        default: the type, or the form, of an object without that field; by default there must be one.
    """

    def __init__(
        self, forms: Mapping[str, Fields], *, tag: str = "type", default: str | Fields | None = None
    ) -> None:
        self.tag = tag
        self.forms: dict[str | None, Fields] = {
            kind: Fields({tag: SCALAR, **form.forms}, form.own, form.needs) for kind, form in forms.items()
        }
        if default is not None:
            self.forms[None] = default if isinstance(default, Fields) else self.forms[default]

    def check(self, value: Any, place: _Place, found: Findings) -> None:  # noqa: ANN401
        """Add the type if it is not allowed, or else the fields that are not."""
        if type(value) is not dict:
            found.add(place, value)
            return
        kind = value.get(self.tag)
        form = self.forms.get(kind) if kind is None or type(kind) is str else None
        if form is None:
            found.add((place, self.tag), kind, by_value=True)
        else:
            form.check(value, place, found)


@dataclass(frozen=True, slots=True)
class Items:
    """A list of values of one form.

    Attributes:
        form: of each value.
        scalar: the form of a single value without a list, None if there must be a list.
    """

    form: Form
    scalar: Form | None = None

    def check(self, value: Any, place: _Place, found: Findings) -> None:  # noqa: ANN401
        """Check each value."""
        if type(value) is list:
            check = self.form.check
            for index, inner in enumerate(value):
                check(inner, (place, index), found)
        elif self.scalar is not None:
            self.scalar.check(value, place, found)
        else:
            found.add(place, value)


FALSE = OneOf(False)  # noqa: FBT003 - the allowed value


def text_or(form: Form) -> Items:
    """Return the form of a content: a text, or a list of blocks of ``form``."""
    return Items(form, SCALAR)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowList:
    """What requests of one protocol may have.

    Attributes:
        body: the form of a body.
        options: options of a model in the config that are not sent as such, or whose price the config states.
        headers: the client's headers that are forwarded, with their allowed values; None allows any. A value
            is a list with commas. Other headers are not forwarded.
        query: the parameters of the URL that are forwarded.
        unsent: why what is allowed and no supported program sends is allowed, by the beginning of its key.
    """

    body: Fields
    options: Fields
    headers: Mapping[str, frozenset[str] | None]
    query: frozenset[str] = frozenset()
    unsent: Mapping[str, str] = field(default_factory=dict)

    def check_request(
        self, body: Mapping[str, Any], headers: Mapping[str, str], prices: Mapping[str, Decimal]
    ) -> Findings:
        """Return what of a client's request is not in this list.

        Args:
            body: parsed.
            headers: names in lower case.
            prices: what the model's config opens, with prices in US dollars.
        """
        found = Findings(prices)
        self.body.check(body, None, found)
        for name, allowed in self.headers.items():
            if allowed is None or name not in headers:
                continue
            for value in headers[name].split(","):
                if value.strip() and value.strip() not in allowed:
                    found.add((None, name), value.strip(), by_value=True)
        return found

    def check_options(self, options: Mapping[str, Any], prices: Mapping[str, Decimal]) -> Findings:
        """Return which options of a model's config are not in this list; ``prices`` as above."""
        found = Findings(prices)
        Fields({**self.body.forms, **self.options.forms}).check(dict(options), None, found)
        return found


def _has_content(value: object) -> bool:
    """Whether a value has any content, beside the types of what it contains."""
    if isinstance(value, dict):
        return any(name != "type" and _has_content(inner) for name, inner in value.items())
    if isinstance(value, list):
        return any(map(_has_content, value))
    return value not in ("", None)


def _path(place: _Place) -> tuple[str, str]:
    """Return the path of a place, and the same without indices."""
    steps: list[str | int] = []
    while place is not None:
        place, step = place
        steps.append(one_line(step, _MAX_VALUE_CHARS) if isinstance(step, str) else step)
    path = key = ""
    for step in reversed(steps):
        if isinstance(step, int):
            path, key = f"{path}[{step}]", f"{key}[]"
        else:
            dot = "." if path else ""
            path, key = f"{path}{dot}{step}", f"{key}{dot}{step}"
    return path, key


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return one_line(text, _MAX_VALUE_CHARS)
