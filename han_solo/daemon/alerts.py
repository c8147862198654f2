"""Tell somebody what guards found: in the log, on a Mac's screen, and wherever apprise reaches.

Who calls: the guard runner, after each run. A finding is told once at its opening, and once more
when it becomes critical; all that is due at a moment goes out as one message. What did not go out
is due again later, and nothing that fails here stops the guards.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from pydantic import SecretStr

from .. import logs
from ..errors import AlertFailed, HanSoloError, SettingsError
from ..findings.model import Alert
from ..guard_context import GuardServices

if TYPE_CHECKING:
    from apprise import NotifyBase

SEND_TIMEOUT_S: Final = 20.0
"""For one way of telling; the guards wait for it, and the alert is tried again later anyway."""

MOST_TOLD: Final = 10
"""Findings in one message; the others are counted. A phone shows no more."""

_TRY_HINT: Final = (
    "`apprise -vv -t test -b test URL`, which is installed beside han-solo, says why."
)

_log = logs.get("alerts")


class AlertSender(Protocol):
    """Tells somebody of findings, in one message."""

    async def send(self, alerts: Sequence[Alert]) -> None:
        """Send them.

        Raises:
            HanSoloError: they did not go out everywhere.
        """


class Way(Protocol):
    """One way to tell."""

    @property
    def name(self) -> str:
        """Return its name for the log, without a secret in it."""

    async def tell(self, title: str, text: str, *, is_critical: bool) -> None:
        """Tell it.

        Raises:
            AlertFailed: it did not go out.
        """


async def send_alerts(services: GuardServices, agent_id: str, sender: AlertSender) -> None:
    """Tell of the findings whose alert is due."""
    alerts = await services.findings.claim_alerts(agent_id)
    if not alerts:
        return
    try:
        await sender.send(alerts)
    except HanSoloError as error:
        _log.warning("alert.send_failed", findings=len(alerts), reason=str(error))
    else:
        await services.findings.note_alerted(alerts)


class Alerts:
    """Tells in every way there is; a way that has told a finding is left out when others failed."""

    def __init__(self, agent_name: str, ways: Sequence[Way]) -> None:
        self._agent_name = agent_name
        self._ways = ways
        self._told: dict[str, set[tuple[int, str]]] = {}

    @classmethod
    def connect(cls, agent_name: str, urls: Sequence[SecretStr]) -> Alerts:
        """Make those of the settings, and on a Mac its notifications.

        Raises:
            SettingsError: a URL is none that apprise knows.
        """
        ways: list[Way] = [AppriseWay.parse(url, number) for number, url in enumerate(urls, 1)]
        if sys.platform == "darwin":
            ways.append(MacWay())
        return cls(agent_name, ways)

    async def send(self, alerts: Sequence[Alert]) -> None:
        """Send them in every way.

        Raises:
            AlertFailed: names the ways that failed.
        """
        for alert in alerts:
            row = alert.finding
            log = _log.error if is_urgent(alert) else _log.warning
            log(
                "alert.raised",
                guard=row.guard,
                agent_id=row.agent_id,
                key=row.key,
                severity=row.severity,
                summary=row.summary,
                is_open=row.is_open,
                remedy=alert.remedy and alert.remedy.outcome,
            )
        faults = await asyncio.gather(*(self._tell(way, alerts) for way in self._ways))
        failed = [fault for fault in faults if fault]
        if failed:
            raise AlertFailed(" ".join(failed), hint="It is tried again later.")
        for told in self._told.values():
            told.difference_update(_keys(alerts))

    async def test(self) -> tuple[str, ...]:
        """Send a test message in every way, and return the names of the ways.

        Raises:
            SettingsError: there is no way.
            AlertFailed: names those that failed.
        """
        if not self._ways:
            raise SettingsError(
                "Alerts go nowhere but into the log.",
                hint="Set HAN_SOLO_ALERT_URLS; docs/reference/settings.md says how.",
            )
        title, text = f"{self._agent_name}: a test", "han-solo sends its alerts here."
        faults = [await _send(way, title, text, is_critical=False) for way in self._ways]
        failed = [fault for fault in faults if fault]
        if failed:
            raise AlertFailed(" ".join(failed), hint=_TRY_HINT)
        return tuple(way.name for way in self._ways)

    async def _tell(self, way: Way, alerts: Sequence[Alert]) -> str | None:
        told = self._told.setdefault(way.name, set())
        new = [alert for alert in alerts if not told.issuperset(_keys([alert]))]
        if not new:
            return None
        fault = await _send(
            way,
            build_title(self._agent_name, new),
            build_text(new),
            is_critical=any(is_urgent(alert) for alert in new),
        )
        if fault is None:
            told.update(_keys(new))
        return fault


async def _send(way: Way, title: str, text: str, *, is_critical: bool) -> str | None:
    """Send a message in one way; return what went wrong."""
    try:
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await way.tell(title, text, is_critical=is_critical)
    except HanSoloError as error:
        return error.message
    except TimeoutError:
        return f"{way.name} did not answer within {SEND_TIMEOUT_S:g} s."
    except Exception as error:  # noqa: BLE001 - a loop's edge: no alert may stop the guards
        _log.exception("alert.way_failed", way=way.name)
        return f"{way.name} failed: {type(error).__name__}."
    return None


def _keys(alerts: Sequence[Alert]) -> set[tuple[int, str]]:
    return {(alert.finding.id, alert.finding.severity) for alert in alerts}


def is_urgent(alert: Alert) -> bool:
    """Say whether someone should look now; what was repaired can wait."""
    return alert.finding.is_open and alert.finding.severity == "critical"


def build_title(agent_name: str, alerts: Sequence[Alert]) -> str:
    """Say in a few words how bad it is."""
    still = sum(alert.finding.is_open for alert in alerts)
    critical = sum(map(is_urgent, alerts))
    count = len(alerts)
    what = f"{count} finding{'' if count == 1 else 's'}"
    if not still:
        return f"{agent_name}: {what}, repaired"
    return f"{agent_name}: {what}, {critical} critical" if critical else f"{agent_name}: {what}"


def build_text(alerts: Sequence[Alert]) -> str:
    """Say what was found, the worst first, and what was done or is to be done about it."""
    worst = sorted(
        alerts,
        key=lambda alert: (not alert.finding.is_open, alert.finding.severity, alert.finding.id),
    )
    lines = [_build_line(alert) for alert in worst[:MOST_TOLD]]
    if len(worst) > MOST_TOLD:
        lines.append(f"And {len(worst) - MOST_TOLD} more: han-solo guards list")
    return "\n\n".join(lines)


def _build_line(alert: Alert) -> str:
    row, remedy = alert.finding, alert.remedy
    head = f"[{row.severity}] {row.guard}, {row.opened_at:%Y-%m-%d %H:%M} UTC: {row.summary}"
    if not row.is_open:
        done = remedy.what if remedy and remedy.outcome == "done" else None
        return f"{head}\nRepaired: {done}" if done else f"{head}\nIt is gone again."
    if remedy and remedy.outcome in {"failed", "no_effect"}:
        return f"{head}\nThe remedy did not help: {remedy.what}"
    return f"{head}\n{row.hint}"


class AppriseWay:
    """One URL of apprise: mail, chat, push, webhooks."""

    def __init__(self, service: NotifyBase, name: str) -> None:
        self._service = service
        self.name = name

    @classmethod
    def parse(cls, url: SecretStr, number: int) -> AppriseWay:
        """Parse the URL; nothing is sent.

        Args:
            url: with its secrets, which no message repeats.
            number: its place in the setting.

        Raises:
            SettingsError: apprise can not use it.
        """
        import apprise  # noqa: PLC0415 - a third of a second, for those who alert

        # Its own log lines may quote a URL whole, secrets and all.
        logging.getLogger("apprise").setLevel(logging.CRITICAL)
        service = apprise.Apprise.instantiate(url.get_secret_value())
        if service is None:
            raise SettingsError(
                f"Number {number} of HAN_SOLO_ALERT_URLS is no URL that apprise can use.",
                hint="They are listed at https://github.com/caronc/apprise#supported-notifications",
            )
        return cls(service, f"{service.service_name} (number {number} of HAN_SOLO_ALERT_URLS)")

    async def tell(self, title: str, text: str, *, is_critical: bool) -> None:
        """Send it.

        Raises:
            AlertFailed: the service did not take it.
        """
        from apprise import NotifyType  # noqa: PLC0415 - as above

        kind = NotifyType.FAILURE if is_critical else NotifyType.WARNING
        if not await self._service.async_notify(body=text, title=title, notify_type=kind):
            raise AlertFailed(f"{self.name} did not take the alert.")


class MacWay:
    """A notification on the Mac that this runs on, if somebody is logged in there."""

    name = "the Mac's notifications"

    async def tell(self, title: str, text: str, *, is_critical: bool) -> None:
        """Show it; where nobody is logged in it is only noted: a later try would do no better."""
        sound = ' sound name "Basso"' if is_critical else ""
        script = f"display notification (item 2 of argv) with title (item 1 of argv){sound}"
        process = await asyncio.create_subprocess_exec(
            *("osascript", "-e", "on run argv", "-e", script, "-e", "end run", title, text),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
        if code != 0:
            _log.info("alert.not_shown", way=self.name, exit_code=code)
