"""The pytest plugin (`-p headrace_dev.testing.plugin`): the session's own servers, up before Django reads its settings.

With `-n`, each of xdist's workers is a session of its own: it has its own servers, and the process they report to none.
"""

import argparse
import os
from collections.abc import Generator

import hypothesis
import pytest
from hypothesis import HealthCheck

from headrace_dev.testing.stores import Services

SERVICES = pytest.StashKey[Services]()
_OPERATORS_OWN = ("DATABASE_OWNER_URL", "DATABASE_APP_URL", "HEADRACE_PORT")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """A wrapper, so that it runs before pytest-django, which reads the settings in the same hook."""
    services = Services()
    early_config.stash[SERVICES] = services
    early_config.add_cleanup(services.stop)
    for name in _OPERATORS_OWN:
        os.environ.pop(name, None)
    os.environ.update(services.environment())
    if _runs_tests(early_config.known_args_namespace):
        services.start()
    yield


def _runs_tests(options: argparse.Namespace) -> bool:
    if options.collectonly or options.help or options.version:
        return False
    if "PYTEST_XDIST_WORKER" in os.environ or not getattr(options, "numprocesses", None):
        return True
    os.environ["PYTEST_PLUGINS"] = __name__  # a worker reads no `-p` before Django reads its settings
    return False


def pytest_configure(config: pytest.Config) -> None:
    # How long an example takes says how busy the machine is, not whether it is right.
    hypothesis.settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    hypothesis.settings.load_profile("untimed")
    # Registered here, after pytest-django, so that this `django_db_setup` replaces its own.
    config.pluginmanager.import_plugin("headrace_dev.testing.fixtures")
