"""The shape of the agent spec's file, checked by pydantic: the edge of the spec.

Each field has its meaning, unit and reason as a docstring; ``docs/reference/agent-spec.md`` is made
from them.
"""

from __future__ import annotations

import difflib
import re
import zoneinfo
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ..declare import LETTA_BUILTINS

LABEL: Final = re.compile(r"\w[\w/-]{0,63}")
LABEL_HINT: Final = "Use letters, digits, _, - and /, at most 64 of them."

MAX_LIMIT_CHARS: Final = 1_000_000
"""Letta stores more, but every character of a core block is in every prompt."""

MIN_REASONING_TOKENS: Final = 1024
"""Below it providers raise the budget, refuse it, or, at 0, answer nothing at all."""

Writer = Literal["agent", "client", "operator", "dream"]
RuleType = Literal[
    "run_first",
    "continue_loop",
    "exit_loop",
    "required_before_exit",
    "requires_approval",
    "constrain_child_tools",
    "parent_last_tool",
    "max_count_per_step",
]
_WITH_CHILDREN: Final = ("constrain_child_tools", "parent_last_tool")

_Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
_Phrase = Annotated[str, Field(pattern=r"^[^\x00]*\w[^\x00]*$", max_length=200)]


class _Table(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True
    )


class AgentTable(_Table):
    """Who the agent is."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]{0,62}$")
    """Name of the agent. han-solo keeps its id under this name, so renaming means another agent."""

    person: str = Field(min_length=1, max_length=80, pattern=r"^[^\x00-\x1f{}]+$")
    """Name of the person the agent belongs to; `{person}` in texts stands for it, `{person_slug}`
    in labels for its form in lower case with underscores. `HAN_SOLO_PERSON` replaces it."""

    description: _Text | None = None
    """Shown in Letta. Used when the agent is made."""

    timezone: str | None = None
    """IANA name, such as `Europe/Oslo`. Used when the agent is made."""

    @field_validator("timezone")
    @classmethod
    def _is_known(cls, value: str | None) -> str | None:
        known = zoneinfo.available_timezones()
        if value is not None and known and value not in known:
            raise ValueError(f"{value!r} is not a time zone{_suggest(value, known)}")
        return value


class ModelTable(_Table):
    """The model it runs on, and its settings."""

    handle: str = Field(pattern=r"^[^\s/]+/\S+$")
    """Handle as Letta lists it, `provider/model`. `HAN_SOLO_MODEL` replaces it, and the numbers
    below then count as not declared: they were chosen for this model."""

    context_window: int | None = Field(default=None, ge=4_000, le=10_000_000)
    """Tokens. Letta makes it 128,000 at most whenever it rebuilds the settings by itself, and a
    smaller window shortens the agent's memory without a word."""

    enable_reasoner: bool = False
    """Off by default: on, without reasoning tokens, the agent says nothing and no error shows."""

    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens of one answer, at most."""

    max_reasoning_tokens: int | None = Field(default=None, ge=0)
    """Tokens for reasoning; at least 1,024 with `enable_reasoner`."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    """0 to 2."""

    parallel_tool_calls: bool | None = None
    """Whether the model may call several tools at once."""

    allowed: list[_Phrase] | None = None
    """Handles that `switch-model` may go to, beside this one; `*` stands for any text, as in
    `google_ai/*`. Left out: any that Letta lists. An empty list: no switch at all."""

    @model_validator(mode="after")
    def _agrees(self) -> ModelTable:
        if self.enable_reasoner and (self.max_reasoning_tokens or 0) < MIN_REASONING_TOKENS:
            raise ValueError(
                f"enable_reasoner needs max_reasoning_tokens of at least {MIN_REASONING_TOKENS:,}:"
                " without, the agent answers nothing"
            )
        if self.max_tokens and self.context_window and self.max_tokens >= self.context_window:
            raise ValueError("max_tokens leaves no room in context_window")
        return self


class ToolsTable(_Table):
    """Which of Letta's own tools it has beside its set."""

    builtin: list[str] = []
    """Letta's own tools that the agent shall have beside its set. Those that edit memory undo
    block writes and are reported as a conflict even when they stand here."""

    @field_validator("builtin")
    @classmethod
    def _are_known(cls, value: list[str]) -> list[str]:
        for name in value:
            if name not in LETTA_BUILTINS:
                raise ValueError(
                    f"{name!r} is not a Letta built-in{_suggest(name, LETTA_BUILTINS)}"
                )
        return value


