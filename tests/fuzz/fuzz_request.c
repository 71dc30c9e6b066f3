/* fuzz_request -- three lines that a client chooses: Host, Origin, path. What is answered is of the
 * form that was meant, whatever the lines hold. */
#include "tests/fuzz/fuzz.h"

#include "stages/serve/request_rules.h"
#include "stages/serve/routes.h"
#include "stages/serve/token.h"

#include <stdlib.h>
#include <string.h>

static void look_at_path(const char *path)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
    static const char token[] = "00000000000000000000000000000000";
    kiln_path_parts parts;
    const kiln_route *route = kiln_route_find(path, &parts);
    HOLDS(!route || (kiln_target_is_plain(path) && strchr(path, '.')));
    HOLDS(!route || !parts.digest || strspn(parts.digest, "0123456789abcdef") >= 32);
    HOLDS(kiln_token_equal(token, path, strlen(path)) == (strcmp(token, path) == 0));
    if (!kiln_target_is_plain(path)) return;
    HOLDS(strlen(path) <= KILN_TARGET_MAX && strspn(path, plain) == strlen(path));
    HOLDS(!strstr(path, "..") && !strstr(path, "//"));
    HOLDS(!kiln_path_matches("viewer/*", path, &parts) ||
          (*parts.name && !strchr(parts.name, '/')));
}

void kiln_fuzz_request(const void *argument, const uint8_t *data, size_t size)
{
    static const kiln_serve_address here = {.listen = "127.0.0.1", .port = 8123},
                                    all = {.listen = "::", .any = true, .port = 8123};
    char *text = calloc(size + 1, 1), *at = text;
    (void)argument;
    HOLDS(text);
    if (size) memcpy(text, data, size);
    const char *host = strsep(&at, "\n"), *origin = at ? strsep(&at, "\n") : "",
               *path = at ? at : "";
    const bool ours = kiln_host_is_ours(&here, host);
    HOLDS(!ours || (strlen(host) > 5 && strcmp(host + strlen(host) - 5, ":8123") == 0));
    HOLDS(!ours || kiln_host_is_ours(&all, host));
    HOLDS(!kiln_origin_is_ours(origin, host) || strlen(origin) == strlen(host) + strlen("http://"));
    look_at_path(path);
    free(text);
}
