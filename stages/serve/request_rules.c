/* request_rules -- see the header. */
#include "stages/serve/request_rules.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { DIGEST_LENGTH = 32, HOST_MAX = 96 };

/* ---- Host and Origin ------------------------------------------------------------------------- */
static bool is_numeric(const char *name)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    char inner[HOST_MAX];
    const size_t n = strlen(name);
    if (name[0] != '[' || n < 3 || name[n - 1] != ']') return inet_pton(AF_INET, name, bytes) == 1;
    memcpy(inner, name + 1, n - 2);
    inner[n - 2] = '\0';
    return inet_pton(AF_INET6, inner, bytes) == 1;
}

static bool is_listened_on(const kiln_serve_address *a, const char *name)
{
    char own[HOST_MAX];
    (void)snprintf(own, sizeof own, strchr(a->listen, ':') ? "[%s]" : "%s", a->listen);
    return strcasecmp(name, own) == 0;
}

bool kiln_host_is_ours(const kiln_serve_address *a, const char *host)
{
    char name[HOST_MAX], port[16];
    const size_t n = strlen(host), behind = (size_t)snprintf(port, sizeof port, ":%u", a->port);
    if (n >= sizeof name) return false;
    memcpy(name, host, n + 1);
    if (n > behind && strcmp(name + n - behind, port) == 0)
        name[n - behind] = '\0';
    else if (a->port != 80) /* which browsers leave out */
        return false;
    if (strcmp(name, "127.0.0.1") == 0 || strcasecmp(name, "localhost") == 0 ||
        strcmp(name, "[::1]") == 0)
        return true;
    return is_listened_on(a, name) || (a->any && is_numeric(name));
}

bool kiln_origin_is_ours(const char *origin, const char *host)
{
    static const char scheme[] = "http://";
    return strncmp(origin, scheme, sizeof scheme - 1) == 0 &&
           strcasecmp(origin + sizeof scheme - 1, host) == 0;
}

/* ---- paths ----------------------------------------------------------------------------------- */
static bool is_lower_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

static bool is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/' ||
           c == '.' || c == '_' || c == '-';
}

bool kiln_target_is_plain(const char *path)
{
    const size_t n = strnlen(path, KILN_TARGET_MAX + 1);
    if (n == 0 || n > KILN_TARGET_MAX) return false;
    for (size_t i = 0; i < n; i++)
        if (!is_plain(path[i]) ||
            (i && path[i] == path[i - 1] && (path[i] == '/' || path[i] == '.')))
            return false;
    return true;
}

static bool take_number(const char **path, uint32_t *out)
{
    const char *p = *path;
    uint64_t v = 0;
    size_t digits = 0;
    for (; *p >= '0' && *p <= '9' && digits < 11; p++, digits++) v = 10 * v + (uint64_t)(*p - '0');
    if (digits == 0 || digits > 10 || v > UINT32_MAX || (digits > 1 && **path == '0')) return false;
    *out = (uint32_t)v;
    *path = p;
    return true;
}

static bool take_digest(const char **path, const char **out)
{
    for (int i = 0; i < DIGEST_LENGTH; i++)
        if (!is_lower_hex((*path)[i])) return false;
    *out = *path;
    *path += DIGEST_LENGTH;
    return true;
}

bool kiln_path_matches(const char *pattern, const char *path, kiln_path_parts *parts)
{
    *parts = (kiln_path_parts){0};
    for (; *pattern; pattern++) {
        if (*pattern == '*') {
            parts->name = path;
            return pattern[1] == '\0' && *path && !strchr(path, '/');
        }
        if (*pattern == '#'   ? !take_number(&path, &parts->number)
            : *pattern == '@' ? !take_digest(&path, &parts->digest)
                              : *path++ != *pattern)
            return false;
    }
    return *path == '\0';
}
