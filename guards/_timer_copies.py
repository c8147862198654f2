"""The copies of the agent's id, the home and the interpreter that stand in the jobs' timers."""

from __future__ import annotations

from collections.abc import Iterator

from han_solo import Finding
from han_solo.timers.model import InstalledTimer, TimersView, is_same_home, is_same_interpreter


def find_timer_copies(view: TimersView, agent_id: str) -> list[Finding]:
    """Return a finding for each timer whose files say something else than is so here.

    Only another agent's id with our home is critical: it is a copy of ours that is wrong. A timer
    of another home serves another installation, and an interpreter can be another one and do.
    """
    return [finding for timer in view.installed for finding in _compare(timer, view, agent_id)]


def _compare(timer: InstalledTimer, view: TimersView, agent_id: str) -> Iterator[Finding]:
    what = f"The {timer.manager} timer of the job {timer.job}"
    mend = f"Run `han-solo {timer.manager} install`, which writes it anew"
    place = ", ".join(str(path) for path in timer.files)
    if timer.fault is not None:
        yield Finding(
            key=f"timer_{timer.job}",
            summary=f"{what} can not be compared: {timer.fault}",
            hint=f"{mend}, or take {place} away.",
        )
        return
    differences = [
        *_differing_home(timer, view),
        *_differing_interpreter(timer, view),
    ]
    is_ours = timer.home is None or is_same_home(timer.home, view.home)
    is_stranger = is_ours and timer.agent_id not in {None, agent_id}
    if is_stranger:
        differences.insert(0, f"its agent is {timer.agent_id}, and here it is {agent_id}")
    if differences:
        takes = f"{mend} (--replace takes over one of another home); its file is {place}."
        yield Finding(
            key=f"timer_{timer.job}",
            summary=f"{what} differs from this installation: {'; '.join(differences)}.",
            hint=takes,
            severity="critical" if is_stranger else "warning",
            detail={"files": [str(path) for path in timer.files], "differences": differences},
        )


def _differing_home(timer: InstalledTimer, view: TimersView) -> Iterator[str]:
    if timer.home is not None and not is_same_home(timer.home, view.home):
        yield f"its home is {timer.home}, and here it is {view.home}"


def _differing_interpreter(timer: InstalledTimer, view: TimersView) -> Iterator[str]:
    if timer.interpreter is None or is_same_interpreter(timer.interpreter, view.interpreter):
        return
    if not timer.interpreter.exists():
        yield f"its interpreter {timer.interpreter} is not there any more, so it can not start"
    else:
        yield f"its interpreter is {timer.interpreter}, and here it is {view.interpreter}"
