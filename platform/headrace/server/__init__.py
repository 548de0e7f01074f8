"""Serving the ASGI application: `python -m headrace.server [--server daphne|uvicorn] [--host H] [--port N]`.

Any ASGI server runs `headrace.asgi:application`. Started from here, both finish their streams before they stop, and
Daphne holds the application back while a client does not read.
"""
