/* file -- reading and writing whole files and ranges, with every result checked; paths. All
 * functions are safe from any thread. Errors: KILN_E_IO with the path and strerror; KILN_E_INPUT
 * where the content is at fault. */
#ifndef KILN_BASE_FILE_H
#define KILN_BASE_FILE_H

#include "base/extern_c.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

typedef struct {
    uint64_t size;
    int64_t mtime_ns;
    uint64_t inode;
    bool is_file, is_dir;
} kiln_file_info;

/* KILN_E_IO when it cannot be looked at. */
kiln_status kiln_file_stat(const char *path, kiln_file_info *out, kiln_error *err) KILN_MUST_CHECK;
/* KILN_E_INPUT, or KILN_E_IO when it is gone: the file is not the one that `then` described (size,
 * mtime, inode). What was read of it after `then` was taken and before this call is of one
 * state. */
kiln_status kiln_file_unchanged(const char *path, const kiln_file_info *then,
                                kiln_error *err) KILN_MUST_CHECK;
bool kiln_is_file(const char *path);
bool kiln_is_dir(const char *path);

/* Opens for reading; a directory is KILN_E_INPUT ("'x' is a directory"), a missing file
 * KILN_E_INPUT too. *fd >= 0. */
kiln_status kiln_file_open(const char *path, int *fd, kiln_error *err) KILN_MUST_CHECK;
/* Exactly `bytes` at `offset`; KILN_E_INPUT when the file ends before. */
kiln_status kiln_file_read_at(int fd, const char *path, uint64_t offset, void *dst, size_t bytes,
                              kiln_error *err) KILN_MUST_CHECK;
/* Writes exactly `bytes` at `offset`. KILN_E_IO: kiln_file_write_failed has said why. */
kiln_status kiln_file_write_at(int fd, const char *path, uint64_t offset, const void *data,
                               size_t bytes, kiln_error *err) KILN_MUST_CHECK;
/* The same for a caller with a sentence of its own: returns 0 or errno. *done, which may be NULL:
 * bytes that were written. */
int kiln_file_pwrite(int fd, uint64_t offset, const void *data, size_t bytes,
                     size_t *done) KILN_MUST_CHECK;
/* The whole file, NUL-terminated behind its size; free(*data). KILN_E_INPUT above `limit` bytes. */
kiln_status kiln_file_read(const char *path, uint64_t limit, unsigned char **data, size_t *size,
                           kiln_error *err) KILN_MUST_CHECK;
/* KILN_E_IO when something that is no regular file stands at `path`: a rename would put a file in
 * the place of a folder, a pipe or (for root) a device. Links are followed. */
kiln_status kiln_file_replaceable(const char *path, kiln_error *err) KILN_MUST_CHECK;
/* Writes NAME.tmp.kiln-HOST-PID, fsync, rename. Creates missing parent folders. */
kiln_status kiln_file_write(const char *path, const void *data, size_t size,
                            kiln_error *err) KILN_MUST_CHECK;
/* Makes a new file to write a temporary into, and nothing else: what lies at `path` is removed
 * first, and a link that is put there meanwhile is not followed. *fd -1 on failure (KILN_E_IO). */
kiln_status kiln_file_create(const char *path, int *fd, kiln_error *err) KILN_MUST_CHECK;
/* Returns KILN_E_IO with a message that says why `path` cannot be written and what to do. It names
 * the free space if the disk is full, or the limit that the file has hit. */
kiln_status kiln_file_write_failed(const char *path, int error, kiln_error *err) KILN_MUST_CHECK;
/* The second half of that sentence, after "; ": what the disk or the limit of `path` has, or "" for
 * another errno. */
void kiln_file_free_text(const char *path, int error, char *out, size_t size);
/* Where an open file lies, for a sentence about it: " in 'FOLDER'"; "" where that is not known, or
 * the file is in memory alone. Files without a name lie somewhere, too. */
void kiln_fd_place_text(int fd, char *out, size_t size);
/* Fails with the sentence about a write into a scratch file that was refused: what it is for, where
 * it lies, what is free there. */
kiln_status kiln_scratch_write_failed(int fd, const char *what_for, int error,
                                      kiln_error *err) KILN_MUST_CHECK;
/* Says whether no process of this number runs on this machine: there is none, or it has ended and
 * its parent has not waited for it yet (a zombie). */
