"""Errors of the database, and of what it holds."""

from __future__ import annotations

from .base import HanSoloError


class StoreError(HanSoloError):
    """Postgres, or what it holds."""


class TokenChanged(StoreError):
    """Somebody else rotated or revoked the token at the same moment; nothing was changed."""


class DatabaseUnavailable(StoreError):
    """Postgres does not answer. Nothing was written, unless the error says otherwise."""

    retryable = True


class DatabaseRefused(DatabaseUnavailable):
    """Postgres answers, and refuses us; it will do so again until someone mends it."""

    retryable = False


class ReconcileBusy(StoreError):
    """Another process has held the agent's reconcile lock for too long. Nothing was done."""

    retryable = True


class SchemaNewer(StoreError):
    """The database was migrated by a newer han-solo than this one."""


class MigrationChanged(StoreError):
    """A migration that was already applied differs from the one in this release."""


class NotFound(StoreError):
    """No row of that id."""
