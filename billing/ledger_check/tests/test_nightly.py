"""The check that runs by itself is kept, and says loudly what it found."""

import logging
from pathlib import Path

import pytest

from billing.ledger_check import nightly
from billing.ledger_check.tests.books import damage, make_cast, priced_event, set_price, settle
from billing.models import LedgerCheckRun
from billing.tests.stream import connect

pytestmark = pytest.mark.django_db


def ran(tmp_path: Path) -> LedgerCheckRun:
    with connect() as client:
        run = nightly.check(client, spool=tmp_path)
        assert client.get(nightly.DIFFERENCES) == b"%d" % run.differences
    return LedgerCheckRun.objects.first() or pytest.fail("nothing was kept")


def test_it_keeps_what_it_found(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_cast()
    settle(priced_event(set_price()))
    run = ran(tmp_path)
    assert (run.differences, run.report["verdict"]["clean"]) == (0, True)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    damage("UPDATE billing_usagehour SET requests = 2")
    run = ran(tmp_path)
    assert run.differences == 2  # from the records, and from the day
    assert "requests: records 1, hour 2" in caplog.text
    assert LedgerCheckRun.objects.count() == 2
