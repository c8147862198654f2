"""Lists of Letta, read to the end and proved complete.

The SDK's pager is not used: over one of Letta's broken cursors it returns some items twice and
loses others without a word. A list of one page that is not full is complete; anything longer must
have as many items as Letta counts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from han_solo.errors import LettaUnavailable

from .fields import Json, as_list, as_object, need_str

PAGE_ROWS: Final = 1000
"""The largest page that Letta 0.16.8 was seen to honour; its defaults are 10 and 50."""

FetchPage = Callable[[int, str | None], Awaitable[object]]
FetchCount = Callable[[], Awaitable[object]]


async def fetch_all(
    what: str, fetch_page: FetchPage, fetch_count: FetchCount, *, page_rows: int = PAGE_ROWS
) -> tuple[Json, ...]:
    """Fetch every item, each once.

    Args:
        what: the items' name, for the error's sentence.
        fetch_page: takes the page's length and the id of the last item before it.
        fetch_count: asks how many items there are.
        page_rows: the page's length.

    Raises:
        LettaUnavailable: when the pages do not add up to Letta's own count.
    """
    found: dict[str, Json] = {}
    after: str | None = None
    while True:
        page = [
            as_object(item, what)
            for item in as_list(await fetch_page(page_rows, after), f"{what}s")
        ]
        before = len(found)
        found.update((need_str(item, "id", what), item) for item in page)
        if len(page) < page_rows:
            break
        if len(found) == before:  # a cursor that stands still; the count below will tell
            break
        after = need_str(page[-1], "id", what)
    if after is not None:
        count = await fetch_count()
        if count != len(found):
            raise LettaUnavailable(
                f"Letta's list of {what}s can not be read whole: {len(found):,} of {count} came.",
                hint="Nothing was decided on it; try again when nobody else changes them.",
            )
    return tuple(found.values())
