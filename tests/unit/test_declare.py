"""What may be a tool, and what is said of what may not."""

from __future__ import annotations

import pytest

from han_solo import BlockContext, MemoryContext, OperatorContext, tool
from han_solo.declare import LETTA_BUILTINS, MAX_NAME_CHARS, spec_of
from han_solo.declare.arguments import list_entries
from han_solo.errors import DeclarationError


async def good(context: MemoryContext, word: str, times: int = 1) -> str:
    """Say a word.

    Args:
        word: The word.
        times: How often.
    """
    return word * times


async def with_blocks(context: BlockContext) -> str:
    """Read blocks."""
    return ""


async def with_letta(context: OperatorContext) -> str:
    """Speak to Letta."""
    return ""


async def no_docstring(context: MemoryContext) -> str:
    return ""


async def no_annotation(context: MemoryContext, word) -> str:
    """Say a word."""
    return word


async def no_return_annotation(context: MemoryContext):
    """Say nothing."""


async def no_context(word: str) -> str:
    """Say a word."""
    return word


async def no_parameters() -> str:
    """Say nothing."""
    return ""


async def unknown_annotation(context: MemoryContext, word: Missing) -> str:  # noqa: F821
    """Say a word."""
    return ""


async def broken_annotation(context: MemoryContext, word: "list[") -> str:  # noqa: F722
    """Say a word."""
    return ""


async def with_star(context: MemoryContext, *words: str) -> str:
    """Say words."""
    return ""


async def with_stars(context: MemoryContext, **words: str) -> str:
    """Say words."""
    return ""


async def positional(context: MemoryContext, word: str, /) -> str:
    """Say a word."""
    return word


async def misspelt_entry(context: MemoryContext, word: str, times: int = 1) -> str:
    """Say a word.

    Args:
        word: The word, or what
            else: it may be.
        tiems: How often.

    Raises:
        Never: at all.
    """
    return word * times


async def BadName(context: MemoryContext) -> str:  # noqa: N802
    """Say nothing."""
    return ""


def not_async(context: MemoryContext) -> str:
    """Say nothing."""
    return ""


def named(name: str):
    async def renamed(context: MemoryContext) -> str:
        """Say nothing."""
        return ""

    renamed.__name__ = name
    return renamed


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (no_docstring, "has no docstring"),
        (no_annotation, "has no annotation for word"),
        (no_return_annotation, "has no annotation for the return value"),
        (no_context, "does not name a context"),
        (no_parameters, "does not name a context"),
        (unknown_annotation, "'Missing' is not defined"),
        (broken_annotation, "can not be resolved"),
        (with_star, r"takes \*args"),
        (with_stars, r"takes \*args"),
        (positional, "arguments without a name"),
        (misspelt_entry, "has no argument tiems, which its docstring lists"),
        (BadName, "needs a name of lower-case letters"),
        (not_async, "is not an async function"),
        (named("x" * (MAX_NAME_CHARS + 1)), "at most 48"),
        (with_letta, "OperatorContext in the agent's set"),
    ],
)
def test_a_function_that_can_not_be_a_tool_is_refused_at_once(function, said):
    with pytest.raises(DeclarationError, match=said) as caught:
        tool(effect="read")(function)
    assert f"{__file__}:" in str(caught.value)
    assert repr(function.__name__) in str(caught.value)
    assert caught.value.hint
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("docstring", "entries"),
    [
        ("Say it.", ()),
        ("Say it.\n\nArgs:\n    one: Of two.\n    two (int): The rest.", ("one", "two")),
        ("Args:\n  one: Long,\n    and: so on.\n\n  two: x", ("one", "two")),
        ("Note: this.\n\nArgs:\n    one: x\n\nReturns:\n    two: not one of them.", ("one",)),
        ("Arguments:\n    one:\n        On the next line: like this.", ("one",)),
    ],
)
def test_the_entries_of_a_docstring_are_those_under_args(docstring, entries):
    assert list_entries(docstring) == entries


@pytest.mark.parametrize("name", sorted(LETTA_BUILTINS))
def test_a_builtin_name_is_refused_in_the_agents_set_only(name):
    with pytest.raises(DeclarationError, match="bears the name of a Letta built-in"):
        tool(effect="read")(named(name))
    assert spec_of(tool(effect="read", audience="client")(named(name))).name == name


def test_a_destructive_tool_is_refused_in_the_agents_set():
    with pytest.raises(DeclarationError, match="is destructive"):
        tool(effect="destructive")(named("erase"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"effect": "reed"}, "no effect 'reed'"),
        ({"effect": "read", "audience": "all"}, "no audience 'all'"),
    ],
)
def test_an_unknown_effect_or_audience_is_refused(options, said):
    with pytest.raises(DeclarationError, match=said):
        tool(**options)(good)


def test_a_name_of_the_longest_length_will_do():
    name = "x" * MAX_NAME_CHARS
    assert spec_of(tool(effect="read")(named(name))).name == name


@pytest.mark.parametrize(
    ("function", "options", "context", "scope"),
    [
        (good, {"effect": "read"}, "memory", "memory:read"),
        (good, {"effect": "write"}, "memory", "memory:write"),
        (with_blocks, {"effect": "write"}, "block", "blocks:write"),
        (with_letta, {"effect": "read", "audience": "client"}, "operator", "operator:read"),
        (good, {"effect": "destructive", "audience": "operator"}, "memory", "operator:write"),
        (good, {"effect": "read", "scope": "admin"}, "memory", "admin"),
    ],
)
def test_context_and_scope_follow_from_the_declaration(function, options, context, scope):
    spec = spec_of(tool(**options)(function))
    assert (spec.context, spec.scope) == (context, scope)


def test_declaring_returns_the_function_and_fixes_the_spec():
    assert tool(effect="read")(good) is good
    spec = spec_of(good)
    assert spec.parameters == ("word", "times")
    assert spec.audience == "agent"
    assert spec.source.startswith(f"{__file__}:")


def test_a_function_that_is_no_tool_is_said():
    with pytest.raises(DeclarationError, match="is not a tool"):
        spec_of(not_async)
