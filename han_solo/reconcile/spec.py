"""The agent spec: what an agent is to be, read from a TOML file in the operator's own repo.

The tools of the agent's set are not in it, since the registry declares them. Only what the file
says is compared with the server: a field left out is the server's own business. The shipped spec,
Ren's, has the person's name as a field, which ``HAN_SOLO_PERSON`` replaces.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from . import spec_file, spec_source
from .text_rules import NO_RULES, TextRules

SHIPPED_SPEC: Final = Path(__file__).resolve().parent.parent / "specs" / "ren.toml"


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The model and its settings; ``None`` is not declared and so not compared."""

    handle: str
    context_window: int | None
    enable_reasoner: bool
    max_tokens: int | None
    max_reasoning_tokens: int | None
    temperature: float | None
    parallel_tool_calls: bool | None
    allowed: tuple[str, ...] | None = None
    """Patterns of the handles that a switch may go to; None allows all."""

    def allows(self, handle: str) -> bool:
        """Say whether a switch may go to that model; the spec's own is always allowed."""
        if self.allowed is None or handle == self.handle:
            return True
        return any(fnmatch.fnmatchcase(handle, pattern) for pattern in self.allowed)

    def settings(self) -> dict[str, object]:
        """Return what is declared, the handle left out, under Letta's names."""
        declared = {
            "context_window": self.context_window,
            "enable_reasoner": self.enable_reasoner,
            "max_tokens": self.max_tokens,
            "max_reasoning_tokens": self.max_reasoning_tokens,
            "temperature": self.temperature,
            "parallel_tool_calls": self.parallel_tool_calls,
        }
        return {name: value for name, value in declared.items() if value is not None}


@dataclass(frozen=True, slots=True, order=True)
class ToolRule:
    """One of Letta's tool rules."""

    type: str
    tool_name: str
    children: tuple[str, ...] = ()
    max_count_limit: int | None = None

    def to_letta(self) -> dict[str, object]:
        """Return the rule as Letta takes it."""
        rule: dict[str, object] = {"type": self.type, "tool_name": self.tool_name}
        if self.children:
            rule["children"] = list(self.children)
        if self.max_count_limit is not None:
            rule["max_count_limit"] = self.max_count_limit
        return rule


@dataclass(frozen=True, slots=True)
class BlockSpec:
    """A core block. ``seed`` is its first value and never compared; limits are in characters."""

    label: str
    description: str | None
    limit: int
    read_only: bool
    seed: str
    writers: tuple[str, ...]
    rules: TextRules = NO_RULES


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """The whole spec, placeholders filled in. ``None`` is not declared."""

    name: str
    person: str
    description: str | None
    timezone: str | None
    model: ModelSpec
    builtin_tools: tuple[str, ...]
    tool_rules: tuple[ToolRule, ...] | None
    blocks: tuple[BlockSpec, ...]
    system: str | None
    path: Path
    system_rules: TextRules = NO_RULES

    @property
    def is_shipped(self) -> bool:
        """Say whether nobody wrote this spec for this agent: it came with han-solo."""
        return self.path == SHIPPED_SPEC

    @property
    def tag(self) -> str:
        """Return the tag by which an agent made from this spec is known in Letta."""
        return f"han-solo:{self.name}"

    def block(self, label: str) -> BlockSpec | None:
        return next((block for block in self.blocks if block.label == label), None)


def load_spec(
    path: Path | None = None, *, person: str | None = None, model: str | None = None
) -> AgentSpec:
    """Load a spec; the shipped one without a path.

    Args:
        path: the TOML file.
        person: replaces the spec's ``person``.
        model: replaces the model's handle. The numbers beside it were chosen for the spec's own
            model, so with another one they count as not declared.

    Raises:
        SpecError: with path, line and column.
    """
    source = spec_source.read_source((path or SHIPPED_SPEC).expanduser().absolute())
    agent = source.data.get("agent")
    if person is not None and isinstance(agent, dict):
        agent["person"] = person
    try:
        shape = spec_file.SpecFile.model_validate(source.data)
    except ValidationError as error:
        raise source.first_error(spec_file.list_faults(error)) from None
    return _Builder(shape, source).build(model)


def slug_of(person: str) -> str:
    """Return the name as part of a block's label: lower case, words joined by underscores."""
    return re.sub(r"\W+", "_", unicodedata.normalize("NFKC", person).casefold()).strip("_")


