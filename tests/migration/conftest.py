"""Migrations begin with an empty database; other tests are given one that is migrated."""

import pytest


@pytest.fixture
def database_url(empty_database_url):
    return empty_database_url
