"""This process's picture of the configuration: loaded once, then kept up by the rows of `config_change`.

Every change of a configuration table writes its row in its own transaction; each process asks for the rows since the
last every half second, on a connection of its own. So a revoked key is refused everywhere within a second, and while
Postgres is away the last picture serves on.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from billing import periods, price_book
from billing.budgets import book
from headrace_core import sealing
from routing import catalog
from tenants import keyring

log = logging.getLogger("headrace.snapshot")

POLL_SECONDS = 0.5
_ANSWER_SECONDS = 10  # for each question: a database that hangs counts as away
_PIECE = 500  # rows
_CHANGES = "SELECT id, table_name, ref FROM config_change WHERE id > %s ORDER BY id"


class Snapshot:
    """Keys, routes, prices and budgets in memory.

    `ready` once loaded; `age` is the seconds since Postgres last answered.
    """

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._last = 0
        self._seen = 0.0
        self.ready = asyncio.Event()
        self.keys = keyring.Keyring()
        self.catalog = catalog.Catalog({})
        self.prices = price_book.PriceBook()
        self.budgets = book.BudgetBook()

    @property
    def age(self) -> float:
        return time.monotonic() - self._seen if self.ready.is_set() else float("inf")

    async def read_catalog(self) -> catalog.Catalog:
        """The routes as they stand, without following them. Raises psycopg.Error, OSError."""
        connection = await psycopg.AsyncConnection.connect(self._url, autocommit=True, connect_timeout=3)
        async with connection:
            await connection.execute("SET ROLE headrace_system")
            return await _read_catalog(connection)

    async def follow(self) -> None:
        """Load, then follow for ever; reconnect as often as needed."""
        failures = 0
        while True:
            before = self._seen
            try:
                await self._connected()
            except (psycopg.Error, OSError) as error:
                failures = 1 if self._seen > before else failures + 1
                if failures == 1:  # once an outage, not once a try
                    log.warning("the database does not answer, serving from memory: %s", str(error).partition("\n")[0])
            except Exception:  # a row this version cannot read must not end the following of all later ones
                log.exception("the configuration could not be read, serving the last one")
                failures += 1
            await asyncio.sleep(min(2.0, POLL_SECONDS * max(1, failures)))

    async def _connected(self) -> None:
        connection = await psycopg.AsyncConnection.connect(self._url, autocommit=True, connect_timeout=3)
        async with connection:
            await connection.execute("SET ROLE headrace_system")
            await self._load(connection)
            log.info("configuration loaded: %d keys, %d models", len(self.keys), len(self.catalog.routes))
            while True:
                await asyncio.sleep(POLL_SECONDS)
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await self._apply(connection)

    async def _load(self, connection: psycopg.AsyncConnection) -> None:
        fresh = keyring.Keyring()
        async with _one_view(connection):
            async with asyncio.timeout(_ANSWER_SECONDS):
                row = await (await connection.execute("SELECT coalesce(max(id), 0) FROM config_change")).fetchone()
            for table, (select, _) in keyring.SELECTS.items():
                async for rows in _in_pieces(connection, select):
                    fresh.load(table, rows)
            async with asyncio.timeout(_ANSWER_SECONDS):
                routes, prices = await _read_catalog(connection), await _read_prices(connection)
                budgets = book.BudgetBook((), periods.Zones(await _read_zones(connection, None)))
            async for rows in _in_pieces(connection, book.SELECT, {"ids": None}):
                budgets.change((), rows)
        assert row is not None
        self._last, self.keys, self.catalog, self.prices, self.budgets = row[0], fresh, routes, prices, budgets
        self._seen = time.monotonic()
        self.ready.set()

    async def _apply(self, connection: psycopg.AsyncConnection) -> None:
        if await (await connection.execute(_CHANGES, [self._last])).fetchone():
            async with _one_view(connection):
                await self._apply_since(connection)
        self._seen = time.monotonic()

    async def _apply_since(self, connection: psycopg.AsyncConnection) -> None:
        changes = await (await connection.execute(_CHANGES, [self._last])).fetchall()
        touched: dict[str, set[str]] = {}
        for _, table, ref in changes:
            touched.setdefault(table, set()).add(ref)
        parts = {
            table: await _read_part(connection, table, touched[table]) for table in keyring.SELECTS if table in touched
        }
        if catalog.SELECTS.keys() & touched.keys():
            self.catalog = await _read_catalog(connection)
        if "billing_price" in touched:
            self.prices = await _read_prices(connection)
        ids = [int(ref) for ref in touched.get(book.TABLE, ())]
        budgets = await (await connection.execute(book.SELECT, {"ids": ids})).fetchall() if ids else []
        moved = touched.get("tenants_tenant", set())  # a tenant's time zone is the budgets' too
        changes_of_zones = await _read_zones(connection, list(moved)) if moved else []
        for table, rows in parts.items():  # all at once: no request sees a key without its project
            self.keys.load(table, rows, gone=touched[table] - {str(row[0]) for row in rows})
        self.budgets.change(ids, budgets)
        self.budgets.change_zones(moved, changes_of_zones)
        self._last = changes[-1][0]


@asynccontextmanager
async def _one_view(connection: psycopg.AsyncConnection) -> AsyncIterator[None]:
    """A transaction in which all reads see one state of the database."""
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


async def _in_pieces(
    connection: psycopg.AsyncConnection, select: str, values: dict[str, Any] | None = None
) -> AsyncIterator[list[tuple[Any, ...]]]:
    """The rows, some at a time: between these the process serves."""
    async with connection.cursor(name="pieces") as cursor:
        async with asyncio.timeout(_ANSWER_SECONDS):
            await cursor.execute(select, values)
        while True:
            async with asyncio.timeout(_ANSWER_SECONDS):
                rows = await cursor.fetchmany(_PIECE)
            if not rows:
                return
            yield rows


async def _read_part(connection: psycopg.AsyncConnection, table: str, refs: set[str]) -> list[tuple[Any, ...]]:
    select, among = keyring.SELECTS[table]
    return await (await connection.execute(f"{select} AND {among}", [list(refs)])).fetchall()


async def _read_catalog(connection: psycopg.AsyncConnection) -> catalog.Catalog:
    rows = {table: await (await connection.execute(select)).fetchall() for table, select in catalog.SELECTS.items()}
    return catalog.build(rows, _unseal)


async def _read_prices(connection: psycopg.AsyncConnection) -> price_book.PriceBook:
    return price_book.PriceBook(await (await connection.execute(price_book.SELECT)).fetchall())


async def _read_zones(connection: psycopg.AsyncConnection, tenants: list[str] | None) -> list[tuple[Any, ...]]:
    """Of these tenants, or of all."""
    return await (await connection.execute(periods.SELECT, {"tenants": tenants})).fetchall()


def _unseal(sealed: bytes) -> str:
    """A secret that cannot be opened takes its own pool away (engines refuse an empty key), not the catalog."""
    try:
        return sealing.open(sealed)
    except sealing.Unreadable as error:
        log.error("%s", error)
        return ""
