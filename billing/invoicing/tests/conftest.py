import pytest

from billing.invoicing.tests.making import make_customer, make_price, make_seller
from billing.models import LegalEntity, Price
from tenants.models import Tenant


@pytest.fixture
def north(db: None) -> LegalEntity:
    return make_seller()


@pytest.fixture
def acme(north: LegalEntity) -> Tenant:
    return make_customer("acme", north, time_zone="Europe/Berlin")


@pytest.fixture
def price(db: None) -> Price:
    """Of model demo in EUR: 0.5, 0.1 and 2 per million."""
    return make_price()