bool kiln_process_ended(long pid);
enum { KILN_PROCESS_SPACE_MAX = 16 };
/* Names where numbers of processes mean the same, for names of temporary files: "kiln-HASH", of the
 * host's name, its boot and the PID namespace, since containers share names of hosts. False where
 * one of these is not known (no /proc): then a file of that name may be of a process that runs. */
bool kiln_process_space(char out[KILN_PROCESS_SPACE_MAX]);
/* Removes what killed processes of this user left beside `path` while they wrote files of its
 * suffix: NAME.SUFFIX.tmp.kiln-HOST-PID where no process PID runs. HOST stands for a boot of this
 * host and a PID namespace; leftovers of others stay, and all where one of these is not known (no
 * /proc). Of a path without suffix: what kiln_temporary_path gives for it. What cannot be removed
 * stays. */
void kiln_leftovers_drop(const char *path);
/* The same of a folder, by the name that kiln_temporary_path gives, with all that is in it. */
void kiln_leftover_folders_drop(const char *path);
/* Removes a folder with all that is in it, following no links. What cannot be removed stays. */
void kiln_folder_drop(const char *path);
/* Joins the two into out[size], for a file that a program writes at a place of its own choice below
 * `folder`. The folder itself may be reached by links. What lies in it may come from somebody else:
 * if a component of `relative` is a symbolic link, this is KILN_E_INPUT, because the file would
 * land elsewhere. `option` names the option by which the user chooses another place. */
kiln_status kiln_path_inside(char *out, size_t size, const char *folder, const char *relative,
                             const char *option, kiln_error *err) KILN_MUST_CHECK;
/* Makes what was renamed into or removed from a folder last. Does nothing on network file systems
 * that cannot sync a folder: there the server's disk has it when the call returns that made it.
 * KILN_E_IO. */
kiln_status kiln_folder_sync(const char *folder, kiln_error *err) KILN_MUST_CHECK;
/* mkdir -p of the folder that holds `path`. */
kiln_status kiln_make_parents(const char *path, kiln_error *err) KILN_MUST_CHECK;

/* dir + "/" + name into out[size]; KILN_E_INPUT when it does not fit. name absolute: name
 * itself. */
kiln_status kiln_path_join(char *out, size_t size, const char *dir, const char *name,
                           kiln_error *err) KILN_MUST_CHECK;
#define KILN_PATH_MAX 4096
/* Writes a free name beside `path` for a file or folder that is not complete yet:
 * PATH.tmp.kiln-HOST-PID, or the same with -N behind it. A name of more than 100 bytes is cut
 * before its suffix, so that even the longest name has a temporary one. KILN_E_IO: no file can have
 * the name of `path`; KILN_E_USAGE: the path is too long. */
kiln_status kiln_temporary_path(const char *path, char out[KILN_PATH_MAX],
                                kiln_error *err) KILN_MUST_CHECK;
/* The same of a file, which it makes: whatever the user has there stays. Safe where threads write
 * files of one name. */
kiln_status kiln_temporary_create(const char *path, char out[KILN_PATH_MAX], int *fd,
                                  kiln_error *err) KILN_MUST_CHECK;
/* For a file that another file names, which must lie in the folder of that one. `path` is the
 * folder and the name joined. real: its path without links, to be opened. On false *why is the end
 * of a sentence: "is missing", "is no regular file", or that it leads out of the folder through a
 * link. The folder itself may be reached by links. */
bool kiln_member_find(const char *folder, const char *path, char real[KILN_PATH_MAX],
                      const char **why);
/* The part after the last '/', and the part after its last '.' ("" where none); both inside
 * `path`. */
const char *kiln_path_base(const char *path);
const char *kiln_path_suffix(const char *path);
/* Has the last name a suffix, an empty one ("x.png.") too? */
bool kiln_path_has_suffix(const char *path);
/* A name from inside a file stays in its folder: not empty, not absolute, no '..' component, no
 * backslash, no control byte, valid UTF-8, at most 1024 bytes. On false *why is a static reason. */
bool kiln_name_is_safe(const char *name, const char **why);
/* The same of a path made from such a name, which may be longer. */
bool kiln_relative_is_safe(const char *path, const char **why);
bool kiln_utf8_valid(const unsigned char *s, size_t n);
/* Length of the well-formed character at s[n], n > 0; 0 where there is none. */
size_t kiln_utf8_sequence(const unsigned char *s, size_t n);

KILN_C_END

#endif
