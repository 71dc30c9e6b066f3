/* schema -- SQL of theirs in the file: triggers, views, other tables and constraints, roots of
 * trees that are others'. */
#include "tests/mutate/mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const statements[] = {
    "CREATE TRIGGER t1 AFTER INSERT ON run BEGIN DELETE FROM camera; END",
    "CREATE TRIGGER t2 BEFORE INSERT ON unit BEGIN DELETE FROM unit; END",
    "CREATE TRIGGER t3 AFTER UPDATE ON stage BEGIN UPDATE camera SET name = '../../ESCAPED/evil'; "
    "END",
    "CREATE TRIGGER t4 AFTER INSERT ON stage BEGIN DELETE FROM layer; END",
    "CREATE TRIGGER t5 AFTER DELETE ON image BEGIN INSERT INTO image SELECT * FROM image; END",
    "CREATE TRIGGER t6 BEFORE INSERT ON run BEGIN SELECT raise(ABORT, 'no\x1b[31m'); END",
    "DROP TABLE quarantine; CREATE VIEW quarantine AS WITH RECURSIVE r(key, stage, name, attempts, "
    "device, reason, failed_ns) AS "
    "(SELECT x'00', 'knn',"
    " 'a', 1, 'b', 'c', 1 UNION ALL SELECT key, stage, name, attempts + 1, device, reason, "
    "failed_ns FROM r) SELECT * FROM r",
    "ALTER TABLE scene RENAME TO scene2; CREATE VIEW scene AS SELECT * FROM scene2",
    "ALTER TABLE camera RENAME TO camera2; CREATE VIEW camera AS SELECT c.* FROM camera2 c, "
    "camera2 d, camera2 e",
    "DROP VIEW digest_line; CREATE VIEW digest_line AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL "
    "SELECT n + 1 FROM r) SELECT "
    "'layer' AS kind, 'source' AS"
    " name, n AS major, '' AS minor, 0 AS segment, 'x' AS line FROM r",
    "DROP VIEW plane_data",
    "CREATE TABLE extra (a, b, c); INSERT INTO extra VALUES (1, 2, 3)",
    "CREATE INDEX camera_name ON camera (lower(name))",
    "CREATE INDEX unit_stage ON unit (stage)",
    "DROP INDEX stage_output_layer",
    "CREATE VIRTUAL TABLE v USING fts5(a)",
    "CREATE VIRTUAL TABLE w USING rtree(id, a, b)",
    "CREATE TABLE sqlite_like_stat (a); ANALYZE; UPDATE sqlite_stat1 SET stat = "
    "'9223372036854775807 1 1 1 1'",
    "ANALYZE; UPDATE sqlite_stat1 SET stat = 'x' || char(27) || '1e999 -5 0'",
    "ANALYZE; INSERT INTO sqlite_stat1 VALUES ('nothing', 'there', '1 1')",
    "PRAGMA user_version = 0",
    "PRAGMA user_version = 1",
    "PRAGMA user_version = 3",
    "DROP TABLE level_error",
    "DROP TABLE level_origin; CREATE VIEW level_origin AS SELECT id AS layer, digest AS baked, "
    "'inria' AS profile, 0 AS "
    "antialiased, 1.0 AS near_m "
    "FROM layer",
    "PRAGMA user_version = -1",
    "PRAGMA application_id = 0",
    "PRAGMA application_id = 252006674",
    "PRAGMA journal_mode = delete",
    "PRAGMA journal_mode = delete; PRAGMA auto_vacuum = full; VACUUM",
    "PRAGMA journal_mode = delete; PRAGMA page_size = 512; VACUUM; PRAGMA journal_mode = wal",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (length(hash) "
    "= 16)', 'CHECK (1)')",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '') WHERE "
    "name = 'scene'",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = replace(sql, 'width     INTEGER "
    "NOT NULL', 'width     INTEGER AS "
    "(0)') WHERE name = 'camera'",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = 'CREATE VIRTUAL TABLE camera "
    "USING nosuch(a)', rootpage = 0 WHERE "
    "name = 'camera'",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = 'not SQL ' || char(27) || '[31m' "
    "WHERE name = 'chunk'",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = NULL WHERE name = 'blob'",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM "
    "sqlite_schema WHERE name = 'photo') "
    "WHERE name = 'camera'",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM "
    "sqlite_schema WHERE name = 'unit') "
    "WHERE name = 'blob'",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'scene'",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET rootpage = 4000000000 WHERE name = "
    "'layer'",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM "
    "sqlite_schema WHERE name = "
    "'sqlite_autoindex_unit_1') WHERE name ="
    " 'sqlite_autoindex_blob_1'",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET name = 'c\x1b]0;pwned\x07' || char(10), "
    "tbl_name = name WHERE name = "
    "'parameter'",
    "PRAGMA writable_schema = on; INSERT INTO sqlite_schema SELECT type, name, tbl_name, rootpage, "
    "sql FROM sqlite_schema WHERE "
    "name = 'camera'",
    "PRAGMA writable_schema = on; DELETE FROM sqlite_schema WHERE name = 'tile_band'",
    "PRAGMA writable_schema = on; DELETE FROM sqlite_schema",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = replace(sql, 'name      TEXT', "
    "'name      TEXT COLLATE nocase') "
    "WHERE name = 'camera'",
    "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = replace(sql, 'stage     TEXT NOT "
    "NULL', 'stage     TEXT NOT NULL "
    "DEFAULT (load_extension(''x''))')"
    " WHERE name = 'unit'",
};

bool change_schema(mutation *m)
{
    const char *text = statements[below(m, sizeof statements / sizeof *statements)];
    say("schema: %s", text);
    /* a module or a part of SQLite that is not built in here: another one, then */
    if (sqlite3_exec(m->db, text, NULL, NULL, NULL) != SQLITE_OK) return false;
    if (chance(m, 30)) make_stale(m);
    return true;
}
