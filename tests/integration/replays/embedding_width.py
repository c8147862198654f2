"""A provider limits, then changes its width; an import is killed; search says so and comes back."""

from __future__ import annotations

import dataclasses

from han_solo.memory.passage_model import Draft
from han_solo.memory.passages import Passages
from han_solo.memory.vector_health import VectorCare
from tests.integration.embedding_service import EmbeddingService, Fault
from tests.integration.guard_fixtures import GuardWorld
from tests.integration.memory_fixtures import REN

LIMITED = Fault(status=429, headers={"retry-after": "3600"})


async def replay(world: GuardWorld) -> None:
    db, service = world.lab.services.db, EmbeddingService()
    passages = Passages(db, service.open_vectors(db))
    care = VectorCare(db, lambda: service.open_vectors(db))
    world.services = dataclasses.replace(world.services, vectors=care)

    async def keys() -> list[str]:
        return [finding.key for finding in await world.check("embedding_width")]

    async def sql(text: str) -> None:
        async with db.transaction() as connection:
            await connection.execute(text)

    assert await keys() == [], "nothing is remembered yet, so nobody is asked"
    assert service.asked == []
    await passages.insert(REN, Draft(text="A heron at the pond."))
    assert await keys() == []

    service.fault = LIMITED
    await passages.insert(REN, Draft(text="The ferry leaves at noon."))
    limited = await world.run("embedding_width")
    assert [(row.key, row.severity) for row in limited.findings] == [("provider", "warning")]
    assert "limits our rate" in limited.findings[0].summary
    assert "1 of 2 chunks" in limited.findings[0].summary
    service.fault = None
    assert await keys() == ["missing"]
    mended = await world.run("embedding_width")
    assert (mended.outcome, set(mended.resolved)) == ("repaired", {"provider", "missing"})
    assert (await passages.vectors.state()).missing == 0

    service.width = 16
    await passages.insert(REN, Draft(text="Written while it was another model."))
    changed = await world.run("embedding_width")
    assert [(row.key, row.severity) for row in changed.findings] == [("width", "critical")]
    assert "vectors of 16 numbers" in changed.findings[0].summary
    assert "embed switch openai --model small --width 16" in changed.findings[0].hint
    found = await passages.search(REN, "ferry")
    assert (found.mode, len(found.hits)) == ("keyword", 1)
    service.width = 8
    assert (await world.run("embedding_width")).outcome == "repaired"
    assert (await passages.search(REN, "ferry")).mode == "hybrid"

    await sql("DROP INDEX memory.vectors_nearest_1")  # as a killed import leaves it
    await sql("UPDATE memory.vectors SET own = '[1,2,3]' WHERE chunk_id = 1")
    assert await keys() == ["stored", "index"]
    mended = await world.run("embedding_width")
    assert mended.outcome == "repaired", mended
    assert set(mended.resolved) >= {"stored", "index"}
    assert (await passages.vectors.state()).stored_widths == (8,)
    assert [hit.passage_id for hit in (await passages.search(REN, "heron")).hits][:1] == [1]

    await sql(
        "INSERT INTO memory.embedders (provider, model, width, state, created_at)"
        " VALUES ('voyage', 'voyage-3', 1024, 'filling', now())"
    )
    (waiting,) = await world.check("embedding_width")
    assert waiting.key.startswith("switch:voyage/voyage-3")
    assert (
        waiting.hint == "Go on with it: han-solo embed switch voyage --model voyage-3 --width 1024"
    )
    async with db.direct() as connection:
        await connection.execute("SELECT pg_advisory_lock(hashtextextended('memory.embedders', 0))")
        assert await keys() == [], "it is under way"
