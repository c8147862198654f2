"""What asyncpg raises, and what it becomes."""

import socket
import ssl

import asyncpg
import pytest

from han_solo.errors import DatabaseRefused, DatabaseUnavailable
from han_solo.store import faults

WHERE = "db.example:5432/memory"


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (TimeoutError(), DatabaseUnavailable, "did not answer within 5 s"),
        (ConnectionRefusedError(), DatabaseUnavailable, "Nothing listens"),
        (ConnectionResetError("reset"), DatabaseUnavailable, "does not answer: reset"),
        (socket.gaierror(-2, "unknown"), DatabaseUnavailable, "is not known"),
        (OSError("no route"), DatabaseUnavailable, "does not answer: no route"),
        (asyncpg.CannotConnectNowError("starting up"), DatabaseUnavailable, "starting up"),
        (asyncpg.TooManyConnectionsError("full"), DatabaseUnavailable, "no connection left"),
        (ssl.SSLError(1, "bad certificate"), DatabaseRefused, "No TLS connection"),
        (asyncpg.InvalidPasswordError("wrong"), DatabaseRefused, "user or the password"),
        (asyncpg.InvalidCatalogNameError("none"), DatabaseRefused, "no database"),
        (asyncpg.InsufficientPrivilegeError("no CONNECT"), DatabaseRefused, "no CONNECT"),
        (asyncpg.UndefinedObjectError("parameter"), DatabaseRefused, "parameter"),
        (asyncpg.InterfaceError("sslmode"), DatabaseRefused, "sslmode"),
    ],
)
def test_a_connection_that_can_not_be_made_says_why_and_what_to_do(error, kind, words):
    fault = faults.connect_fault(error, WHERE, 5)
    assert type(fault) is kind
    assert words in fault.message
    assert WHERE in fault.message
    assert fault.hint
    assert fault.retryable is (kind is DatabaseUnavailable)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TimeoutError(), "stopped after 5 s"),
        (asyncpg.QueryCanceledError("canceled"), "stopped after 5 s"),
        (asyncpg.AdminShutdownError("terminating"), "was lost: terminating"),
        (asyncpg.CrashShutdownError("crash"), "was lost: crash"),
        (asyncpg.ConnectionDoesNotExistError("closed"), "was lost: closed"),
        (ConnectionResetError("reset"), "was lost: reset"),
        (asyncpg.InternalClientError("cannot switch to state 11"), "was lost: the server ended it"),
        (asyncpg.DiskFullError("disk"), "out of resources: disk"),
        (asyncpg.ReadOnlySQLTransactionError("standby"), "read-only"),
    ],
)
def test_a_statement_that_the_server_could_not_serve_can_be_tried_again(error, words):
    fault = faults.statement_fault(error, WHERE, 5, closed=False)
    assert type(fault) is DatabaseUnavailable
    assert words in fault.message
    assert fault.retryable


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.UniqueViolationError("double"),
        asyncpg.CheckViolationError("range"),
        asyncpg.PostgresSyntaxError("typo"),
        asyncpg.DataError("wrong type"),
        asyncpg.InterfaceError("another operation is in progress"),
        ValueError("ours"),
    ],
)
def test_bugs_pass_through(error):
    assert faults.statement_fault(error, WHERE, 5, closed=False) is None


def test_misuse_of_a_closed_connection_is_a_lost_one():
    error = asyncpg.InterfaceError("connection is closed")
    assert "was lost" in faults.statement_fault(error, WHERE, 5, closed=True).message


def test_a_lost_commit_is_not_to_be_repeated_unseen():
    fault = faults.commit_unknown(WHERE)
    assert not fault.retryable
    assert "not known whether" in fault.message
    assert DatabaseUnavailable.retryable
