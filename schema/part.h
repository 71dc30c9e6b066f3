/* part -- the units that one task has computed, in a file of their own (SCHEMA.md, "Parts";
 * part.sql).
 *
 * Several hosts bake one manifest that none of them writes. Each writes a part: an SQLite file with
 * the manifest's tables blob, unit, unit_output, quarantine and run, and one row that says what it
 * is of. Gathering puts what the manifest lacks into it.
 *
 * A part may come from a stranger and from a bad disk: opening checks its file and tables as
 * guard.c checks those of a manifest. It also compares all rows except packed bytes with a hash
 * that kiln_part_finish has stored; gathering unpacks each blob and checks its hash before it is
 * stored. KILN_E_INPUT where it is no part, or one that no program of ours writes; KILN_E_IO where
 * it was right once (cut short, a flipped bit). Each sentence names the file. A caller that meets
 * either renames it, so that it is met once.
 *
 * A handle belongs to one thread. Paths are borrowed for the call. */
#ifndef KILN_SCHEMA_PART_H
#define KILN_SCHEMA_PART_H

#include "base/extern_c.h"
#include "schema/claim.h"
#include "schema/manifest.h"

KILN_C_BEGIN

enum { KILN_PART_NAME_MAX = 128 }; /* bytes of a part's file name with its NUL */

typedef struct {
    char stage[32];   /* lower-case letters, digits, '-' and '_' */
    kiln_hash plan;   /* key of the plan that the task is of; not zero */
    uint32_t shard;   /* 1 .. shards */
    uint32_t shards;  /* 1 .. KILN_TASKS_MAX */
    char host[256];   /* that computed it; "" unknown */
    uint32_t version; /* KILN_SCHEMA_VERSION of the manifest's tables; create fills it in */
} kiln_part_info;

/* The name that a whole part has in its folder: STAGE-PLAN-I-of-N.part, PLAN in 32 hexadecimal
 * digits. KILN_E_USAGE: the info breaks the rules above. */
kiln_status kiln_part_name(const kiln_part_info *info, char out[KILN_PART_NAME_MAX],
                           kiln_error *err) KILN_MUST_CHECK;

/* ---- writing --------------------------------------------------------------------------------- */
/* Where in `folder` a task of this host makes the part before it is whole: a name of its own, by
 * which kiln_part_leftovers_drop finds the file if the task is killed. restarts: as
 * kiln_part_finish takes it. KILN_E_USAGE: the path is too long, or as kiln_part_name. */
kiln_status kiln_part_draft_path(const kiln_part_info *info, const char *folder, uint32_t restarts,
                                 char out[4096], kiln_error *err) KILN_MUST_CHECK;
/* Makes a new part at `path`, which is private to this process (kiln_part_draft_path); a file that
 * is there is removed. *out takes kiln_unit_store, kiln_unit_forget, kiln_manifest_put_blob,
 * kiln_quarantine_put, kiln_run_row_put, kiln_manifest_begin, _commit, _rollback and
 * kiln_bulk_store, which writes it once, too; nothing else of manifest.h works on it. Nothing is
 * synced before kiln_part_finish: a process that is killed leaves a file that is no part. base:
 * blobs that it has are left out. NULL: none are. It must outlive *out, and whoever stores into
 * *out uses it at that time. kiln_manifest_discard gives up: it closes and removes the file. */
kiln_status kiln_part_create(const char *path, const kiln_part_info *info, kiln_manifest *base,
                             kiln_manifest **out, kiln_error *err) KILN_MUST_CHECK;
/* Ends the part: seals it with the hash of its rows, closes it, syncs it and puts it at FOLDER/NAME
 * (kiln_part_name) in one step: a rename where both are on one file system, else a copy named
 * NAME.tmp.HOST.PID.RESTARTS, synced, then renamed. The folder is synced last. A part of that name
 * is replaced. restarts: how often a scheduler has begun this task anew; two that run by mistake at
 * the same time then write different files. m is released in any case; after a failure neither the
 * private file nor the copy is left. */
kiln_status kiln_part_finish(kiln_manifest *m, const char *folder, uint32_t restarts,
                             kiln_error *err) KILN_MUST_CHECK;
