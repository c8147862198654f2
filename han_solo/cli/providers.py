"""``han-solo providers``: models of providers that Letta is given a key for, without a restart.

A key comes from stdin, from a variable of the environment, or is asked for; never from the command
line, which every process of the machine can read, and it is never shown. Letta 0.16.8 itself gives
keys out to whoever has its password; what is read here is only that there is one.
"""

from __future__ import annotations

import getpass
import json
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from . import run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..letta.gateway import LettaGateway
    from ..letta.providers import ProviderView

app = typer.Typer(
    name="providers",
    help="Give Letta a key for a provider of models, and list the models it has.",
    no_args_is_help=True,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
@run.command
async def list_providers(*, as_json: Json = False) -> None:
    """List the providers with their models; those from Letta's environment have only models."""
    async with _connect() as gateway:
        providers = await gateway.fetch_providers()
        models = await gateway.fetch_model_configs()
    if as_json:
        body = {
            "providers": [_describe(provider, models) for provider in providers],
            "models": [_describe_model(model) for model in models],
        }
        typer.echo(json.dumps(body, indent=2, ensure_ascii=False))
        return
    run.out().print(_build_table(providers, models))


@app.command()
@run.command
async def add(
    name: Annotated[str, typer.Argument(help="A name for it, such as my-gemini.")],
    *,
    provider_type: Annotated[
        str | None,
        typer.Option("--type", help="Letta's word, such as google_ai, anthropic, openai."),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="Where it is reached, if not at the provider's own address.")
    ] = None,
    key_env: Annotated[
        str | None,
        typer.Option(help="The variable that holds the key. Default: stdin, or it is asked for."),
    ] = None,
    replace_key: Annotated[
        bool, typer.Option("--replace-key", help="Give one that is there another key.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Ask the provider whether it takes the key.")
    ] = True,
    as_json: Json = False,
) -> int:
    """Add a provider with a key of yours, and show the models that it brings.

    Exit codes: 0 done; 1 added, and Letta listed no model of it; 2 refused or failed.
    """
    async with _connect() as gateway:
        known = {provider.name: provider for provider in await gateway.fetch_providers()}
        _check_words(known.get(name), name, provider_type, replace_key=replace_key)
        before = await gateway.fetch_model_configs()
        provider = known.get(name)
        key = _read_key(name, key_env)
        chosen = provider.provider_type if provider else str(provider_type)
        address = provider.base_url if provider else base_url
        if check:
            await _require_taken(gateway, chosen, key, address)
        if provider:
            added = await gateway.replace_key(provider.id, key)
        else:
            added = await gateway.add_provider(name, chosen, key, address)
        models = await gateway.fetch_model_configs()
        after = next(one for one in await gateway.fetch_providers() if one.id == added.id)
    shadowed = _find_shadowed(name, before, models)
    if as_json:
        body = {**_describe(after, models), "taken_over": shadowed}
        typer.echo(json.dumps(body, indent=2, ensure_ascii=False))
    else:
        _show_added(after, models, shadowed, is_new=provider is None)
    return 0 if _models_of(after, models) else run.EXIT_FAILED


def _connect() -> LettaGateway:
    from ..connections import Connections
    from ..letta.gateway import LettaGateway

    settings = run.settings()
    where = Connections(settings)
    return LettaGateway.connect(
        where.letta_url, where.letta_password, timeout_s=settings.letta_timeout_s
    )


def _check_words(
    found: ProviderView | None, name: str, provider_type: str | None, *, replace_key: bool
) -> None:
    from ..errors import NotFound, UsageError

    if replace_key and found is None:
        raise NotFound(
            f"Letta has no provider {name!r} whose key could be replaced.",
            hint="han-solo providers list shows them; a new one needs --type.",
        )
    if not replace_key and found is not None:
        raise UsageError(
            f"Letta has a provider {name!r} already.",
            hint=f"Give it another key with --replace-key, or take another name than {name}.",
        )
    if found is None and provider_type is None:
        raise UsageError(
            f"What kind of provider is {name}?",
            hint="Say it with --type: google_ai, anthropic, openai, and others that Letta names. "
            "An OpenAI-compatible server is openai, with its --base-url.",
        )


