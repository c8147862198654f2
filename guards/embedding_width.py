"""The guard against vectors that are missing, of another width, or no longer made."""

from __future__ import annotations

from han_solo import CheckContext, Finding, RemedyContext, guard
from han_solo.memory.vector_health import VectorHealth

REFILLED = {"missing", "stored"}


async def _mend(context: RemedyContext, findings: tuple[Finding, ...]) -> str:
    """Make the vectors that are missing, and the index; what needs a person is left."""
    keys = {finding.key for finding in findings}
    done = []
    if keys & REFILLED:
        done.append(f"Made {await context.vector_care.refill():,} vectors.")
    if "index" in keys:
        await context.vector_care.rebuild_index()
        done.append("Made the index anew.")
    return " ".join(done) or "A provider or a switch waits for a person."


@guard(every_s=900, incident="embedding-width", mode="repair", remedy=_mend)
async def embedding_width(context: CheckContext) -> tuple[Finding, ...]:
    """Find a provider that returns another width or nothing, and vectors that are missing.

    The provider is asked for one vector each time. While an import or a switch of the model is
    under way, what it has yet to make is not missing.
    """
    health = await context.vectors()
    if health is None:
        return ()
    found = [_build_failure(health)] if health.failure is not None else []
    if health.strange_widths:
        found.append(_build_stored(health))
    if health.is_busy:
        return tuple(found)
    if health.state.stale and health.failure is None:
        found.append(_build_missing(health))
    if not health.has_index:
        found.append(_build_index(health))
    found += [
        Finding(
            key=f"switch:{model.name}",
            summary=f"A switch to {model.name} was cut short: {model.vectors:,} of "
            f"{health.state.chunks:,} vectors are made. Search goes by {health.name}.",
            hint=f"Go on with it: han-solo embed switch {model.name.provider} "
            f"--model {model.name.model} --width {model.name.width}",
            severity="warning",
            detail={"made": model.vectors, "of": health.state.chunks},
        )
        for model in health.waiting
    ]
    return tuple(found)


def _build_failure(health: VectorHealth) -> Finding:
    failure = health.failure
    assert failure is not None
    missing = f"{health.state.missing:,} of {health.state.chunks:,} chunks"
    if health.returned_width is not None:
        return Finding(
            key="width",
            summary=f"{health.name.model} returns vectors of {health.returned_width:,} numbers, "
            f"and those here have {health.name.width:,}: searches go by words alone, and what is "
            f"written has no vector ({missing} lack theirs).",
            hint=f"Switch to what it returns: han-solo embed switch {health.name.provider} "
            f"--model {health.name.model} --width {health.returned_width}",
            severity="critical",
            detail={
                "returned": health.returned_width,
                "expected": health.name.width,
                "missing": health.state.missing,
            },
        )
    return Finding(
        key="provider",
        summary=f"{failure.message} Searches go by words alone, and what is written has no vector "
        f"({missing} lack theirs).",
        hint=f"{failure.hint or 'See `han-solo embed status`.'} What is missing is made when it "
        "answers again.",
        severity="warning",
        detail={"missing": health.state.missing},
    )


def _build_stored(health: VectorHealth) -> Finding:
    widths = ", ".join(f"{width:,}" for width in health.strange_widths)
    return Finding(
        key="stored",
        summary=f"Vectors of {widths} numbers are stored as those of {health.name}.",
        hint="They are made anew: han-solo embed fill",
        severity="critical",
        detail={"widths": list(health.strange_widths), "expected": health.name.width},
    )


def _build_missing(health: VectorHealth) -> Finding:
    return Finding(
        key="missing",
        summary=f"{health.state.stale:,} of {health.state.chunks:,} chunks of passages have no "
        f"vector by {health.name.model}: they are found by their words alone.",
        hint="Make them: han-solo embed fill",
        severity="warning",
        detail={"missing": health.state.missing, "changed": health.state.changed},
    )


def _build_index(health: VectorHealth) -> Finding:
    return Finding(
        key="index",
        summary=f"The index of the vectors by {health.name.model} is missing: each search looks at "
        f"all {health.state.chunks:,} of them.",
        hint="An import was cut short; the index is made anew by this guard in mode repair.",
        severity="warning",
        detail={"chunks": health.state.chunks},
    )
