"""The stores that are somebody else's: DATABASE_URL and REDIS_URL, asked once before anything is started."""

from urllib.parse import urlsplit

import psycopg
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from headrace.stack.errors import StackError
from headrace_core import database

SECONDS = 5


def check_database(url: str) -> None:
    """Raises StackError where no server answers at `url`; the database itself may be missing. Tells no password."""
    try:
        database.connect_beside(url, seconds=SECONDS).close()
    except psycopg.OperationalError as error:
        raise StackError(f"DATABASE_URL: {place(url)} does not answer ({database.reason(error)})") from error


def check_redis(url: str) -> None:
    """Raises StackError where no server answers at `url`. Tells no password."""
    once = Retry(NoBackoff(), 0)
    try:
        with redis.Redis.from_url(url, socket_timeout=SECONDS, socket_connect_timeout=SECONDS, retry=once) as client:
            client.ping()
    except ValueError as error:
        raise StackError("REDIS_URL must begin with redis://, rediss:// or unix://") from error
    except redis.RedisError as error:
        raise StackError(f"REDIS_URL: {place(url)} does not answer ({error})") from error


def place(url: str) -> str:
    """Host and port of `url`, without its password."""
    return urlsplit(url).netloc.rpartition("@")[2] or urlsplit(url).path
