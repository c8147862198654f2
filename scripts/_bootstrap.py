"""Set up ``.venv`` from the committed locks, then run a command of it in this process's place.

Called by ``_run`` with any Python 3.11 to 3.13; standard library only. What is already set up is
known by a hash of the lock, the interpreter and the project's metadata, so that a second start
costs nothing. Two starts at once wait for each other.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
VENV = Path(os.environ.get("HAN_SOLO_VENV") or TOP / ".venv")
LOCKS = {"run": "requirements.lock", "dev": "requirements-dev.lock"}


def main() -> int:
    """Set up, then run."""
    try:
        group, command, *arguments = sys.argv[1:]
    except ValueError:
        return fail("usage: _run run|dev COMMAND [ARGUMENT...]")
    VENV.parent.mkdir(parents=True, exist_ok=True)
    with (VENV.parent / f"{VENV.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        problem = set_up(group)
    if problem:
        return fail(problem)
    program = VENV / "bin" / command
    if not program.exists():
        return fail(f"there is no command {command} in {VENV / 'bin'}.")
    environment = {**os.environ, "HAN_SOLO_PROGRAM": os.environ.get("HAN_SOLO_PROGRAM", command)}
    os.execve(program, [str(program), *arguments], environment)  # noqa: S606 - replaces us
    return 1


def set_up(group: str) -> str | None:
    """Bring ``.venv`` to the lock; return what went wrong, if anything did."""
    if is_set_up(group) or (group == "run" and is_set_up("dev")):  # dev holds all that run does
        return None
    lock = TOP / LOCKS[group]
    say("Setting up han-solo in .venv; this happens once and takes about half a minute.")
    python = VENV / "bin" / "python"
    if not works(python):
        made = run([sys.executable, "-m", "venv", "--clear", str(VENV)])
        if made.returncode:
            return (
                f"{sys.executable} can not make a virtual environment: {last_line(made)}\n"
                "       Install its venv module (Debian: apt install python3-venv) and try again."
            )
    uv = [str(VENV / "bin/uv"), "pip", "install", "--python", str(python)]
    quiet = "--color=never" if sys.stderr.isatty() else "--quiet"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
    steps = [
        [*pip, "-r", str(TOP / "scripts" / "uv.lock")],
        [*uv, quiet, "--require-hashes", "-r", str(lock)],
        [*uv, "--quiet", "--no-deps", "--no-build-isolation", "--editable", str(TOP)],
    ]
    if works(VENV / "bin/uv"):
        steps.pop(0)
    for step in steps:
        done = run(step, show=sys.stderr.isatty())
        if done.returncode:
            return (
                f"the packages of {lock.name} could not be installed: {last_line(done)}\n"
                "       See that the package registry is reached (PIP_INDEX_URL and\n"
                "       UV_DEFAULT_INDEX name another one), then try again; nothing is lost."
            )
    (VENV / f".han-solo-{group}").write_text(fingerprint(lock))
    return None


def is_set_up(group: str) -> bool:
    """Say whether the environment was brought to this lock, by this Python, for this folder."""
    marker = VENV / f".han-solo-{group}"
    if not (marker.is_file() and (VENV / "bin/python").exists()):
        return False
    return marker.read_text() == fingerprint(TOP / LOCKS[group])


def fingerprint(lock: Path) -> str:
    """Return what the environment depends on, as a hash."""
    digest = hashlib.sha256(sys.version.encode())
    for path in (lock, TOP / "pyproject.toml", TOP / "scripts" / "uv.lock"):
        digest.update(path.read_bytes())
    digest.update(str(TOP).encode())  # an editable install points at this folder
    return digest.hexdigest()


def works(program: Path) -> bool:
    """Say whether the program starts and, when it is a Python, is of this version."""
    if not program.exists():
        return False
    if program.name != "python":
        return run([str(program), "--version"]).returncode == 0
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return run([str(program), "-c", code]).stdout.strip() == here


def run(command: list[str], *, show: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command; with ``show``, what it does is told on one line of our terminal."""
    environment = dict(os.environ)
    environment.pop("PYTHONHOME", None)
    environment.pop("PYTHONPATH", None)
    environment.setdefault("UV_PYTHON_DOWNLOADS", "never")
    environment.setdefault("UV_NO_CONFIG", "1")
    environment.setdefault("UV_SYSTEM_CERTS", "1")  # as pip does: a proxy's own authority counts
    index = environment.get("PIP_INDEX_URL")
    if index:  # a machine with a mirror has told pip of it; uv is to use the same one
        environment.setdefault("UV_DEFAULT_INDEX", index)
    pipe = subprocess.PIPE
    try:
        if show:
            return run_shown(command, environment)
        return subprocess.run(
            command, env=environment, stdout=pipe, stderr=pipe, text=True, check=False
        )
    except OSError as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def run_shown(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command whose lines overwrite each other; uv's list of all packages is left out."""
    lines = []
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if not line.startswith((" + ", " - ", " ~ ")):
                width = shutil.get_terminal_size().columns - 1
                print(f"\r\033[K{line.strip()[:width]}", end="", file=sys.stderr, flush=True)
    print("\r\033[K", end="", file=sys.stderr, flush=True)
    return subprocess.CompletedProcess(command, process.returncode, "", "".join(lines))


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the line that says most about a failure."""
    lines = [line for line in (done.stderr or done.stdout or "").splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"exit code {done.returncode}"


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def fail(sentence: str) -> int:
    say(f"error: {sentence}")
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("Stopped; the next start goes on from here.")
        sys.exit(130)
