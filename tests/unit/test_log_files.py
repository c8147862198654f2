"""The file that a timer's process prints into: all of it, set aside when it has grown."""

from __future__ import annotations

import stat
import subprocess
import sys

import pytest

from han_solo.errors import SettingsError
from han_solo.log_files import write_output_to

_PRINT = (
    "import os, sys; from pathlib import Path; from han_solo.log_files import write_output_to\n"
    "write_output_to(Path(sys.argv[1]), max_bytes=100)\n"
    "print('printed ' + sys.argv[2]); os.write(2, b'from below\\n'); raise SystemExit('at last')\n"
)


def run(path, word):
    """Run a process whose output launchd would have pointed at the file."""
    with path.open("ab") as opened:
        subprocess.run(
            [sys.executable, "-c", _PRINT, path, word], stdout=opened, stderr=opened, check=False
        )


def test_both_streams_are_appended_to_a_file_for_its_owner_alone(tmp_path):
    path = tmp_path / "job.log"
    run(path, "one")
    run(path, "two")
    text = path.read_text()
    assert text.index("printed one") < text.index("printed two")
    assert text.count("from below") == text.count("at last") == 2


def test_a_file_that_grew_is_set_aside_and_five_are_kept(tmp_path):
    path = tmp_path / "job.log"
    for number in range(8):
        run(path, f"{number} {'x' * 100}")
    names = sorted(child.name for child in tmp_path.iterdir())
    assert names == ["job.log", *(f"job.log.{number}" for number in range(1, 6))]
    assert "printed 7" in path.read_text()
    assert "printed 2" in (tmp_path / "job.log.5").read_text()


def test_a_new_file_is_0600(tmp_path):
    path = tmp_path / "logs" / "job.log"
    subprocess.run([sys.executable, "-c", _PRINT, path, "x"], check=False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_can_not_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="can not be written"):
        write_output_to(tmp_path / "file" / "job.log")
