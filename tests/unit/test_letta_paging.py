"""A list is complete or an error; a cursor that stands still or skips is noticed."""

from __future__ import annotations

import pytest

from han_solo.errors import LettaUnavailable
from han_solo.letta import paging

ROWS = [{"id": f"tool-{number:02}"} for number in range(10)]


class _Pages:
    def __init__(self, *, count: int = len(ROWS), skip: int = 0, stuck: bool = False) -> None:
        self.count = count
        self.skip = skip
        self.stuck = stuck
        self.counted = 0

    async def fetch(self, rows: int, after: str | None) -> object:
        if after is None or self.stuck:
            return ROWS[:rows]
        start = next(n for n, row in enumerate(ROWS) if row["id"] == after) + 1 + self.skip
        return ROWS[start : start + rows]

    async def total(self) -> object:
        self.counted += 1
        return self.count


@pytest.mark.parametrize("page_rows", [1, 3, 5, 10, 11])
async def test_every_row_comes_once_whatever_the_page(page_rows: int) -> None:
    pages = _Pages()
    found = await paging.fetch_all("tool", pages.fetch, pages.total, page_rows=page_rows)
    assert list(found) == ROWS


async def test_one_page_that_is_not_full_needs_no_count() -> None:
    pages = _Pages()
    await paging.fetch_all("tool", pages.fetch, pages.total, page_rows=11)
    assert pages.counted == 0


async def test_a_cursor_that_skips_is_noticed() -> None:
    pages = _Pages(skip=1)
    with pytest.raises(LettaUnavailable, match="8 of 10"):
        await paging.fetch_all("tool", pages.fetch, pages.total, page_rows=4)


async def test_a_cursor_that_stands_still_is_noticed() -> None:
    pages = _Pages(stuck=True)
    with pytest.raises(LettaUnavailable, match="4 of 10"):
        await paging.fetch_all("tool", pages.fetch, pages.total, page_rows=4)
