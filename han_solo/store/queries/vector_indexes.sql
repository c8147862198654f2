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
