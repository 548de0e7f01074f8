"""The screens' connections to the database: kept, shared between requests, each with the role it is meant for."""

from concurrent.futures import ThreadPoolExecutor

import httpx
from django.db import connection

from headrace.testing.web import WebProcess

ASKED, MOST = 60, 8


def test_many_requests_share_a_few_connections(quick_web: WebProcess) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (began,) = cursor.fetchone()

    def ask(number: int) -> int:
        # Somebody's session, which the database does not know.
        cookies = {"sessionid": f"{number:032d}"}
        return httpx.get(f"{quick_web.url}/admin/", cookies=cookies, timeout=30, trust_env=False).status_code

    with ThreadPoolExecutor(10) as pool:
        assert set(pool.map(ask, range(ASKED))) == {302}  # to where one signs in
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_start > %s", [began]
        )
        (kept,) = cursor.fetchone()
    assert 0 < kept <= MOST
