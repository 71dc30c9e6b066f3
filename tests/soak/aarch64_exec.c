/* aarch64_exec -- lets programs for aarch64 start each other under qemu-user where the kernel does
 * not know such programs (binfmt_misc). A library for LD_PRELOAD, compiled for aarch64: execve and
 * its kin begin with qemu, $KILN_QEMU, where the file is a program for aarch64. posix_spawn is not
 * caught. */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORDS_MOST = 4096 };
#define SELF "/proc/self/exe"

static int is_for_aarch64(const char *path)
{
    Elf64_Ehdr head;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, &head, sizeof head);
    if (fd >= 0) (void)close(fd);
    return n == (ssize_t)sizeof head && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
           head.e_machine == EM_AARCH64;
}

int execve(const char *path, char *const argv[], char *const envp[])
{
    char self[PATH_MAX], *words[WORDS_MOST] = {getenv("KILN_QEMU"), "-0", argv[0]};
    if (strcmp(path, SELF) == 0) {
        const ssize_t n = readlink(SELF, self, sizeof self - 1);
        if (n < 0) return -1;
        self[n] = '\0';
        path = self;
    }
    if (!words[0] || !is_for_aarch64(path)) return (int)syscall(SYS_execve, path, argv, envp);
    words[3] = (char *)path;
    for (size_t i = 1; argv[i] && i + 4 < WORDS_MOST; i++) words[i + 3] = argv[i];
    return (int)syscall(SYS_execve, words[0], words, envp);
}

int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }

int execvpe(const char *file, char *const argv[], char *const envp[])
{
    if (strchr(file, '/')) return execve(file, argv, envp);
    for (const char *at = getenv("PATH"); at && *at;) {
        char path[PATH_MAX];
        const size_t n = strcspn(at, ":");
        if (n + strlen(file) + 2 <= sizeof path) {
            memcpy(path, at, n);
            path[n] = '/';
            strcpy(path + n + 1, file);
            (void)execve(path, argv, envp);
        }
        at += n + (at[n] == ':');
    }
    return -1;
}

int execvp(const char *file, char *const argv[]) { return execvpe(file, argv, environ); }
