/* former_log -- notices that the log beside a manifest is of another file, which stood there
 * before.
 *
 * SQLite finds a log by its name alone. If a file is put into the manifest's place while NAME-wal
 * holds what a stage has written (it was killed, or is at work), SQLite takes that for changes of
 * the new file: it shows pages of two bakes as one, and the last connection to close writes the
 * mixture into the new file. Whoever opens the file afterwards cannot know; who has seen the log
 * beside the former file can, and does not open the new one. */
#ifndef KILN_STAGES_SERVE_FORMER_LOG_H
#define KILN_STAGES_SERVE_FORMER_LOG_H

#include <stdbool.h>
#include <sys/types.h>

enum { KILN_LOG_HEAD = 32 /* of a log: has a number that SQLite chooses by chance */ };

typedef struct {
    bool there, filled;
    dev_t device;
    ino_t inode;
    unsigned char head[KILN_LOG_HEAD]; /* if filled */
} kiln_seen_log;

/* Looks at the log beside the manifest; one that cannot be read is not there. Changes nothing, and
 * takes no lock of SQLite's away, since those are on other files. */
void kiln_log_look(const char *manifest, kiln_seen_log *out);
/* Says whether the log that is there now holds changes of the former file: seen is what was seen
 * beside that, whose connection is still open, so that no other file has the number of its log. */
bool kiln_log_is_former(const char *manifest, const kiln_seen_log *seen);

#endif
