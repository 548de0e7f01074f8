"""How much of an answer the kernel keeps for a client that does not read it."""

import socket

# Linux would take up to 4 MiB a connection. Beyond this much unsent, writing waits for the client: so what is handed to
# the server is nearly what was delivered, a slow reader shows that it reads, and one that does not costs little.
_UNSENT = 128 * 1024


def bound(connection: socket.socket) -> None:
    if hasattr(socket, "TCP_NOTSENT_LOWAT") and connection.family in {socket.AF_INET, socket.AF_INET6}:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)
