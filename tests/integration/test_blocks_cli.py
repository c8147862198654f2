"""``han-solo blocks`` as an operator runs it, on the real Letta and Postgres."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from han_solo.letta.gateway import LettaGateway
from tests.servers import LettaServer

MODEL = "openai-proxy/rehearsal"
MAIN = "from han_solo.cli.main import main; main()"
UNUSUAL = "\ufeff One.\r\nTwo \U0001f469\u200d\U0001f680  \n\tend "

SPEC = """
[agent]
name = "ren"
person = "Scott"

[model]
handle = "openai-proxy/rehearsal"

[system]
text = "You are {agent}."

[[blocks]]
label = "notes"
limit = 200
seed = "One.\\nTwo."

[[blocks]]
label = "voice"
limit = 100
writers = ["agent"]
"""


@dataclass
class Desk:
    """Where the operator sits: the commands, and the agent's blocks as Letta has them."""

    environment: dict[str, str]
    folder: Path
    gateway: LettaGateway
    agent_id: str

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, "blocks", *arguments],
            **(
                {
                    "env": self.environment | options.pop("env", {}),
                    "cwd": self.folder,
                    "stdin": subprocess.PIPE,
                    "stdout": subprocess.PIPE,
                    "stderr": subprocess.PIPE,
                    "text": True,
                }
                | options
            ),
        )

    def run(self, *arguments: str, text: str = "", **options: Any) -> tuple[int, str, str]:
        """Run a command and return its exit code, stdout and stderr."""
        process = self.start(*arguments, **options)
        out, err = process.communicate(text, timeout=120)
        return process.returncode, out, err

    def ask(self, *arguments: str, **options: Any) -> Any:
        """Run a command that must succeed with ``--json``, and return what it said."""
        code, out, err = self.run(*arguments, "--json", **options)
        assert code == 0, err
        return json.loads(out)

    def editor(self, code: str) -> dict[str, str]:
        """Return an environment in which Python code is the editor; ``path`` is the file."""
        script = self.folder / f"editor-{uuid.uuid4().hex}.py"
        script.write_text(
            f"import sys, pathlib, subprocess\npath = pathlib.Path(sys.argv[1])\n{code}"
        )
        return {"EDITOR": f"{sys.executable} {script}"}

    async def live(self, label: str) -> str:
        block = (await self.gateway.fetch_agent(self.agent_id)).block(label)
        assert block is not None
        return block.value

    async def write_around(self, label: str, value: str) -> None:
        """Write a block as someone does who knows nothing of han-solo."""
        block = (await self.gateway.fetch_agent(self.agent_id)).block(label)
        assert block is not None
        await self.gateway.write_block(block.id, value)


@pytest.fixture
async def desk(letta_server: LettaServer, database_url: str, tmp_path: Path) -> AsyncIterator[Desk]:
    spec = tmp_path / "ren.toml"
    spec.write_text(SPEC)
    drafts = tmp_path / "drafts"
    drafts.mkdir()
    async with LettaGateway.connect(letta_server.base_url, letta_server.password) as gateway:
        made = [
            await gateway.create_block("notes", "One.\nTwo.", limit=200, description="Notes."),
            await gateway.create_block("voice", "Warm.", limit=100),
            await gateway.create_block("fixed", "Fixed.", limit=100, read_only=True),
        ]
        agent = await gateway.create_agent(
            name=f"ren-{uuid.uuid4().hex}", model=MODEL, block_ids=[block.id for block in made]
        )
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "TMPDIR": str(drafts),
            "USER": "scott",
            "LOGNAME": "scott",
            "COLUMNS": "100",
            "HAN_SOLO_HOME": str(tmp_path / "home"),
            "HAN_SOLO_DATABASE_URL": database_url,
            "HAN_SOLO_LETTA_BASE_URL": letta_server.base_url,
            "HAN_SOLO_LETTA_PASSWORD": letta_server.password,
            "HAN_SOLO_AGENT_ID": agent.id,
            "HAN_SOLO_AGENT_SPEC": str(spec),
        }
        yield Desk(environment, tmp_path, gateway, agent.id)


# Writing and reading


