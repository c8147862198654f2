-- What a search showed beside what it found, and one verdict on each passage of a search.

ALTER TABLE memory.searches
    ADD COLUMN linked_ids bigint[] NOT NULL DEFAULT '{}';

COMMENT ON COLUMN memory.searches.linked_ids IS
    'The passages that were shown because those found are linked with them.';

CREATE INDEX searches_by_linked ON memory.searches USING gin (linked_ids)
    WHERE cardinality(linked_ids) > 0;

ALTER TABLE memory.passage_uses
    ADD CONSTRAINT passage_uses_verdict CHECK (kind = 'read' OR search_id IS NOT NULL);

CREATE UNIQUE INDEX passage_uses_one_verdict ON memory.passage_uses (search_id, passage_id)
    WHERE kind <> 'read';
CREATE INDEX passage_uses_by_time ON memory.passage_uses (at);