@dataclass(frozen=True, slots=True)
class _Builder:
    shape: spec_file.SpecFile
    source: spec_source.SpecSource

    def build(self, model: str | None) -> AgentSpec:
        agent = self.shape.agent
        rules = self.shape.tool_rules
        if not slug_of(agent.person):
            raise self.source.error("person has no letter or digit", ("agent", "person"))
        system = self._system()
        system_rules = self._rules(self.shape.system, ("system",), system)
        return AgentSpec(
            name=agent.name,
            person=agent.person,
            description=None if agent.description is None else self._fill(agent.description),
            timezone=agent.timezone,
            model=self._model(model),
            builtin_tools=tuple(sorted(set(self.shape.tools.builtin))),
            tool_rules=None if rules is None else tuple(self._rule(rule) for rule in rules),
            blocks=self._blocks(),
            system=system,
            path=self.source.path,
            system_rules=system_rules,
        )

    def _model(self, handle: str | None) -> ModelSpec:
        model = self.shape.model
        spec = ModelSpec(
            handle=model.handle,
            context_window=model.context_window,
            enable_reasoner=model.enable_reasoner,
            max_tokens=model.max_tokens,
            max_reasoning_tokens=model.max_reasoning_tokens,
            temperature=model.temperature,
            parallel_tool_calls=model.parallel_tool_calls,
            allowed=None if model.allowed is None else tuple(model.allowed),
        )
        if handle is None or handle == model.handle:
            return spec
        return dataclasses.replace(
            spec,
            handle=handle,
            context_window=None,
            enable_reasoner=False,
            max_tokens=None,
            max_reasoning_tokens=None,
            temperature=None,
            parallel_tool_calls=None,
        )

    def _rule(self, rule: spec_file.ToolRuleTable) -> ToolRule:
        return ToolRule(
            type=rule.type,
            tool_name=rule.tool_name,
            children=tuple(rule.children),
            max_count_limit=rule.max_count_limit,
        )

    def _blocks(self) -> tuple[BlockSpec, ...]:
        blocks: dict[str, BlockSpec] = {}
        for position, table in enumerate(self.shape.blocks):
            label = self._fill(table.label)
            where = ("blocks", position, "label")
            if not spec_file.LABEL.fullmatch(label):
                raise self.source.error(f"{label!r} is not a label", where, spec_file.LABEL_HINT)
            if label in blocks:
                raise self.source.error(
                    f"a second block is labelled {label!r}", where, "Rename one of them."
                )
            seed = self._fill(table.seed)
            if len(seed) > table.limit:
                raise self.source.error(
                    f"the seed of {label!r} has {len(seed):,} characters, its limit is "
                    f"{table.limit:,}",
                    ("blocks", position, "seed"),
                    "Shorten the seed or raise the limit.",
                )
            blocks[label] = BlockSpec(
                label=label,
                description=None if table.description is None else self._fill(table.description),
                limit=table.limit,
                read_only=table.read_only,
                seed=seed,
                writers=tuple(table.writers),
                rules=self._rules(table, ("blocks", position), seed),
            )
        return tuple(blocks.values())

    def _rules(
        self,
        table: spec_file.BlockTable | spec_file.SystemTable | None,
        where: tuple[str | int, ...],
        text: str | None,
    ) -> TextRules:
        """Return the rules of a text; a declared text that breaks them would be found for ever."""
        if table is None:
            return NO_RULES
        rules = TextRules(
            tuple(self._fill(phrase) for phrase in table.must_contain),
            tuple(self._fill(phrase) for phrase in table.must_not_contain),
        )
        if text and (missing := rules.missing(text)):
            raise self.source.error(
                f"the declared text does not contain {missing[0]!r}",
                (*where, "must_contain"),
                "Put the phrase into the text, or take it out of the rules.",
            )
        if text and (forbidden := rules.forbidden(text)):
            raise self.source.error(
                f"the declared text contains {forbidden[0]!r}",
                (*where, "must_not_contain"),
                "Take the phrase out of the text, or out of the rules.",
            )
        return rules

    def _system(self) -> str | None:
        system = self.shape.system
        if system is None:
            return None
        if system.file is None:
            return None if system.text is None else self._fill(system.text)
        file = self.source.path.parent / Path(system.file).expanduser()
        try:
            return self._fill(file.read_text(encoding="utf-8").strip())
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise self.source.error(
                f"the system prompt {file} can not be read: {reason}", ("system", "file")
            ) from error

    def _fill(self, text: str) -> str:
        """Fill in the placeholders; other braces are text, since prompts may show JSON."""
        agent = self.shape.agent
        return (
            text.replace("{person}", agent.person)
            .replace("{agent}", agent.name)
            .replace("{person_slug}", slug_of(agent.person))
        )
