"""How well search finds the turns that answer a question, on LoCoMo conversations.

Each conversation goes into a memory of its own through the public insert, and each question through
the public search, with the embedder that is the default and no other model. Beside it, in the same
run and on the same text: the words of a passage alone (BM25), and the vectors alone.

The data is LoCoMo's (snap-research/LoCoMo on GitHub, CC BY-NC 4.0), which is fetched by whoever
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from han_solo.memory.passage_model import Draft
from han_solo.memory.passages import Passages
from han_solo.memory.search_model import Weights
from tests.integration.memory_fixtures import BENCH, open_passages
from tests.servers import cache_directory, fresh_database, open_directory, run_postgres

from .harness import Goal

GOALS = {"recall_at_10": Goal(min=0.70), "ndcg_at_10": Goal(min=0.53)}
TOP = 10

WORDS = Weights(1, 0, 0, 0, 0, 0, 0)
VECTORS = Weights(0, 0, 1, 0, 0, 0, 0)


@dataclass(frozen=True)
class Question:
    """A question and the passages that answer it."""

    text: str
    passage_ids: frozenset[int]


def add_options(parser: ArgumentParser) -> None:
    """Add the options of this bench."""
    parser.add_argument("--data", type=Path, required=True, help="conversations, as JSON")


async def measure(options: Any) -> dict[str, float]:
    """Measure recall and rank of the whole search, of words alone, and of vectors alone."""
    conversations = json.loads(options.data.read_text(encoding="utf-8"))
    kinds = {"": Weights(), "bm25_": WORDS, "vector_": VECTORS}
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in kinds}
    spent_ms: list[float] = []
    with open_directory() as path:
        async with run_postgres(start_home(path)) as postgres:
            for conversation in conversations:
                async with (
                    fresh_database(postgres) as url,
                    open_passages(url, cache_directory()) as passages,
                ):
                    questions = await load(passages, conversation)
                    for question in questions:
                        for name, weights in kinds.items():
                            passages.weights = weights
                            began = time.perf_counter()
                            ids = await ask(passages, question.text)
                            if not name:
                                spent_ms.append((time.perf_counter() - began) * 1000)
                            found[name].append(judge(ids, question.passage_ids))
    figures: dict[str, float] = {"questions": float(len(spent_ms))}
    for name, rows in found.items():
        for label, values in zip(
            ("recall_at_5", "recall_at_10", "ndcg_at_10"), zip(*rows, strict=True), strict=True
        ):
            figures[f"{name}{label}"] = statistics.fmean(values)
    cuts = statistics.quantiles(spent_ms, n=20)
    return {**figures, "p50_ms": statistics.median(spent_ms), "p95_ms": cuts[-1]}


async def load(passages: Passages, conversation: dict[str, Any]) -> list[Question]:
    """Insert every turn; return the questions that have an answer among them."""
    ids: dict[str, int] = {}
    for session in conversation["sessions"]:
        said_at = read_time(session["date_time"])
        drafts = [
            Draft(
                text=write_turn(turn),
                author=turn["speaker"],
                thread=f"{conversation['conversation']} session {session['session']}",
                happened_at=said_at + timedelta(seconds=number),
                origin="user_stated",
            )
            for number, turn in enumerate(session["turns"])
        ]
        done = await passages.insert_many(BENCH, drafts)
        ids |= zip([turn["dia_id"] for turn in session["turns"]], done.passage_ids, strict=True)
    await passages.count_words()
    questions = [
        Question(
            question["question"],
            frozenset(ids[turn] for turn in question["evidence"] if turn in ids),
        )
        for question in conversation["questions"]
    ]
    return [question for question in questions if question.passage_ids]


def write_turn(turn: dict[str, str]) -> str:
    """Return what was said, with what a picture that was shown is said to show."""
    caption = turn.get("blip_caption")
    return f"{turn['text']} [photo: {caption}]" if caption else turn["text"]


def read_time(text: str) -> datetime:
    """Read a time as the data writes it: ``1:56 pm on 8 May, 2023``."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


async def ask(passages: Passages, query: str) -> list[int]:
    """Return the ids that a search finds, best first."""
    return [hit.passage_id for hit in (await passages.search(BENCH, query, limit=TOP)).hits]


def judge(ids: Sequence[int], right: frozenset[int]) -> tuple[float, float, float]:
    """Return recall at 5 and at 10, and nDCG at 10."""
    hits = [passage_id in right for passage_id in ids]
    gain = sum(1 / math.log2(place + 2) for place in itertools.compress(range(len(hits)), hits))
    best = sum(1 / math.log2(place + 2) for place in range(min(TOP, len(right))))
    return sum(hits[:5]) / len(right), sum(hits[:TOP]) / len(right), gain / best


def start_home(path: Path) -> Any:
    """Make the home of this bench's servers."""
    from han_solo.home import Home

    home = Home(path / "home")
    home.create()
    return home
