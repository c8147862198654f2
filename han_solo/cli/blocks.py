"""``han-solo blocks``: the agent's core blocks, as the operator sees and writes them.

Texts are on stdout and alone there, words about them on stderr, so that output can be piped. Every
write is read back and becomes a version; nothing that was there before is lost.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from . import run

app = typer.Typer(
    name="blocks",
    help="Show, write and restore the agent's core blocks, with every version of each.",
    no_args_is_help=True,
)

Label = Annotated[str, typer.Argument(help="The block's label; `han-solo blocks list` shows them.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Reason = Annotated[str, typer.Option("--reason", "-r", help="Why, for the history.")]
Expect = Annotated[
    int | None,
    typer.Option("--expect", min=1, help="Write only if this is the last version still."),
]


@app.command("list")
@run.command
async def list_(as_json: Json = False) -> None:
    """List the blocks: how full, which version, who wrote last and when."""
    from . import block_json, block_output, block_view
    from .block_session import open_blocks
    from .block_text import say

    async with open_blocks(run.settings()) as session:
        states = await session.blocks.list()
        last = await session.load_last(states)
    if as_json:
        block_output.print_json(
            [block_json.of_state(state, last.get(state.label)) for state in states]
        )
        return
    console = run.out()
    if not states:
        say(console, "The agent has no core blocks. The agent spec declares them ([[blocks]]).")
        return
    console.print(block_view.build_list(states, last, datetime.now(UTC), console.width))
    for note in block_view.build_notes(states, last):
        say(console, note)


@app.command()
@run.command
async def show(
    label: Label,
    version: Annotated[
        int | None, typer.Option("--version", "-v", min=1, help="An older version of it.")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print the text to the byte, and nothing else.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a block's text."""
    from . import block_json, block_output, block_view
    from .block_session import open_blocks
    from .block_text import say

    async with open_blocks(run.settings()) as session:
        if version is None:
            state = await session.blocks.read(label)
            last = (await session.load_last([state])).get(state.label)
            body: dict[str, Any] = {**block_json.of_state(state, last), "value": state.value}
            head = block_view.build_state(state)
            value = state.value
        else:
            found = await session.blocks.version(label, version)
            body, value = block_json.of_version(found), found.value
            head = block_view.build_entry(found, datetime.now(UTC))
    if as_json:
        block_output.print_json(body)
    elif raw:
        block_output.print_raw(value)
    else:
        say(run.err(), head, style="dim")
        block_output.print_text(value)


@app.command()
@run.command
async def write(
    label: Label,
    source: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="The file with the whole text; - is stdin."),
    ] = None,
    reason: Reason = "",
    expect: Expect = None,
    as_json: Json = False,
) -> None:
    """Replace a block's text by a file or by what is piped in, read it back, and keep a version."""
    from . import block_output
    from .block_session import open_blocks
    from .block_text import read_text

    value = read_text(source)
    async with open_blocks(run.settings()) as session:
        written = await session.blocks.write(label, value, reason=reason, expected_version=expect)
    block_output.show_write(written, as_json=as_json)


@app.command()
@run.command
async def edit(label: Label, reason: Reason = "", as_json: Json = False) -> None:
    """Edit a block in $VISUAL or $EDITOR.

    What somebody else wrote meanwhile is not overwritten; your text is then kept in a file.
    """
    from . import block_output
    from .block_edit import build_unchanged, keep_draft, require_editable
    from .block_session import open_blocks

    settings = run.settings()
    async with open_blocks(settings) as session:
        state = await session.read_recorded(label)
    require_editable(state)
    with keep_draft(label, state.value) as draft:
        value = await draft.edit()
        if value == state.value:
            written = build_unchanged(state)
        else:
            async with open_blocks(settings) as session:
                written = await session.blocks.write(
                    label, value, reason=reason, expected_version=state.version
                )
    block_output.show_write(written, as_json=as_json)


@app.command()
@run.command
async def history(
    label: Label,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="Versions.")] = 20,
    before: Annotated[
        int | None, typer.Option("--before", min=2, help="Only versions of a smaller number.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List a block's versions, newest first: who, when, why, and how they came to be."""
    from . import block_json, block_output, block_view
    from .block_session import open_blocks

    async with open_blocks(run.settings()) as session:
        entries = await session.blocks.history(label, limit=limit + 1, before=before)
    shown, older = entries[:limit], entries[limit:]
    if as_json:
        block_output.print_json([block_json.of_entry(entry) for entry in shown])
    elif not shown:
        run.out().print(f"There are no versions of {label} yet; its first write makes them.")
    else:
        console = run.out()
        console.print(
            block_view.build_history(shown, older[0] if older else None, datetime.now(UTC))
        )
        if older:
            run.err().print(
                f"Older ones: han-solo blocks history {label} --before {shown[-1].number}",
                style="dim",
            )


@app.command()
@run.command
async def diff(
    label: Label,
    old: Annotated[
        int | None, typer.Argument(metavar="[A]", min=1, help="Default: the one before B.")
    ] = None,
    new: Annotated[
        int | None, typer.Argument(metavar="[B]", min=1, help="Default: the last version.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what changed between two versions of a block."""
    from . import block_diff, block_json, block_output
    from .block_session import open_blocks
    from .block_text import say

    async with open_blocks(run.settings()) as session:
        before, after = await session.load_pair(label, old, new)
    lines = block_diff.build_lines(before.value, after.value)
    names = (f"{label} version {before.number}", f"{label} version {after.number}")
    if as_json:
        added, removed = block_diff.count(lines)
        block_output.print_json(
            {
                "label": label,
                "from": block_json.of_entry(before),
                "to": block_json.of_entry(after),
                "added": added,
                "removed": removed,
                "diff": block_diff.to_plain(lines, *names) if lines else "",
            }
        )
    elif lines:
        say(run.out(), block_diff.render(lines, *names))
    else:
        run.err().print(f"Versions {before.number} and {after.number} hold the same text.")


@app.command()
@run.command
async def restore(
    label: Label,
    version: Annotated[int, typer.Argument(min=1, help="The version whose text is wanted back.")],
    reason: Reason = "",
    expect: Expect = None,
    as_json: Json = False,
) -> None:
    """Write the text of an older version again, as a new version."""
    from . import block_output
    from .block_session import open_blocks

    async with open_blocks(run.settings()) as session:
        written = await session.blocks.restore(
            label, version, reason=reason, expected_version=expect
        )
    block_output.show_write(written, as_json=as_json)


@app.command()
@run.command
async def watch(
    label: Annotated[str | None, typer.Argument(help="One block; all of them by default.")] = None,
    interval: Annotated[
        float, typer.Option("--interval", "-i", min=0.1, help="Seconds between two looks.")
    ] = 2.0,
    once: Annotated[
        bool, typer.Option("--once", help="Look once and end; exit 3 when something was found.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Tell what is written, adopt what was written around han-solo, and put reverts right.

    Ctrl-C ends it. With --json each line is an object.
    """
    from .block_session import open_blocks
    from .block_watch import Watch

    async with open_blocks(run.settings()) as session:
        watching = Watch(session, label, as_json)
        count = await watching.look()
        if not as_json:
            words = f"{count} {'block' if count == 1 else 'blocks'}"
            run.err().print(f"{words} looked at; {watching.found} findings.", style="dim")
        if not once:
            await watching.run(interval)
    return run.EXIT_DRIFT if watching.found else 0
