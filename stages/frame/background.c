#include "stages/frame/background.h"

#include <stdlib.h>
#include <string.h>

static void fill_background(double out[3], double v)
{
    for (int c = 0; c < 3; c++) out[c] = v;
}

static int three_numbers(const char *text, double out[3])
{
    for (int c = 0; c < 3; c++) {
        char *end;
        out[c] = strtod(text, &end);
        if (end == text || !(out[c] >= 0) || !(out[c] <= 255) || *end != (c < 2 ? ',' : '\0'))
            return 0;
        text = end + 1;
    }
    return 1;
}

kiln_status kiln_background_parse(const char *text, const kiln_scene *scene, double out[3],
                                  kiln_error *err)
{
    fill_background(out, 0);
    if (strcmp(text, "scene") == 0) {
        if (scene && scene->has_background) memcpy(out, scene->background, 3 * sizeof *out);
        return KILN_OK;
    }
    if (strcmp(text, "black") == 0) return KILN_OK;
    if (strcmp(text, "white") == 0) {
        fill_background(out, 1);
        return KILN_OK;
    }
    if (!three_numbers(text, out))
        return kiln_fail(
            err, KILN_E_USAGE,
            "--background takes scene, white, black or r,g,b (0 to 1, or 0 to 255), not '%s'",
            text);
    if (out[0] > 1 || out[1] > 1 || out[2] > 1)
        for (int c = 0; c < 3; c++) out[c] /= 255;
    return KILN_OK;
}

kiln_status kiln_background_check(const char *text, kiln_error *err)
{
    double colour[3];
    return kiln_background_parse(text, NULL, colour, err);
}
