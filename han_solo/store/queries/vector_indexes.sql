-- name: prepare_build()$
-- Build in memory on this connection: an index that does not fit takes many times as long.
SELECT set_config('maintenance_work_mem', '512MB', false);

-- name: make_index()!
-- Make the index of a model's vectors, at its width, while nothing else writes them.
CREATE INDEX IF NOT EXISTS vectors_nearest_/*embedder*/1
    ON memory.vectors
    USING hnsw ((own::halfvec(/*width*/256)) halfvec_cosine_ops)
    WHERE embedder_id = /*embedder*/1;

-- name: make_index_beside()!
-- Make the index of a model's vectors while others go on writing them.
CREATE INDEX CONCURRENTLY IF NOT EXISTS vectors_nearest_/*embedder*/1
    ON memory.vectors
    USING hnsw ((own::halfvec(/*width*/256)) halfvec_cosine_ops)
    WHERE embedder_id = /*embedder*/1;

-- name: drop_index()!
-- Drop the index of a model's vectors, before many are added or when it is retired.
DROP INDEX IF EXISTS memory.vectors_nearest_/*embedder*/1;