async def test_a_text_goes_in_and_out_to_the_byte(desk: Desk) -> None:
    file = desk.folder / "text"
    file.write_bytes(UNUSUAL.encode())
    code, out, _ = desk.run("write", "notes", str(file), "--reason", "why not")
    assert code == 0
    said = f"notes is at version 2, {len(UNUSUAL)} of 200 characters, read back."
    assert out.splitlines()[-1] == said
    assert await desk.live("notes") == UNUSUAL
    process = desk.start("show", "notes", "--raw", text=False)
    raw, _ = process.communicate(timeout=120)
    assert raw.decode() == UNUSUAL
    assert desk.ask("show", "notes")["value"] == UNUSUAL
    assert desk.ask("show", "notes", "--version", "1")["value"] == "One.\nTwo."
    entry = desk.ask("history", "notes")[0]
    assert {key: entry[key] for key in ("number", "author", "author_kind", "reason", "origin")} == {
        "number": 2,
        "author": "scott",
        "author_kind": "operator",
        "reason": "why not",
        "origin": "write",
    }


async def test_a_text_is_read_from_stdin_and_written_once(desk: Desk) -> None:
    written = desk.ask("write", "notes", "-", text="new")
    assert written == {
        "label": "notes",
        "block_id": written["block_id"],
        "version": 2,
        "changed": True,
        "sha256": written["sha256"],
        "length": 3,
        "limit": 200,
        "events": written["events"],
    }
    again = desk.ask("write", "notes", text="new")
    assert (again["version"], again["changed"], again["events"]) == (2, False, [])
    assert desk.run("write", "notes", text="new")[1].startswith("Nothing was changed: notes")


def test_the_text_alone_is_on_stdout(desk: Desk) -> None:
    code, out, err = desk.run("show", "notes")
    assert (code, out) == (0, "One.\nTwo.\n")
    assert "notes: not a version yet, 9 of 200 characters" in err


async def test_the_list_shows_fill_version_and_last_author(desk: Desk) -> None:
    desk.ask("write", "notes", text="x" * 190)
    await desk.write_around("voice", "Cold.")
    listed = {block["label"]: block for block in desk.ask("list")}
    assert list(listed) == ["fixed", "notes", "voice"]
    notes = listed["notes"]
    assert (notes["version"], notes["length"], notes["limit"]) == (2, 190, 200)
    assert (notes["last"]["author"], notes["last"]["number"]) == ("scott", 2)
    assert listed["voice"]["writers"] == ["agent"]
    assert listed["fixed"]["read_only"] is True
    assert (listed["fixed"]["version"], listed["fixed"]["last"]) == (None, None)
    shown = desk.run("list")[1]
    assert "190 of 200" in shown
    assert "scott" in shown
    assert "█" in shown


def test_a_restore_is_a_new_version(desk: Desk) -> None:
    desk.ask("write", "notes", text="second")
    restored = desk.ask("restore", "notes", "1")
    assert (restored["version"], restored["changed"]) == (3, True)
    assert desk.ask("show", "notes")["value"] == "One.\nTwo."
    newest = desk.ask("history", "notes", "--limit", "1")
    assert [(entry["origin"], entry["source"]) for entry in newest] == [("restored", 1)]


def test_a_diff_is_of_the_last_two_unless_told_otherwise(desk: Desk) -> None:
    desk.ask("write", "notes", text="One.\nTwo and more.")
    desk.ask("write", "notes", text="One.\nTwo and more.\nThree.\n")
    last = desk.ask("diff", "notes")
    assert (last["from"]["number"], last["to"]["number"]) == (2, 3)
    assert (last["added"], last["removed"]) == (2, 1)
    whole = desk.ask("diff", "notes", "1")
    assert (whole["from"]["number"], whole["to"]["number"]) == (1, 3)
    code, out, _ = desk.run("diff", "notes", "1", "2")
    assert code == 0
    assert out.splitlines() == [
        "--- notes version 1",
        "+++ notes version 2",
        "@@ -1,2 +1,2 @@",
        " One.",
        "-Two.",
        "\\ No newline at end of text",
        "+Two and more.",
        "\\ No newline at end of text",
    ]
    assert "hold the same text" in desk.run("diff", "notes", "2", "2")[2]


def test_the_history_is_paged(desk: Desk) -> None:
    for number in range(4):
        desk.ask("write", "notes", text=f"text {number}")
    first = desk.ask("history", "notes", "--limit", "2")
    assert [entry["number"] for entry in first] == [5, 4]
    rest = desk.ask("history", "notes", "--limit", "9", "--before", "4")
    assert [entry["number"] for entry in rest] == [3, 2, 1]
    _, out, err = desk.run("history", "notes", "--limit", "2")
    assert "blocks history notes --before 4" in err
    assert len(out.splitlines()) == 3


