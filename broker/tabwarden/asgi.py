"""Serve the broker from a host's own ASGI server: `start_agent_control(..., serve_at="127.0.0.1:PORT")`, then
serve `control.asgi_app` (an `AsgiApp`) at that address with Hypercorn on trio."""

from tabwarden.service.asgi_app import AsgiApp

__all__ = ["AsgiApp"]
