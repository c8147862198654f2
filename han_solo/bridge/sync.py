"""The bridge's calls of the reconciler: bring the agent's tools in sync, and tell how it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..letta.gateway import LettaGateway
from ..reconcile.ensure import ensure_ren_tools, make_plan
from ..reconcile.plan import Plan, kind_of, target_of
from ..reconcile.services import ReconcileServices, build_services
from ..registry import ListedTool
from ..settings import Settings
from ..store.database import Database
from .lister import list_live_tools


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a sync came to: whether the agent is as declared, and if not, the first reason."""

    agent_id: str
    in_sync: bool
    reason: str | None
    body: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToolSync:
    """Syncs of the managed agent; ``declared`` is the registry as the agent is shown it."""

    settings: Settings
    gateway: LettaGateway
    declared: tuple[ListedTool, ...]

    async def run(self, database: Database) -> SyncReport:
        """Run ``ensure_ren_tools``; the bridge must be listening."""
        outcome = await ensure_ren_tools(self._build(database))
        return SyncReport(
            agent_id=outcome.agent_id,
            in_sync=outcome.in_sync,
            reason=None if outcome.in_sync else summarize(outcome.remaining),
            body=outcome.to_json(),
        )

    async def describe(self, database: Database, agent_id: str) -> dict[str, object]:
        """Return the agent's state and what a sync would do; changes nothing."""
        agent = await self.gateway.fetch_agent(agent_id)
        plan = await make_plan(self._build(database), agent_id)
        return {
            "id": agent.id,
            "name": agent.name,
            "model": agent.llm_config.get("handle"),
            "context_window": agent.llm_config.get("context_window"),
            "tools": {"attached": len(agent.tools), "declared": len(self.declared)},
            "in_sync": plan.in_sync,
            "drift": [f"{kind_of(step)} {target_of(step)}" for step in plan.steps],
            "findings": [finding.sentence for finding in plan.findings],
            "refused": plan.refusal.sentence if plan.refusal else None,
        }

    def _build(self, database: Database) -> ReconcileServices:
        return build_services(
            self.settings,
            gateway=self.gateway,
            db=database,
            declared=self.declared,
            list_live=list_live_tools,
        )


def summarize(plan: Plan) -> str | None:
    """Say in a sentence or two why a plan is not empty; None when it is."""
    if plan.refusal:
        return plan.refusal.sentence
    if plan.conflicts:
        return " ".join(finding.sentence for finding in plan.conflicts)
    if plan.steps:
        first = plan.steps[0]
        return f"{len(plan.steps)} steps are left, first {kind_of(first)} {target_of(first)}."
    return None
