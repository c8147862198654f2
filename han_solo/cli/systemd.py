"""``han-solo systemd``: have systemd wake the jobs, as units of the user."""

from ..timers.systemd import Systemd
from .timers import build_app

app = build_app(
    "systemd",
    Systemd,
    help="Have systemd wake the jobs (Linux).",
    files="units in ~/.config/systemd/user",
)
