/* up_axis -- see the header. */
#include "stages/select/up_axis.h"

#include "base/vec3.h"

#include <stdio.h>
#include <string.h>

void kiln_up_vector(const char *up, double out[3])
{
    double v[3] = {0, -1, 0};
    double sign = up[0] == '-' ? -1 : 1;
    const char *axis = up + (up[0] == '-' || up[0] == '+');
    if (*axis >= 'x' && *axis <= 'z' && axis[1] == '\0') {
        memset(v, 0, sizeof v);
        v[*axis - 'x'] = sign;
    } else if (sscanf(up, "%lf %lf %lf", &v[0], &v[1], &v[2]) != 3) {
        v[0] = v[2] = 0;
        v[1] = -1;
    }
    double length = kiln_vec3_length(v);
    for (int i = 0; i < 3; i++) out[i] = length > 0 ? v[i] / length : (i == 1 ? -1 : 0);
}

void kiln_turn_axis(const kiln_similarity *s, char *axis, size_t capacity)
{
    double up[3], turned[3];
    if (!axis[0]) return;
    kiln_up_vector(axis, up);
    for (int i = 0; i < 3; i++)
        turned[i] = s->r[3 * i] * up[0] + s->r[3 * i + 1] * up[1] + s->r[3 * i + 2] * up[2] + 0.0;
    for (int i = 0; i < 3; i++)
        if (turned[i] == 1 || turned[i] == -1) {
            snprintf(axis, capacity, "%s%c", turned[i] < 0 ? "-" : "", "xyz"[i]);
            return;
        }
    snprintf(axis, capacity, "%.9g %.9g %.9g", turned[0], turned[1], turned[2]);
}
