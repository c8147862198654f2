-- name: count_indexed()$
-- Count the vectors that the index of a model will have.
SELECT count(chunk_id)
FROM memory.vectors
WHERE embedder_id = /*embedder*/1 AND own IS NOT NULL;

-- name: prepare_build(memory)$
-- Let an index be built in so much memory on this connection.
SELECT set_config('maintenance_work_mem', :memory, false);

-- name: build_alone()$
-- Build without parallel workers on this connection: they need memory that they share.
SELECT set_config('max_parallel_maintenance_workers', '0', false);

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
