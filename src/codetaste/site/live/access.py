"""Who may read the pages: requests that change nothing, from this machine or with the token.

A page of another origin gets nothing: its requests carry another ``Host`` (DNS rebinding) or tell by
``Sec-Fetch-Site`` where they are from, and no header allows it to read an answer.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.responses import PlainTextResponse, RedirectResponse

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MIN_TOKEN_CHARS = 16
TOKEN_PARAMETER = "token"  # noqa: S105 - its name in addresses
_METHODS = ("GET", "HEAD")
_SAME_ORIGIN = {"same-origin", "none"}
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Of every answer. The resource policy keeps pages of other origins from loading data as a script."""


def new_token() -> str:
    """Return a token that cannot be guessed."""
    return secrets.token_urlsafe(32)


def is_loopback(host: str) -> bool:
    """Return whether ``host``, a name or an address to listen at, is this machine's loopback."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one server.

    Attributes:
        host: where it listens.
        token: what a reader must have once, "" for nothing.
    """

    host: str
    token: str = ""

    def refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that may not have its page; None if it may."""
        if request.method not in _METHODS:
            allowed = ", ".join(_METHODS)
            return PlainTextResponse(
                f"only {allowed}: nothing here can be changed\n", 405, {"Allow": allowed}
            )
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not self._is_known(hosts[0]):
            text = (
                "this server does not answer to this host name; use the address that codetaste view printed\n"
            )
            return PlainTextResponse(text, 421)
        if _is_of_another_site(request):
            return PlainTextResponse("a page of another site may not load this\n", 403)
        return self._without_token(request) if self.token else None

    def _is_known(self, header: str) -> bool:
        """Return whether a Host header names this server: no name that another's DNS answers for."""
        try:
            name = urlsplit(f"//{header}").hostname or ""
        except ValueError:
            return False
        if is_loopback(name):
            return True
        if is_loopback(self.host):
            return False
        try:
            return bool(ipaddress.ip_address(name))
        except ValueError:
            return name in {self.host.lower(), socket.gethostname().lower()}

    def _without_token(self, request: Request) -> Response | None:
        """Return None if the request has the token; its first use leads to the address without it."""
        given = request.query_params.get(TOKEN_PARAMETER)
        if given is not None and _equal(given, self.token):
            rest = [each for each in parse_qsl(request.url.query) if each[0] != TOKEN_PARAMETER]
            # One slash only: with two, a browser would take the path for the name of another host.
            path = "/" + request.url.path.lstrip("/")
            response = RedirectResponse(f"{path}?{urlencode(rest)}" if rest else path, 303)
            response.set_cookie(
                _cookie_name(request), self._cookie(), httponly=True, samesite="lax", path="/"
            )
            return response
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _equal(bearer.strip(), self.token):
            return None
        if _equal(_cookies(request).get(_cookie_name(request), ""), self._cookie()):
            return None
        text = "use the address with the token that codetaste view printed\n"
        return PlainTextResponse(text, 401, {"WWW-Authenticate": "Bearer"})

    def _cookie(self) -> str:
        """Return the value of the cookie, from which the token cannot be computed."""
        return hmac.new(self.token.encode(), b"codetaste view", hashlib.sha256).hexdigest()


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def _cookie_name(request: Request) -> str:
    """Return the name of the cookie: servers at several ports of one host share their cookies."""
    server = request.scope.get("server") or ("", "")
    return f"codetaste-{server[1]}"


def _cookies(request: Request) -> dict[str, str]:
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(request.headers.get("cookie", ""))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in cookies.items()}


def _is_of_another_site(request: Request) -> bool:
    """Return whether a page of another origin loads this as a part of itself; a link to it is fine."""
    site = request.headers.get("sec-fetch-site", "none")
    link = (request.headers.get("sec-fetch-mode"), request.headers.get("sec-fetch-dest"))
    return site not in _SAME_ORIGIN and link != ("navigate", "document")
