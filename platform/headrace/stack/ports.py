"""TCP ports on the loopback address."""

import socket

LOOPBACK = "127.0.0.1"


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server could listen on `port` now (one in TIME_WAIT counts as free, as servers set SO_REUSEADDR)."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def reserve() -> socket.socket:
    """A socket bound to a free port and not listening.

    While it is open no other caller is given that port, and a server that sets SO_REUSEADDR may still listen on it:
    close it once the server does.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((LOOPBACK, 0))
    return holder


def number(holder: socket.socket) -> int:
    """The port that `reserve` took."""
    return int(holder.getsockname()[1])
