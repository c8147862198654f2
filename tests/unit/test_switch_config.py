"""What a switch carries over, what it takes from the new model, and what it never carries."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest

from han_solo.reconcile.model import Switched
from han_solo.reconcile.pinned import find_pin, pin_model
from han_solo.reconcile.switch.config import (
    Asked,
    FieldChange,
    build_config,
    build_fields,
    build_recorded,
    largest_window,
)
from han_solo.reconcile.switch.reasoning import RULES, find_concern, find_rule, lacks_budget
from tests.unit.reconcile_world import SPEC

OLD: dict[str, Any] = {
    "handle": "openai/gpt-5.1",
    "model": "gpt-5.1",
    "display_name": "Old",
    "model_endpoint_type": "openai",
    "model_endpoint": "https://api.openai.com/v1",
    "provider_name": "openai",
    "provider_category": "base",
    "context_window": 200_000,
    "temperature": 1.4,
    "max_tokens": 8_192,
    "enable_reasoner": True,
    "reasoning_effort": "high",
    "max_reasoning_tokens": 0,
    "frequency_penalty": 0.5,
    "parallel_tool_calls": True,
    "something_new": "kept",
}
NEW: dict[str, Any] = {
    **OLD,
    "handle": "anthropic/claude-haiku-4-5",
    "model": "claude-haiku-4-5",
    "display_name": "claude-haiku-4-5",
    "model_endpoint_type": "anthropic",
    "model_endpoint": "https://api.anthropic.com/v1",
    "provider_name": "anthropic",
    "context_window": 128_000,
    "max_context_window": 200_000,
    "temperature": 1.0,
    "max_tokens": 16_384,
    "reasoning_effort": None,
    "frequency_penalty": None,
    "parallel_tool_calls": False,
    "something_new": None,
}
OPEN_MODEL = dataclasses.replace(
    SPEC.model, context_window=None, max_tokens=None, temperature=None, parallel_tool_calls=None
)


def by_name(fields: tuple[FieldChange, ...]) -> dict[str, FieldChange]:
    return {field.name: field for field in fields}


def test_every_field_is_there_and_in_the_agents_order() -> None:
    config = build_config(build_fields(OLD, NEW, OPEN_MODEL, Asked()))
    assert list(config) == list(OLD)


def test_settings_are_carried_and_what_names_the_model_is_not() -> None:
    fields = by_name(build_fields(OLD, NEW, OPEN_MODEL, Asked()))
    for name in ("context_window", "max_tokens", "parallel_tool_calls", "something_new"):
        assert (fields[name].new, fields[name].why) == (OLD[name], "carried")
    for name in ("handle", "model", "model_endpoint", "model_endpoint_type", "provider_name"):
        assert (fields[name].new, fields[name].why) == (NEW[name], "model")
    assert fields["display_name"].new is None


def test_the_reasoner_is_never_carried() -> None:
    fields = by_name(build_fields(OLD, NEW, OPEN_MODEL, Asked()))
    assert fields["enable_reasoner"].new is False
    assert fields["enable_reasoner"].why == "always_off"


def test_the_reasoner_is_on_only_where_the_spec_says_so_for_that_model() -> None:
    spec = dataclasses.replace(
        OPEN_MODEL, handle=NEW["handle"], enable_reasoner=True, max_reasoning_tokens=2048
    )
    fields = by_name(build_fields(OLD, NEW, spec, Asked()))
    assert fields["enable_reasoner"].new is True
    assert fields["max_reasoning_tokens"].new == 2048
    other = dataclasses.replace(spec, handle="anthropic/claude-opus-4-5")
    assert by_name(build_fields(OLD, NEW, other, Asked()))["enable_reasoner"].new is False


def test_what_the_new_provider_does_not_know_is_not_carried() -> None:
    fields = by_name(build_fields(OLD, NEW, OPEN_MODEL, Asked()))
    for name in ("frequency_penalty", "reasoning_effort"):
        assert (fields[name].new, fields[name].why) == (None, "provider")
    assert (fields["temperature"].new, fields["temperature"].why) == (1.0, "provider")


def test_levels_are_carried_within_a_family() -> None:
    offered = {**OLD, "handle": "openai/gpt-5.1-mini", "model": "gpt-5.1-mini"}
    offered["reasoning_effort"] = None
    fields = by_name(build_fields(OLD, offered, OPEN_MODEL, Asked()))
    assert fields["reasoning_effort"].new == "high"
    offered |= {"handle": "openai/gpt-5", "model": "gpt-5"}
    fields = by_name(build_fields(OLD, offered, OPEN_MODEL, Asked()))
    assert fields["reasoning_effort"].new is None


def test_the_spec_counts_for_its_own_model_and_the_command_line_for_any() -> None:
    spec = dataclasses.replace(OPEN_MODEL, handle=NEW["handle"], context_window=150_000)
    fields = by_name(build_fields(OLD, NEW, spec, Asked(max_tokens=1_000)))
    assert (fields["context_window"].new, fields["context_window"].why) == (150_000, "declared")
    assert (fields["max_tokens"].new, fields["max_tokens"].why) == (1_000, "asked")


def test_without_carrying_nothing_of_the_old_model_is_left() -> None:
    fields = by_name(build_fields(OLD, NEW, OPEN_MODEL, Asked(), carry=False))
    for name in ("context_window", "max_tokens", "temperature", "frequency_penalty"):
        assert fields[name].new == NEW[name]
    assert fields["enable_reasoner"].new is False


def test_going_back_takes_what_was_recorded_and_the_address_of_today() -> None:
    recorded = {**NEW, "model_endpoint": "http://gone.example", "temperature": 0.2}
    fields = by_name(build_recorded(OLD, recorded, NEW, OPEN_MODEL))
    assert fields["temperature"].new == 0.2
    assert fields["model_endpoint"].new == NEW["model_endpoint"]
    assert fields["enable_reasoner"].new is False


def test_the_largest_window_is_the_models_own_and_not_lettas_default() -> None:
    assert largest_window(NEW) == 200_000
    assert largest_window({"context_window": 0}) is None


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("gemini-2.5-pro", "always_on"),
        ("gemini-3-flash-preview", "always_on"),
        ("gemini-2.5-flash", "needs_budget"),
        ("claude-3-7-sonnet-20250219", "needs_budget"),
        ("claude-sonnet-4-20250514", "needs_budget"),
        ("anthropic.claude-opus-4-5-20251101-v1:0", "needs_budget"),
        ("claude-opus-4-7", "refuses_budget"),
        ("claude-sonnet-5", "refuses_budget"),
        ("claude-fable-5", "always_on"),
        ("o3-mini", "always_on"),
        ("gpt-5-nano", "always_on"),
        ("gpt-5.2", "by_effort"),
        ("x-ai/grok-4-fast-reasoning", "always_on"),
        ("deepseek-reasoner", "always_on"),
        ("grok-4-fast-non-reasoning", None),
        ("claude-3-5-haiku-20241022", None),
        ("gpt-4o", None),
        ("rehearsal", None),
    ],
)
def test_what_a_model_makes_of_reasoning(model: str, kind: str | None) -> None:
    rule = find_rule(model)
    assert (rule.kind if rule else None) == kind


def test_a_model_that_is_off_when_told_so_is_no_concern() -> None:
    assert find_concern({"model": "gemini-2.5-flash", "enable_reasoner": False}) is None
    assert find_concern({"model": "gemini-2.5-pro", "enable_reasoner": False}) is not None


def test_a_reasoner_without_its_budget_is_found() -> None:
    on = {"model": "claude-haiku-4-5", "enable_reasoner": True, "max_reasoning_tokens": 0}
    assert lacks_budget(on) is not None
    assert lacks_budget({**on, "max_reasoning_tokens": 1024}) is None
    assert lacks_budget({**on, "enable_reasoner": False}) is None
    assert lacks_budget({**on, "model": "claude-opus-4-7", "max_reasoning_tokens": 4096})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.models)
def test_every_rule_names_a_page_of_the_provider(rule: Any) -> None:
    assert rule.source.startswith("https://")


SWITCHED = Switched(
    handle="p/new",
    spec_handle=SPEC.model.handle,
    config={"context_window": 64_000, "temperature": 0.4, "enable_reasoner": False},
    at=datetime(2030, 1, 1, tzinfo=UTC),
)
DECLARED = dataclasses.replace(OPEN_MODEL, context_window=100_000, temperature=0.7)


def test_a_switch_stands_for_a_spec_that_was_not_changed_since() -> None:
    pinned = pin_model(DECLARED, SWITCHED, "p/new")
    assert (pinned.handle, pinned.context_window, pinned.temperature) == ("p/new", 64_000, 0.4)
    assert pinned.max_tokens is None


@pytest.mark.parametrize("handle", ["p/other", SPEC.model.handle])
def test_a_switch_explains_no_other_model(handle: str) -> None:
    assert find_pin(DECLARED, SWITCHED, handle) is None
    assert pin_model(DECLARED, SWITCHED, handle) is DECLARED


def test_a_spec_that_was_changed_since_counts() -> None:
    newer = dataclasses.replace(DECLARED, handle="p/third")
    assert pin_model(newer, SWITCHED, "p/new") is newer


def test_a_spec_bounds_where_a_switch_may_go() -> None:
    model = dataclasses.replace(DECLARED, allowed=("google_ai/*", "p/exact"))
    assert model.allows("google_ai/gemini-2.5-pro")
    assert model.allows("p/exact")
    assert model.allows(model.handle)
    assert not model.allows("p/exact-not")
    assert not dataclasses.replace(model, allowed=()).allows("p/exact")
    assert DECLARED.allows("anything/at-all")