/* Removes copies NAME.tmp.* of parts from the folder which killed tasks have left. of: "STAGE", or
 * "STAGE-PLAN" for the parts of one plan. Those of this host whose process has ended; with
 * all_hosts every one, for a caller that needs none of these parts any more: a task that still runs
 * then fails. What cannot be removed stays. */
void kiln_part_leftovers_drop(const char *folder, const char *of, bool all_hosts);

/* ---- reading --------------------------------------------------------------------------------- */
typedef struct kiln_part kiln_part;
/* Reads the file without any lock and makes no file beside it (immutable=1): a whole part is never
 * changed, only replaced. A link is not followed. Takes 24 bytes a unit. *unreadable (may be NULL):
 * it failed because the system would not open or read the file, on this host or at this time; its
 * content may be sound. */
kiln_status kiln_part_open(const char *path, kiln_part **out, bool *unreadable,
                           kiln_error *err) KILN_MUST_CHECK;
/* Has the system failed to read the file since it was opened, whatever the gather made of that? */
bool kiln_part_unreadable(const kiln_part *p);
void kiln_part_close(kiln_part *p); /* accepts NULL */
const kiln_part_info *kiln_part_get_info(const kiln_part *p);
/* Keys of the units that it has done, sorted, each once; valid until it is closed. */
const kiln_hash *kiln_part_keys(const kiln_part *p, uint64_t *n);

/* Host memory that gathering this part takes at most beside SQLite's caches and KILN_BULK_RAM, by
 * its size and its largest blob: never more than KILN_PART_RAM, and much less where the part or its
 * blobs are small. */
uint64_t kiln_part_ram(const kiln_part *p);

/* Gathering may use so many threads, the caller's among them (of more than six, six), to read,
 * unpack and hash while it stores; 0 and 1: the caller's alone, as without this call. Fewer unpack
 * where blobs are so large that these threads would need more than KILN_PART_RAM. */
void kiln_part_use_threads(kiln_part *p, unsigned threads);

/* Memory of a gather, which the next one uses again instead of asking the system for it: up to
 * kiln_part_ram of the largest part. *memory: NULL before the first gather; the caller frees it
 * behind the last. */
typedef struct kiln_part_group kiln_part_memory;
void kiln_part_use_memory(kiln_part *p, kiln_part_memory **memory);
void kiln_part_memory_free(kiln_part_memory *memory); /* accepts NULL */

typedef struct {
    uint64_t inserted; /* units */
    uint64_t present;  /* wanted units of the part that the manifest had already */
    uint64_t unwanted; /* units that are not in `wanted` */
    /* units that were damaged or lack a blob; the status says why of the first */
    uint64_t refused;
    uint64_t quarantined, runs;
    uint64_t blobs, bytes; /* stored: number, packed bytes */
} kiln_part_report;

/* What a gather holds at most beside SQLite's caches and KILN_BULK_RAM: batches of packed blobs,
 * most of them of KILN_PART_BATCH_BYTES, since only a blob that is larger has a larger one; and
 * blobs unpacked, twice. A transaction stores up to KILN_PART_GROUP batches. */
enum { KILN_PART_BATCH_BYTES = 16 << 20, KILN_PART_BATCHES = 8, KILN_PART_GROUP = 4 };
#define KILN_PART_RAM (4 * (KILN_BLOB_MAX + (1 << 20)) + 2 * KILN_BLOB_MAX)

/* Puts into m, a writer without an open transaction, or a part that is being made, what it lacks:
 * units with their blobs and outputs, in the order of `wanted` (n keys, each once; NULL: all units,
 * in the order in which they were computed), quarantined units (wanted and not done, unless m has a
 * later row), rows of `run`. A transaction has KILN_PART_GROUP batches at most; a unit comes after
 * all of its blobs, so that after a kill each unit of m is whole, and gathering again goes on.
 * Gathering twice changes nothing. A unit is left out and counted if it is damaged, or if neither
 * the part nor m has its blob (valid blobs of it may be stored). The rest is gathered: then the
 * status is KILN_E_IO or KILN_E_INPUT of the first such unit with *report filled in. So after such
 * a status report->inserted units are in m. Failures of m itself end it at once; m_failed (may be
 * NULL) says that it was one of m's. Runs of other stages and units of other stages are refused. */
kiln_status kiln_part_gather(kiln_manifest *m, kiln_part *p, const kiln_hash *wanted, uint64_t n,
                             kiln_part_report *report, bool *m_failed,
                             kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
