"""The screens' connections to the database are kept, and shared between requests."""

import os
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg

from headrace_dev.testing.web import WebProcess

ASKED, MOST = 60, 20


def test_many_requests_share_a_few_connections(quick_web: WebProcess) -> None:
    def ask(number: int) -> int:
        # Somebody's session, which the database does not know.
        cookies = {"sessionid": f"{number:032d}"}
        return httpx.get(f"{quick_web.url}/admin/", cookies=cookies, timeout=30, trust_env=False).status_code

    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:  # of one who may look at others'
        (began,) = connection.execute("SELECT clock_timestamp()").fetchone() or ()
        with ThreadPoolExecutor(10) as pool:
            assert set(pool.map(ask, range(ASKED))) == {302}  # to where one signs in
        found = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_start > %s", [began]
        )
        (kept,) = found.fetchone() or ()
    assert 0 < kept <= MOST