# Editing


async def test_an_edit_is_written_with_its_reason(desk: Desk) -> None:
    editor = desk.editor("path.write_text(path.read_text() + '\\nThree.\\n')")
    code, _, err = desk.run("edit", "notes", "--reason", "by hand", env=editor)
    assert code == 0, err
    assert await desk.live("notes") == "One.\nTwo.\nThree."
    assert desk.ask("history", "notes")[0]["reason"] == "by hand"
    assert list((desk.folder / "drafts").iterdir()) == []


async def test_an_edit_that_changes_nothing_writes_nothing(desk: Desk) -> None:
    editor = desk.editor("path.write_text(path.read_text() + '\\n')")
    edited = desk.ask("edit", "notes", env=editor)
    assert (edited["changed"], edited["version"], edited["events"]) == (False, 1, [])
    assert len(desk.ask("history", "notes")) == 1
    assert list((desk.folder / "drafts").iterdir()) == []


async def test_an_edit_does_not_overwrite_what_was_written_meanwhile(desk: Desk) -> None:
    desk.ask("write", "notes", text="first")
    write = [sys.executable, "-c", MAIN, "blocks", "write", "notes"]
    editor = desk.editor(
        f"subprocess.run({write!r}, input=b'theirs', check=True, stdout=subprocess.DEVNULL)\n"
        "path.write_text('mine')"
    )
    code, out, err = desk.run("edit", "notes", env=editor)
    assert (code, out) == (2, "")
    assert "is at version 3, not at version 2" in err
    (kept,) = (desk.folder / "drafts").glob("*/notes.md")
    assert str(kept) in err
    assert kept.read_text() == "mine"
    assert await desk.live("notes") == "theirs"
    assert desk.ask("write", "notes", str(kept))["version"] == 4


async def test_an_edit_around_us_meanwhile_is_not_overwritten_either(desk: Desk) -> None:
    editor = desk.editor("path.write_text('mine')\nsys.stdin.read()")
    editing = desk.start("edit", "notes", env=editor)
    async with asyncio.timeout(60):
        while not list((desk.folder / "drafts").glob("*/notes.md")):
            await asyncio.sleep(0.05)
    await desk.write_around("notes", "outside")
    _, err = editing.communicate("", timeout=120)
    assert editing.returncode == 2
    assert "Your text is kept in" in err
    assert await desk.live("notes") == "outside"


async def test_an_edit_that_is_too_long_is_refused_with_numbers_and_kept(desk: Desk) -> None:
    editor = desk.editor("path.write_text('x' * 250)")
    code, _, err = desk.run("edit", "notes", env=editor)
    assert code == 2
    assert "250 characters, 50 more than its limit of 200" in err
    (kept,) = (desk.folder / "drafts").glob("*/notes.md")
    assert str(kept) in err
    assert await desk.live("notes") == "One.\nTwo."


@pytest.mark.parametrize(
    ("label", "words"), [("fixed", "is read-only"), ("voice", "is written by agent only")]
)
def test_an_editor_is_not_opened_for_what_can_not_be_written(
    desk: Desk, label: str, words: str
) -> None:
    editor = desk.editor("pathlib.Path('opened').touch()")
    code, _, err = desk.run("edit", label, env=editor)
    assert code == 2
    assert words in err
    assert not (desk.folder / "opened").exists()


# Watching


async def test_watch_adopts_outside_edits_and_puts_reverts_right(desk: Desk) -> None:
    desk.ask("write", "notes", text="first")
    desk.ask("write", "notes", text="second")
    assert desk.run("watch", "--once")[0] == 0
    await desk.write_around("notes", "from outside")
    code, out, _ = desk.run("watch", "--once", "--json")
    assert code == 3
    (found,) = [json.loads(line) for line in out.splitlines()]
    assert (found["label"], found["event"]["kind"], found["event"]["version"]) == (
        "notes",
        "adopted",
        4,
    )
    await desk.write_around("notes", "first")
    code, out, _ = desk.run("watch", "--once")
    assert code == 3
    assert "repaired notes" in out
    assert await desk.live("notes") == "from outside"
    assert desk.run("watch", "--once")[:2] == (0, "")