def _read_key(name: str, variable: str | None) -> str:
    """Read the key from the variable, from stdin, or ask for it without showing it.

    Raises:
        UsageError: there is none.
    """
    from ..errors import UsageError

    if variable is not None:
        key = os.environ.get(variable, "")
        missing = f"The variable {variable} holds no key."
    elif sys.stdin.isatty():
        key = getpass.getpass(f"Key for {name} (it is not shown): ")
        missing = "No key was typed."
    else:
        key = sys.stdin.readline()
        missing = "There was no key on stdin."
    key = key.strip()
    if not key or any(not 0x20 < ord(character) < 0x7F for character in key):  # noqa: PLR2004 - ASCII
        raise UsageError(
            missing if not key else "That is no key: it has spaces or other characters in it.",
            hint="Pipe it in, name its variable with --key-env, or type it when asked. It is never "
            "given on the command line, where other processes can read it.",
        )
    return key


async def _require_taken(
    gateway: LettaGateway, provider_type: str, key: str, base_url: str | None
) -> None:
    from ..errors import ModelFailed, UsageError

    try:
        await gateway.check_key(provider_type, key, base_url)
    except ModelFailed as error:
        raise UsageError(
            f"The provider does not take the key, or can not be reached: {error.message}",
            hint="Nothing was added. If it can not be asked but works, add it with --no-check.",
        ) from error


def _find_shadowed(
    name: str, before: Sequence[Mapping[str, object]], after: Sequence[Mapping[str, object]]
) -> list[str]:
    """Return the handles that were another provider's and are the new one's now.

    Letta lists each handle once: a provider of one's own takes it over from one of the environment.
    """
    owners = {str(model.get("handle")): model.get("provider_name") for model in before}
    return sorted(
        handle
        for model in after
        if model.get("provider_name") == name
        and owners.get(handle := str(model.get("handle")), name) != name
    )


def _show_added(
    provider: ProviderView,
    models: Sequence[Mapping[str, object]],
    shadowed: Sequence[str],
    *,
    is_new: bool,
) -> None:
    handles = _models_of(provider, models)
    done = "was added" if is_new else "has its new key"
    run.out().print(Text(f"The provider {provider.name} {done}."))
    if handles:
        run.out().print(Text(f"Its models: {', '.join(handles)}."))
    else:
        run.err().print(
            Text(
                "Letta listed no model of it: its key or address may be wrong, or another provider "
                "has the same handles already.",
                "yellow",
            )
        )
    if shadowed:
        run.err().print(
            Text(
                f"It has taken over {', '.join(shadowed)} from another provider: an agent that is "
                "switched there from now on speaks with this one.",
                "yellow",
            )
        )


def _build_table(
    providers: Sequence[ProviderView], models: Sequence[Mapping[str, object]]
) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("provider", "type", "key", "models"):
        table.add_column(column, overflow="fold")
    for provider in providers:
        handles = _models_of(provider, models)
        words = ", ".join(handles) or "none: its key or address may be wrong"
        has_key = "yes" if provider.has_key else "no"
        table.add_row(provider.name, provider.provider_type, has_key, Text(words))
    own = {provider.name for provider in providers}
    others: dict[str, list[str]] = {}
    for model in models:
        name = str(model.get("provider_name"))
        if name not in own:
            others.setdefault(name, []).append(str(model.get("handle")))
    for name, handles in sorted(others.items()):
        table.add_row(name, "", "Letta's environment", Text(", ".join(sorted(handles))))
    return table


def _models_of(provider: ProviderView, models: Sequence[Mapping[str, object]]) -> list[str]:
    return sorted(
        str(model.get("handle")) for model in models if model.get("provider_name") == provider.name
    )


def _describe(provider: ProviderView, models: Sequence[Mapping[str, object]]) -> dict[str, object]:
    return {
        "id": provider.id,
        "name": provider.name,
        "type": provider.provider_type,
        "base_url": provider.base_url,
        "has_key": provider.has_key,
        "synced_at": provider.synced_at.isoformat() if provider.synced_at else None,
        "models": _models_of(provider, models),
    }


def _describe_model(model: Mapping[str, object]) -> dict[str, object]:
    return {
        "handle": model.get("handle"),
        "provider": model.get("provider_name"),
        "max_context_window": model.get("max_context_window") or model.get("context_window"),
    }