class ToolRuleTable(_Table):
    """One of Letta's tool rules; any number of tables. Left out: not compared."""

    type: RuleType
    """What the rule says, under Letta's names."""

    tool_name: str = Field(min_length=1, max_length=64)
    """The tool it is about."""

    children: list[str] = []
    """For `constrain_child_tools` and `parent_last_tool`: the tools that may follow."""

    max_count_limit: int | None = Field(default=None, ge=1)
    """For `max_count_per_step`: calls, at most."""

    @model_validator(mode="after")
    def _agrees(self) -> ToolRuleTable:
        if bool(self.children) != (self.type in _WITH_CHILDREN):
            word = "needs" if self.type in _WITH_CHILDREN else "takes no"
            raise ValueError(f"a rule {self.type!r} {word} children")
        if (self.max_count_limit is not None) != (self.type == "max_count_per_step"):
            word = "needs" if self.type == "max_count_per_step" else "takes no"
            raise ValueError(f"a rule {self.type!r} {word} max_count_limit")
        return self


class BlockTable(_Table):
    """A core block; any number of tables."""

    label: str = Field(min_length=1, max_length=100)
    """Name of the block in the agent's prompt."""

    description: _Text | None = None
    """What the block is for; the agent reads it."""

    limit: int = Field(ge=1, le=MAX_LIMIT_CHARS)
    """Characters, at most."""

    read_only: bool = False
    """Letta's own flag, which binds its built-in tools only."""

    seed: _Text = ""
    """First value, written when the block is made and never again."""

    writers: list[Writer] = ["agent", "operator"]
    """Who may write it: `agent`, `client` (Claude Code and the like), `operator`, `dream`."""

    must_contain: list[_Phrase] = []
    """Phrases that the text must contain; the guard `block_rules` tells of one that is missing.
    Case, line breaks and punctuation beside words do not matter. A `*` alone stands for up to five
    words of one sentence, one at the end of a word for the rest of that word. The seed must keep
    the rules itself."""

    must_not_contain: list[_Phrase] = []
    """Phrases that it must not contain, such as an instruction that was once inverted. A sentence
    that forbids it ("never", "not", "no need to" right before the phrase) does not count."""


class SystemTable(_Table):
    """The system prompt. Left out, or with rules alone: not compared."""

    file: str | None = None
    """File with the system prompt, relative to the spec."""

    text: _Text | None = None
    """The prompt itself, instead of a file."""

    must_contain: list[_Phrase] = []
    """As for a block."""

    must_not_contain: list[_Phrase] = []
    """As for a block."""

    @model_validator(mode="after")
    def _is_one(self) -> SystemTable:
        if self.file is not None and self.text is not None:
            raise ValueError("give either file or text")
        if self.file is None and self.text is None and not self._has_rules():
            raise ValueError("give file, text, or rules for the prompt that the agent has")
        return self

    def _has_rules(self) -> bool:
        return bool(self.must_contain or self.must_not_contain)


class SpecFile(_Table):
    """The whole file."""

    agent: AgentTable
    model: ModelTable
    tools: ToolsTable = ToolsTable()
    tool_rules: list[ToolRuleTable] | None = None
    blocks: list[BlockTable] = []
    system: SystemTable | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with the file, and where."""

    message: str
    where: tuple[str | int, ...]
    hint: str | None = None


def list_faults(error: ValidationError) -> list[Fault]:
    """Return what pydantic found, in the words of someone who wrote a TOML file."""
    return [
        _build_fault(fault["type"], fault["loc"], fault["msg"], fault.get("input"))
        for fault in error.errors(include_url=False)
    ]


def _build_fault(kind: str, where: tuple[str | int, ...], text: str, given: object) -> Fault:
    name = ".".join(str(part) for part in where if isinstance(part, str)) or "the file"
    if kind == "extra_forbidden":
        fields = _fields_beside(where)
        return Fault(
            f"unknown field {where[-1]!r}{_suggest(str(where[-1]), fields)}",
            where,
            f"Known here: {', '.join(sorted(fields))}.",
        )
    if kind == "missing":
        return Fault(f"{name} is missing", where, "docs/reference/agent-spec.md lists the fields.")
    if kind == "value_error":
        return Fault(text.removeprefix("Value error, "), where)
    if kind == "string_pattern_mismatch":
        return Fault(f"{name} can not be {given!r}", where)
    return Fault(f"{name}: {text[0].lower()}{text[1:]}", where)


def _fields_beside(where: tuple[str | int, ...]) -> frozenset[str]:
    model: type[BaseModel] = SpecFile
    for part in where[:-1]:
        if isinstance(part, str):
            model = _table_of(model.model_fields[part].annotation)
    return frozenset(model.model_fields)


def _table_of(annotation: Any) -> type[BaseModel]:
    """Return the table in an annotation such as ``list[BlockTable] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(_table_of(part) for part in get_args(annotation) if part is not type(None))


def _suggest(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