async def test_watch_tells_what_is_written_until_it_is_interrupted(desk: Desk) -> None:
    watching = desk.start("watch", "notes", "--interval", "0.1")
    assert watching.stderr is not None
    assert watching.stdout is not None
    assert "1 block looked at" in await asyncio.to_thread(watching.stderr.readline)
    desk.ask("write", "notes", "--reason", "news", text="second")
    line = await asyncio.to_thread(watching.stdout.readline)
    if "first" in line:  # the first look made version 1
        line = await asyncio.to_thread(watching.stdout.readline)
    assert "notes version 2, 6 characters, written by scott (operator)" in line
    assert "news" in line
    watching.send_signal(signal.SIGINT)
    _, err = watching.communicate(timeout=60)
    assert watching.returncode == 130
    assert "Traceback" not in err


# Refusals


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "nope"), "has no core block 'nope'"),
        (("show", "nope"), "It has: fixed, notes, voice."),
        (("show", "notes", "--version", "9"), "has no version 9"),
        (("history", "nope"), "has no core block 'nope'"),
        (("diff", "notes"), "so there is nothing to compare"),
        (("diff", "notes", "1", "9"), "has no version 1"),
        (("restore", "notes", "9"), "has no version 9"),
        (("write", "nope"), "has no core block 'nope'"),
        (("write", "fixed"), "is read-only"),
        (("write", "voice"), "is written by agent only, not by operator"),
        (("write", "notes", "absent.txt"), "absent.txt can not be read: No such file"),
        (("write", "notes", "--expect", "7"), "not at version 7 as expected"),
        (("watch", "nope", "--once"), "has no core block 'nope'"),
        (("edit", "nope"), "has no core block 'nope'"),
    ],
)
async def test_what_can_not_be_done_gets_a_sentence_and_changes_nothing(
    desk: Desk, arguments: tuple[str, ...], words: str
) -> None:
    code, out, err = desk.run(*arguments, text="new text")
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err
    assert await desk.live("notes") == "One.\nTwo."


async def test_a_text_that_letta_would_change_is_refused(desk: Desk) -> None:
    code, _, err = desk.run("write", "notes", text="a\0b")
    assert code == 2
    assert "NUL character at position 1" in err
    process = desk.start("write", "notes", text=False)
    _, raw = process.communicate(b"ab\xff", timeout=120)
    assert process.returncode == 2
    assert "not UTF-8: byte 0xff at position 2" in raw.decode()
    assert await desk.live("notes") == "One.\nTwo."


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("HAN_SOLO_LETTA_BASE_URL", "http://127.0.0.1:1", "can not be reached"),
        ("HAN_SOLO_LETTA_PASSWORD", "wrong", "refuses the password"),
        ("HAN_SOLO_DATABASE_URL", "postgresql://a:b@127.0.0.1:1/x", "Nothing listens"),
        ("HAN_SOLO_AGENT_ID", "agent-00000000-0000-4000-8000-000000000000", "has no agent"),
        ("HAN_SOLO_AGENT_ID", "", "There is no agent 'ren' yet"),
    ],
)
def test_a_part_that_is_away_is_named(desk: Desk, setting: str, value: str, words: str) -> None:
    code, out, err = desk.run("list", env={setting: value})
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


# On a terminal


async def test_on_a_terminal_a_text_can_not_tell_the_terminal_what_to_do(desk: Desk) -> None:
    desk.ask("write", "notes", text="a\x1b[2Jb")
    ours, theirs = pty.openpty()
    process = desk.start("show", "notes", stdout=theirs)
    process.communicate("", timeout=120)
    os.close(theirs)
    shown = os.read(ours, 1000).decode()
    os.close(ours)
    assert "a\u241b[2Jb" in shown


def test_on_a_terminal_a_diff_has_colours(desk: Desk) -> None:
    desk.ask("write", "notes", text="One.\nThree.")
    ours, theirs = pty.openpty()
    process = desk.start("diff", "notes", stdout=theirs, env={"TERM": "xterm-256color"})
    process.communicate("", timeout=120)
    os.close(theirs)
    shown = os.read(ours, 4000).decode()
    os.close(ours)
    assert "\x1b[" in shown
    assert "Three" in shown


def test_without_a_text_a_terminal_is_not_waited_for(desk: Desk) -> None:
    ours, theirs = pty.openpty()
    process = desk.start("write", "notes", stdin=theirs)
    _, err = process.communicate(timeout=120)
    os.close(theirs)
    os.close(ours)
    assert process.returncode == 2
    assert "There is no text to write." in err
