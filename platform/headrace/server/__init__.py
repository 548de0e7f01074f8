"""Serving the ASGI application: `python -m headrace.server [--server uvicorn|daphne] [--host H] [--port N]`.

Any ASGI server runs `headrace.asgi:application`. Started from here, both finish their streams before they stop, and
Daphne holds the application back while a client does not read.
"""
