"""What a switch works on, put together by whoever starts one: ``switch-model`` and ``up``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ...clock import Clock
from ...letta.floor import Floor
from ...letta.providers import ProviderView
from ...letta.turns import Turn
from ...letta.views import AgentView
from ...store.database import Database
from ..spec import AgentSpec
from .journal import SwitchJournal

CANARY_TIMEOUT_S: Final = 120.0
"""For the canary's one turn. A model that loads first takes a minute; a sync waits no longer than
this for the lock that the switch holds meanwhile."""


class SettleGateway(Protocol):
    """What it takes of Letta to bring a switch of a dead process to its end."""

    async def fetch_agent(self, agent_id: str) -> AgentView: ...
    async def patch_llm_config(
        self, agent_id: str, llm_config: Mapping[str, object]
    ) -> AgentView: ...
    async def patch_tool_ids(self, agent_id: str, tool_ids: Sequence[str]) -> AgentView: ...
    async def find_canaries(self, owner_id: str) -> tuple[str, ...]: ...
    async def end_canary(self, canary_id: str) -> None: ...


class SwitchGateway(SettleGateway, Protocol):
    """What a switch needs of Letta."""

    @property
    def base_url(self) -> str: ...

    async def fetch_model_configs(self) -> tuple[Mapping[str, object], ...]: ...
    async def fetch_providers(self) -> tuple[ProviderView, ...]: ...
    async def check_provider(self, provider_id: str) -> None: ...
    async def create_canary(
        self, owner_id: str, llm_config: Mapping[str, object], tool_ids: Sequence[str]
    ) -> AgentView: ...
    async def send_message(
        self, floor: Floor, message: str, *, max_steps: int | None = None
    ) -> Turn: ...


@dataclass(frozen=True, slots=True)
class SwitchServices:
    """What a switch of one agent works on.

    ``find_cause`` names why a turn was silent, or None when it was not:
    ``turns.silence.find_cause`` in life.
    """

    gateway: SwitchGateway
    db: Database
    spec: AgentSpec
    find_cause: Callable[[Turn], str | None]
    clock: Clock
    canary_timeout_s: float = CANARY_TIMEOUT_S

    @property
    def journal(self) -> SwitchJournal:
        return SwitchJournal(self.db, self.spec.name, self.clock)
