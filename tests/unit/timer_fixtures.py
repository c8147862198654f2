"""An installation and jobs to write timers for, and stand-ins of the programs that keep timers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

from han_solo.declare import Daily, Hourly, JobSpec, When
from han_solo.timers.installation import Installation
from han_solo.timers.model import Ran


async def _work(_context: object) -> dict[str, object]:
    return {}


DAILY = Daily("03:30")
HOURLY = Hourly(5)


def build_job(name: str = "dream", when: When = DAILY) -> JobSpec:
    return JobSpec(name, _work, when, 300.0, 3600.0, False, "Does it.", "test")


def build_installation(home: Path, **changes: str) -> Installation:
    """Build one whose names need every kind of quoting."""
    environment = {"HAN_SOLO_HOME": str(home), "HAN_SOLO_PERSON": 'a "b" \\ 100% $HOME'} | changes
    return Installation(
        home=home,
        interpreter=Path("/opt/my venv/bin/python"),
        zone=ZoneInfo("Europe/Oslo"),
        environment=environment,
        secrets={"HAN_SOLO_DATABASE_URL": "postgresql://u:p@h/d"},
    )


class FakeLaunchctl:
    """Answers as ``launchctl`` does: 113 for a label that is not loaded, 5 where it refuses."""

    def __init__(self) -> None:
        self.loaded: dict[str, str] = {}
        self.disabled: set[str] = set()
        self.running: set[str] = set()
        self.refuses = False

    def __call__(self, argv: Sequence[str]) -> Ran:
        assert argv[0] == "/bin/launchctl"
        verb, target, *rest = argv[1:]
        label = target.rpartition("/")[2]
        if verb == "print":
            if label not in self.loaded:
                return Ran(113, f'Could not find service "{label}" in domain for user gui: 501')
            state = "running" if label in self.running else "not running"
            return Ran(0, f"{target} = {{\n\tstate = {state}\n\tlast exit code = 1\n}}")
        if verb == "enable":
            self.disabled.discard(label)
            return Ran(0, "")
        if verb == "bootstrap":
            name = Path(rest[0]).stem
            if self.refuses or name in self.disabled or name in self.loaded:
                return Ran(5, "Bootstrap failed: 5: Input/output error")
            self.loaded[name] = Path(rest[0]).read_text()
            return Ran(0, "")
        assert verb == "bootout"
        self.loaded.pop(label, None)
        return Ran(0, "")


class FakeSystemctl:
    """What ``systemctl --user`` answers."""

    def __init__(self) -> None:
        self.active: set[str] = set()
        self.running: set[str] = set()
        self.has_session = True
        self.reloads = 0

    def __call__(self, argv: Sequence[str]) -> Ran:
        assert argv[:2] == ["systemctl", "--user"]
        if not self.has_session:
            return Ran(1, "Failed to connect to bus: No medium found")
        verb, *rest = argv[2:]
        if verb == "show":
            unit = rest[0]
            is_active = unit in self.active or unit in self.running
            state = "active" if is_active else "inactive"
            return Ran(0, f"ActiveState={state}\nExecMainStatus=1\nResult=exit-code")
        if verb in {"enable", "restart"}:
            self.active.add(rest[-1])
        elif verb == "daemon-reload":
            self.reloads += 1
        elif verb == "disable":
            self.active.discard(rest[-1])
        return Ran(0, "")
