/* json -- a JSON file from outside: what parses is written and parses again to the same value. */
#include "tests/fuzz/fuzz.h"

#include "stages/engine/json_text.h"
#include "stages/files/json_file.h"

#include <stdlib.h>
#include <string.h>

static void write_again(const json_t *v)
{
    json_t *again = NULL;
    json_error_t why;
    kiln_error err = {0};
    char *text = kiln_json_text(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    HOLDS(text);
    HOLDS(kiln_json_parse(text, strlen(text),
                          JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES,
                          "itself", &again, &why, &err) == KILN_OK);
    HOLDS(again && json_equal(v, again));
    json_decref(again);
    free(text);
}

/* Numbers as the camera readers take them, of whatever it is. */
static void take_numbers(const json_t *v)
{
    double numbers[16];
    for (uint32_t n = 0; n <= 4; n++) {
        (void)kiln_json_vector(v, n, numbers);
        (void)kiln_json_matrix(v, n, 4, numbers);
    }
}

void kiln_fuzz_json(const void *argument, const uint8_t *data, size_t size)
{
    json_t *v = NULL;
    kiln_error err = {0};
    (void)argument;
    const kiln_status st = kiln_json_file_read(kiln_fuzz_path(data, size), &v, &err);
    if (st != KILN_OK) {
        kiln_fuzz_refusal(st, &err);
        HOLDS(!v);
        return;
    }
    write_again(v);
    take_numbers(v);
    json_decref(v);
}
