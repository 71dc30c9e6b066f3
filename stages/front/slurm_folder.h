/* slurm_folder -- OUT/slurm, what kiln slurm keeps beside a bake: parts, logs, a lock, and small
 * files of one line.
 *
 * It lies in a folder that may have been downloaded, and that others may write to. Nothing in it is
 * more than data, and nothing is reached through a link that lies in it: files are opened by
 * descriptors of the folders, links are not followed, and what is written is made under a new name
 * and renamed.
 *
 *   parts/            what tasks have computed
 *   logs-CHAIN/       logs of one call's jobs. Slurm opens them by their paths, and would follow
 *                     links: so the folder is made by that call, under a name that nobody knows
 *                     beforehand
 *   lock              held by the kiln slurm that submits
 *   chain             the last call's CHAIN: jobs of an earlier one do nothing
 *   begun             the round's job that has begun last (slurm_last_job.h)
 *   ended             "CODE STAGE WHY": how the bake has ended
 *   lost              what has become of tasks that left no part
 *   cancelled         --cancel was given: nothing more is submitted
 *   partial-STAGE     the stage has given units up */
#ifndef KILN_STAGES_FRONT_SLURM_FOLDER_H
#define KILN_STAGES_FRONT_SLURM_FOLDER_H

#include "base/file.h"

#include <stdbool.h>

enum { KILN_SLURM_WHY_MAX = 900 };

typedef struct {
    char path[KILN_PATH_MAX];     /* OUT/slurm, absolute and without links */
    char parts[KILN_PATH_MAX];    /* its folder of parts */
    char manifest[KILN_PATH_MAX]; /* OUT/manifest.db */
    int fd, parts_fd, lock_fd;    /* -1: not open */
} kiln_slurm_folder;

/* Opens it; make: makes what is missing, OUT too. Otherwise *there is false if there is none.
 * KILN_E_INPUT: a link, a pipe or a file has the name of one of its folders, or its path cannot
 * stand in a job's comment or name of a log (line breaks, \). */
kiln_status kiln_slurm_folder_open(const char *out, bool make, kiln_slurm_folder *f, bool *there,
                                   kiln_error *err) KILN_MUST_CHECK;
void kiln_slurm_folder_close(kiln_slurm_folder *f);

/* Keeps another kiln slurm from submitting until the folder is closed or the lock is let go. A file
 * system without locks keeps nobody out. KILN_E_BUSY. */
kiln_status kiln_slurm_lock(kiln_slurm_folder *f, kiln_error *err) KILN_MUST_CHECK;
void kiln_slurm_unlock(kiln_slurm_folder *f);

/* Makes logs-CHAIN. KILN_E_IO: it is there already, among others. */
kiln_status kiln_slurm_logs_make(const kiln_slurm_folder *f, const char *chain,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Fails where logs-CHAIN is no folder of its own any more: Slurm would write elsewhere.
 * KILN_E_INPUT. */
kiln_status kiln_slurm_logs_check(const kiln_slurm_folder *f, const char *chain,
                                  kiln_error *err) KILN_MUST_CHECK;

/* A file of one line: makes or replaces it; says whether anything has this name; removes it (that
 * there is none is no failure). */
kiln_status kiln_slurm_note_put(const kiln_slurm_folder *f, const char *name, const char *line,
                                kiln_error *err) KILN_MUST_CHECK;
bool kiln_slurm_note_there(const kiln_slurm_folder *f, const char *name);
kiln_status kiln_slurm_note_drop(const kiln_slurm_folder *f, const char *name,
                                 kiln_error *err) KILN_MUST_CHECK;

/* Reads the line; *there false: there is no such file. KILN_E_INPUT: it is a link, no file, or has
 * no line that fits. */
kiln_status kiln_slurm_note_read(const kiln_slurm_folder *f, const char *name, char *line,
                                 size_t size, bool *there, kiln_error *err) KILN_MUST_CHECK;

typedef struct {
    bool there;
    int code;          /* 0 .. 255 */
    const char *stage; /* of the stage graph */
    char why[KILN_SLURM_WHY_MAX];
} kiln_slurm_end;

/* `ended`. KILN_E_INPUT: it is no such file. */
kiln_status kiln_slurm_end_read(const kiln_slurm_folder *f, kiln_slurm_end *out,
                                kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_slurm_end_put(const kiln_slurm_folder *f, int code, const char *stage,
                               const char *why, kiln_error *err) KILN_MUST_CHECK;

/* Removes what an earlier call has left: begun, lost, ended, cancelled, partial-STAGE of every
 * stage. */
kiln_status kiln_slurm_notes_clear(const kiln_slurm_folder *f, kiln_error *err) KILN_MUST_CHECK;
/* The name of the note partial-STAGE, into out[64]. */
void kiln_slurm_partial_name(const char *stage, char out[64]);

#endif
