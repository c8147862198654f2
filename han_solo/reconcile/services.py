"""What a sync works on, put together by whoever starts one: the bridge, ``sync-tools``, ``up``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from ..clock import Clock
from ..connections import Connections
from ..errors import SettingsError
from ..registry import ListedTool
from ..settings import Settings
from ..store.database import Database
from .gateway import Gateway
from .journal import Journal
from .known import KnownAgent
from .model import Desired, DesiredServer, Known, Observed
from .observe import build_listed, observe
from .spec import AgentSpec, load_spec
from .switch.journal import SwitchJournal

AGENT_TOKEN: Final = "agent"  # noqa: S105 - a token's name, not a token

ListLive = Callable[[str, str], Awaitable[tuple[ListedTool, ...]]]
"""Asks the bridge at that URL for what it shows that token; ``bridge.lister.list_live_tools``."""


@dataclass(frozen=True, slots=True)
class ReconcileServices:
    """What a sync works on.

    ``declared`` is the registry as it is listed to the agent; ``bridge_url`` what Letta is given,
    ``local_url`` where we ask the bridge ourselves; ``agent_id`` is ``HAN_SOLO_AGENT_ID``.
    """

    gateway: Gateway
    db: Database
    spec: AgentSpec
    declared: tuple[ListedTool, ...]
    bridge_name: str
    bridge_url: str
    local_url: str
    read_token: Callable[[], str] = field(repr=False)
    list_live: ListLive = field(repr=False)
    agent_id: str | None = None
    clock: Clock = field(default_factory=Clock)

    @property
    def known(self) -> KnownAgent:
        return KnownAgent(self.db, self.spec.name, self.clock)

    @property
    def journal(self) -> Journal:
        return Journal(self.db, self.spec.name, self.clock)

    @property
    def switches(self) -> SwitchJournal:
        return SwitchJournal(self.db, self.spec.name, self.clock)

    def build_desired(self) -> Desired:
        """Return what is to be.

        Raises:
            SettingsError: there is no token for the agent.
        """
        server = DesiredServer(self.bridge_name, self.bridge_url, self.read_token())
        return Desired(server, build_listed(self.declared), self.spec)

    async def observe(self, agent_id: str, token: str) -> Observed:
        """Read what is; see ``han_solo.reconcile.observe``."""

        async def list_live() -> tuple[ListedTool, ...]:
            return await self.list_live(self.local_url, token)

        async def load_known() -> Known:
            return await self.known.load_known(agent_id)

        return await observe(self.gateway, agent_id, self.spec.name, list_live, load_known)


def build_services(
    settings: Settings,
    *,
    gateway: Gateway,
    db: Database,
    declared: tuple[ListedTool, ...],
    list_live: ListLive,
) -> ReconcileServices:
    """Put the services together from the settings and the home directory.

    Args:
        settings: the settings.
        gateway: Letta.
        db: the database, at this release's schema.
        declared: ``bridge.projection.list_tools(registry, "agent")``.
        list_live: ``bridge.lister.list_live_tools``.

    Raises:
        SpecError: the agent spec can not be used.
        SettingsError: the bridge has no port yet.
    """
    where = Connections(settings)

    def read_token() -> str:
        token = settings.at.read_token(AGENT_TOKEN)
        if token is None:
            raise SettingsError(
                f"There is no token for the agent: {settings.at.tokens / AGENT_TOKEN} is missing.",
                hint="`han-solo up` makes it; or han-solo tokens create agent --kind agent, and "
                "put what it prints into that file.",
            )
        return token

    return ReconcileServices(
        gateway=gateway,
        db=db,
        spec=load_spec(settings.agent_spec, person=settings.person, model=where.model),
        declared=declared,
        bridge_name=settings.bridge_name,
        bridge_url=where.bridge_mcp_url,
        local_url=f"{where.bridge_local_url}/mcp",
        read_token=read_token,
        list_live=list_live,
        agent_id=settings.agent_id,
    )
