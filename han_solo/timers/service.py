"""Install, remove and compare the timers of all jobs, with launchd or systemd alike.

Nothing counts as installed before its manager shows it. Timers of another installation, known by
its home, are never touched unless that is asked for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ..declare import JobSpec
from ..errors import TimerError
from ..home import write_private_bytes
from .installation import Installation
from .model import InstalledTimer, Loaded, Manager, TimersView, is_same_home

Did = Literal["installed", "replaced", "unchanged", "removed"]
Stands = Literal["as declared", "differs", "not loaded", "missing", "not declared", "another home"]


@dataclass(frozen=True, slots=True)
class Change:
    """What was done about the timer of one job."""

    job: str
    did: Did
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class TimerStatus:
    """How the timer of one job stands against its declaration."""

    job: str
    stands: Stands
    loaded: Loaded
    files: tuple[Path, ...]


def install(
    manager: Manager,
    jobs: Sequence[JobSpec],
    installation: Installation,
    *,
    declared: Iterable[str],
    replace: bool = False,
) -> tuple[Change, ...]:
    """Write and load the timers of jobs; those that are so already are left alone.

    Args:
        manager: launchd or systemd.
        jobs: those to install.
        installation: what they run.
        declared: the names of all jobs; timers of ours for others are removed.
        replace: also take over timers of another installation.

    Raises:
        TimerError: this is not the manager's system, a timer is another installation's, a job that
            would be written anew runs now, or the manager did not take it.
    """
    manager.require()
    installed = {timer.job: timer for timer in manager.find_installed()}
    if not replace:
        _refuse_others(manager, jobs, installed, installation)
    installation.prepare()
    changes = [_install_one(manager, spec, installation) for spec in jobs]
    known = set(declared)
    for job, timer in installed.items():
        if job not in known and timer.home and is_same_home(timer.home, installation.home):
            changes.append(_remove(manager, timer))
    return tuple(changes)


def uninstall(
    manager: Manager, jobs: Iterable[str] | None, installation: Installation
) -> tuple[Change, ...]:
    """Unload and remove the timers of this installation; of all jobs, or of those named."""
    manager.require()
    chosen = None if jobs is None else set(jobs)
    changes = [
        _remove(manager, timer)
        for timer in manager.find_installed()
        if (chosen is None or timer.job in chosen)
        and (timer.home is None or is_same_home(timer.home, installation.home))
    ]
    if not any(
        timer.home and is_same_home(timer.home, installation.home)
        for timer in manager.find_installed()
    ):
        installation.secrets_file.unlink(missing_ok=True)
    return tuple(changes)


def compare(
    manager: Manager, jobs: Iterable[JobSpec], installation: Installation
) -> tuple[TimerStatus, ...]:
    """Say how every timer stands: those of declared jobs, and those that nobody declares."""
    manager.require()
    specs = {spec.name: spec for spec in jobs}
    installed = {timer.job: timer for timer in manager.find_installed()}
    found = []
    for job in sorted({*specs, *installed}):
        loaded = manager.ask(job)
        timer = installed.get(job)
        stands = _stands(manager, specs.get(job), timer, loaded, installation)
        found.append(TimerStatus(job, stands, loaded, timer.files if timer else ()))
    return tuple(found)


def look(manager: Manager, home: Path, interpreter: Path) -> TimersView:
    """Return what is installed, beside who looks; reads files and asks no manager."""
    return TimersView(home, interpreter, manager.find_installed())


def _stands(
    manager: Manager,
    spec: JobSpec | None,
    timer: InstalledTimer | None,
    loaded: Loaded,
    installation: Installation,
) -> Stands:
    if timer is None:
        return "missing"
    if timer.home is not None and not is_same_home(timer.home, installation.home):
        return "another home"
    if spec is None:
        return "not declared"
    rendered = manager.render(spec, installation)
    if not (_is_written(rendered) and installation.has_written_secrets()):
        return "differs"
    return "as declared" if loaded.is_loaded else "not loaded"


def _install_one(manager: Manager, spec: JobSpec, installation: Installation) -> Change:
    rendered = manager.render(spec, installation)
    loaded = manager.ask(spec.name)
    if _is_written(rendered) and loaded.is_loaded:
        return Change(spec.name, "unchanged", tuple(rendered))
    if loaded.is_running:
        raise TimerError(
            f"The job {spec.name} runs now, and {manager.name} would stop it.",
            hint="Wait until it is done (`han-solo jobs list`), and install again.",
        )
    was_there = any(path.exists() for path in rendered)
    for path, content in rendered.items():
        with _files_of(manager, path):
            write_private_bytes(path, content)
    if loaded.is_loaded:
        manager.unload(spec.name)
    manager.load(spec.name)
    return Change(spec.name, "replaced" if was_there else "installed", tuple(rendered))


def _remove(manager: Manager, timer: InstalledTimer) -> Change:
    if manager.ask(timer.job).is_loaded:
        manager.unload(timer.job)
    for path in timer.files:
        with _files_of(manager, path):
            path.unlink(missing_ok=True)
    manager.forget()
    return Change(timer.job, "removed", timer.files)


@contextlib.contextmanager
def _files_of(manager: Manager, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TimerError(
            f"{path} can not be changed: {error.strerror}.",
            hint=f"{path.parent} has to be yours (`ls -ld` shows whose it is); then do it again. "
            f"`han-solo {manager.name} status` shows what is so now.",
        ) from error


def _refuse_others(
    manager: Manager,
    jobs: Iterable[JobSpec],
    installed: Mapping[str, InstalledTimer],
    installation: Installation,
) -> None:
    for spec in jobs:
        timer = installed.get(spec.name)
        if timer and timer.home and not is_same_home(timer.home, installation.home):
            raise TimerError(
                f"{timer.files[0]} runs the job {spec.name} of another installation, {timer.home}.",
                hint=f"`han-solo {manager.name} install --replace` takes it over.",
            )


def _is_written(rendered: Mapping[Path, bytes]) -> bool:
    return all(path.is_file() and path.read_bytes() == text for path, text in rendered.items())


ADVICE: Final[Mapping[Stands, str]] = {
    "differs": "install writes it anew",
    "not loaded": "install loads it",
    "missing": "install makes it",
    "not declared": "install takes it away",
    "another home": "install --replace takes it over",
}
"""What mends each way in which a timer can stand otherwise than it should."""
