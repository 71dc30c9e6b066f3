-- part.sql -- the table that a part has beside blob, unit, unit_output, quarantine and run, whose text is that of manifest.sql; part
-- version 1. SCHEMA.md, "Parts", says how to read it. Before this text: page_size 65536; a part is never in WAL mode.

PRAGMA application_id = 0x4b505254; -- 'KPRT'
PRAGMA user_version = 1;            -- part version

-- What the part is of: one row.
CREATE TABLE part (
    id      INTEGER PRIMARY KEY CHECK (id = 1),                    -- always 1
    stage   TEXT NOT NULL,                                         -- whose units
    plan    BLOB NOT NULL CHECK (length(plan) = 16),               -- key of the plan that the task is of
    shard   INTEGER NOT NULL CHECK (shard >= 1),                   -- number of the task: 1, 2, ...
    shards  INTEGER NOT NULL CHECK (shards >= shard),              -- of so many
    host    TEXT NOT NULL,                                         -- that computed it; '' unknown
    version INTEGER NOT NULL,                                      -- schema version of the manifest's tables
    seal    BLOB CHECK (length(seal) = 16)                         -- hash of all rows (SCHEMA.md); NULL: it is not whole
) STRICT;
