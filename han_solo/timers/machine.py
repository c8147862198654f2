"""The zone of the machine's own clock, which launchd goes by whatever ``TZ`` says in a shell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import tzlocal

from ..errors import TimerError

_LOCALTIME: Final = Path("/etc/localtime")


def read_machine_zone(localtime: Path = _LOCALTIME) -> ZoneInfo:
    """Return the zone of the machine's clock.

    Raises:
        TimerError: it has no name that is known here.
    """
    try:
        if not os.environ.get("TZ"):
            return ZoneInfo(tzlocal.get_localzone_name())
        _, found, name = str(localtime.resolve()).rpartition("/zoneinfo/")
        return ZoneInfo(name if found else "UTC" if not localtime.exists() else "?")
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise TimerError(
            "The zone of this machine's clock can not be told, and launchd goes by it.",
            hint="Unset TZ in this shell, choose the zone in the system's settings, and try again.",
        ) from error
