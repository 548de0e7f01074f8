"""The one question asked of a part that speaks HTTP: does this address answer 200?"""

import http.client

from headrace.stack.ports import LOOPBACK


def answers(port: int, path: str, *, timeout: float = 2) -> bool:
    """True for a 200; False for any other answer, and for none within `timeout` seconds."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=timeout)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
