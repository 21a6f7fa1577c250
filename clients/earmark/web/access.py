"""Who may see the page: whoever has the token, from this machine.

The token comes once in the address and then as a cookie that scripts cannot read and other sites do not send. Names
other than this machine's are refused, so that no foreign name can be made to point here.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Access:
    """What a browser has to show."""

    host: str
    port: int
    token: str

    @classmethod
    def fresh(cls, host: str, port: int) -> Access:
        """Return one with a new token."""
        return cls(host, port, secrets.token_urlsafe(32))

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{self.host}:{self.port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """The cookie's name. Cookies know no ports, and several pages may run."""
        return f"earmark_{self.port}"

    def hosts(self) -> tuple[str, ...]:
        """Return the Host headers that are served."""
        return (f"{self.host}:{self.port}", f"localhost:{self.port}")

    def matches(self, token: str) -> bool:
        """Whether a token is the right one."""
        return secrets.compare_digest(token.encode(), self.token.encode())


class Guard:
    """ASGI middleware: nothing is answered without the token, and every answer has HEADERS."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._refusal(Request(scope))
        await (answer or self._app)(scope, receive, with_headers)

    def _refusal(self, request: Request) -> Response | None:
        access = self._access
        if request.headers.get("host", "") not in access.hosts():
            return PlainTextResponse("This name is not served here.\n", 421)
        origin = request.headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in access.hosts()}:
            return PlainTextResponse("Other sites may not ask.\n", 403)
        token = request.query_params.get("token", "")
        if token and access.matches(token):
            # The address bar, the history and copied links do not keep the token.
            response = RedirectResponse(request.url.path, 303)
            response.set_cookie(access.cookie, access.token, httponly=True, samesite="strict")
            return response
        if access.matches(request.cookies.get(access.cookie, "")):
            return None
        return PlainTextResponse("Open the address that `earmark web` or `earmark up` has printed.\n", 403)
