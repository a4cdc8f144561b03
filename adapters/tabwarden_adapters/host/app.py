"""The endpoints as a Quart-Trio application. Everything that it answers is JSON, also its errors."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from tabwarden_adapters.host.contained import App
from tabwarden_adapters.host.endpoints import Endpoints
from tabwarden_adapters.host.errors import ControlError, ErrorCode, error_reply
from tabwarden_adapters.host.gate import ROUTES
from tabwarden_adapters.host.limits import MAX_BODY

_CODES = {404: ErrorCode.ROUTE, 405: ErrorCode.METHOD, 413: ErrorCode.TOO_LARGE}


class _QuietApp(QuartTrio):
    def log_exception(self, exception_info: Any) -> None:
        """Quart's own would write the exception's text, and with it a page's or a secret's."""


def control_app(endpoints: Endpoints) -> App:
    """An ASGI application for requests that the gate let through. Serve it to nobody else."""
    app = _QuietApp("tabwarden-host-control", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    app.config["PROPAGATE_EXCEPTIONS"] = False
    # Time limits are the connection's and the backend's: a person may take minutes.
    app.config["RESPONSE_TIMEOUT"] = None
    app.config["BODY_TIMEOUT"] = None
    for route, method in ROUTES.items():
        path = route.decode()
        app.add_url_rule(
            path, endpoint=path, view_func=_view(endpoints, path), methods=[method.decode()],
            provide_automatic_options=False,
        )  # fmt: skip
    app.register_error_handler(ControlError, _refused)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _failed)
    return cast(App, app)


def _view(endpoints: Endpoints, path: str) -> Callable[[], Awaitable[Response]]:
    async def view() -> Response:
        body = cast(bytes, await request.get_data(cache=False))
        return _json(200, await endpoints.answer(path, bytes(request.scope["query_string"]), body))

    return view


def _json(status: int, body: bytes) -> Response:
    return Response(
        body, status, headers={"cache-control": "no-store"}, content_type="application/json"
    )  # fmt: skip


async def _refused(error: ControlError) -> Response:
    return _json(*error_reply(error.code))


async def _http_error(error: HTTPException) -> Response:
    return _json(*error_reply(_CODES.get(error.code or 500, ErrorCode.FAILURE)))


async def _failed(error: Exception) -> Response:
    return _json(*error_reply(ErrorCode.FAILURE))
