/* Which file a worker reads, and how. Under --part, and under --plan beside a claim, the manifest
 * is frozen. On a network file system a plan and a gather work on a copy of it. */
#include "stages/engine/worker/worker_open.h"

#include "schema/claim.h"

kiln_status kiln_manifest_copy_find(const kiln_engine_options *o, const char *path, bool *copied,
                                    char copy[KILN_PATH_MAX], kiln_error *err)
{
    *copied = false;
    if ((!o->plan && !o->gather) || o->allow_network) return KILN_OK;
    KILN_TRY(kiln_manifest_is_remote(path, copied, err));
    if (!*copied) return KILN_OK;
    if (o->scratch_dir) return kiln_manifest_copy_path(path, o->scratch_dir, copy, err);
    return kiln_fail(err, KILN_E_USAGE,
                     "'%s' is on a network file system, so --%s works on a copy: give "
                     "--scratch-dir a folder on a local disk with enough space",
                     path, o->plan ? "plan" : "gather");
}

static kiln_open_mode worker_mode(const kiln_engine_options *o, const char *path)
{
    kiln_claim claim = {0};
    bool there = false;
    if (o->part) return KILN_OPEN_FROZEN;
    if (!o->plan) return KILN_OPEN_READ;
    /* the parent has read it, or says why not */
    if (kiln_claim_read(path, &there, &claim, NULL) != KILN_OK) there = false;
    kiln_claim_release(&claim);
    /* a plan writes its claim when its last worker has nothing to do */
    return there ? KILN_OPEN_FROZEN : KILN_OPEN_READ;
}

kiln_status kiln_worker_open(const kiln_engine_options *o, const char *path, const char *stage,
                             kiln_manifest **out, kiln_error *err)
{
    char copy[KILN_PATH_MAX];
    bool copied = false;
    const kiln_open_mode mode = worker_mode(o, path);
    if (mode != KILN_OPEN_FROZEN) KILN_TRY(kiln_manifest_copy_find(o, path, &copied, copy, err));
    return kiln_manifest_open(copied ? copy : path, mode, stage, o->allow_network, out, err);
}
