"""What would keep the event loop from everybody else is done before it runs, or not at all."""

import os
import subprocess
import sys
from io import BytesIO

import pytest

from headrace.server.daphne_request import BoundedRequest
from headrace_dev.testing.web import ROOT

_ASK = "import sys, headrace.asgi; print('headrace.portal.views.overview' in sys.modules)"


@pytest.mark.parametrize(("serve", "expected"), [("all", "True"), ("screens", "True"), ("data", "False")])
def test_screens_are_imported_before_the_first_is_asked_for(serve: str, expected: str) -> None:
    environment = {**os.environ, "HEADRACE_SERVE": serve, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}"}
    done = subprocess.run([sys.executable, "-c", _ASK], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.strip() == expected


@pytest.mark.parametrize("length", [None, 50_000, 500_000])
def test_a_body_under_daphne_is_kept_in_memory(length: int | None) -> None:
    request = BoundedRequest.__new__(BoundedRequest)
    request.gotLength(length)
    assert isinstance(request.content, BytesIO)
