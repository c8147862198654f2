"""The daemon's part in model switches: it brings to an end what a killed one left."""

from __future__ import annotations

import asyncio
from typing import Final

from .. import logs
from ..errors import HanSoloError
from ..reconcile.services import ReconcileServices
from ..reconcile.switch.settle import settle_left
from ..stopping import wait_for
from .lease import Lead

EVERY_S: Final = 15.0
"""An agent between two models may be mute, so it is looked for often; a look is two small reads."""

_log = logs.get("daemon")


async def settle_switches(services: ReconcileServices, lead: Lead, stop: asyncio.Event) -> None:
    """Look at once and then now and again, while the lead is held."""
    is_told = False
    while not stop.is_set() and lead.is_held:
        try:
            await settle_left(services)
            is_told = False
        except HanSoloError as error:  # Letta or Postgres is away: the next look tries again
            if not is_told:
                _log.warning("daemon.switch_not_settled", reason=str(error))
            is_told = True
        except Exception:  # noqa: BLE001 - a loop's edge: told with its traceback, and it goes on
            _log.exception("daemon.switch_fault")
        await wait_for(stop, lead.lost, timeout_s=EVERY_S)
