"""Making the index of a model's vectors: in memory, and where memory can not be shared, alone.

An index that does not fit into the memory it is built in takes many times as long. Workers that
build it together share that memory under ``/dev/shm``, of which a container has 64 MiB unless it is
given more; then the build fails as if the disk were full
(https://github.com/pgvector/pgvector/issues/453), and is done by one process instead.
"""

from __future__ import annotations

from typing import Final

import asyncpg

from .. import logs
from ..store.database import Connection
from .statements import Indexes

BESIDE_VECTOR_BYTES: Final = 900
"""What a vector's place in the graph takes beside its numbers, of two bytes each."""

LEAST_MIB: Final = 64
MOST_MIB: Final = 2_048
"""The memory is the database's, and others want some of it."""

_log = logs.get("memory")


async def build_index(connection: Connection, indexes: Indexes, width: int) -> None:
    """Make the index while others go on writing; one that was cut short is dropped first.

    Args:
        connection: one of its own, whose settings are changed.
        indexes: the statements of the model.
        width: numbers in a vector.
    """
    count = await indexes.count_indexed(connection)
    needed_mib = count * (2 * width + BESIDE_VECTOR_BYTES) // 2**20 + 1
    memory_mib = max(LEAST_MIB, min(needed_mib, MOST_MIB))
    await indexes.prepare_build(connection, memory=f"{memory_mib}MB")
    await indexes.drop_index(connection)
    try:
        await indexes.make_index_beside(connection)
    except asyncpg.InsufficientResourcesError as error:
        _log.warning("memory.index_built_alone", reason=str(error))
        await indexes.drop_index(connection)  # a build that failed leaves one that is not used
        await indexes.build_alone(connection)
        await indexes.make_index_beside(connection)
