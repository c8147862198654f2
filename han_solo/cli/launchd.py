"""``han-solo launchd``: have launchd wake the jobs, on a Mac."""

from ..timers.launchd import Launchd
from .timers import build_app

app = build_app(
    "launchd",
    Launchd,
    help="Have launchd wake the jobs (macOS).",
    files="plists in ~/Library/LaunchAgents",
)
