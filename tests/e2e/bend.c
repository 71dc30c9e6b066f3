/* bend -- a photo of a lens, made from a drawing of a pinhole: bend DRAWING.npy F MODEL WIDTH
 * HEIGHT OUT.npy PARAMETER...
 *
 * DRAWING is [h][w][4] float32 with focal length F and its centre in the middle; OUT is
 * [HEIGHT][WIDTH][3]. Written for itself, from the formulas of COLMAP's models with libm, so that
 * it can judge kernels/lens: a pixel's ray is sought with differences instead of derivatives, and
 * the drawing is sampled by Catmull-Rom. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double p[16];
static int model, width, height;

static double polynomial(double q, const double *k, int n)
{
    double sum = 1, power = q;
    for (int i = 0; i < n; i++, power *= q) sum += k[i] * power;
    return sum;
}

static void opencv(const double k[4], double u, double v, double factor, double out[2])
{
    const double q = u * u + v * v;
    out[0] = u * factor + 2 * k[2] * u * v + k[3] * (q + 2 * u * u);
    out[1] = v * factor + 2 * k[3] * u * v + k[2] * (q + 2 * v * v);
}

/* The pixel of the ray (x, y, 1). */
static void project(double x, double y, double out[2])
{
    const int one = model == 0 || model == 2 || model == 3 || model == 8 || model == 9 ||
                    model == 12 || model == 14;
    const double *c = p + (one ? 1 : 2), *k = c + 2, fx = p[0], fy = one ? p[0] : p[1],
                 r = hypot(x, y);
    double u = x, v = y, at[2];
    if (model == 17) {
        out[0] = (atan2(x, 1) / (2 * M_PI) + 0.5) * width;
        out[1] = (0.5 - atan2(-y, hypot(x, 1)) / M_PI) * height;
        return;
    }
    if ((model == 5 || (model >= 8 && model <= 11) || model == 14 || model == 15) && r > 1e-12) {
        u *= atan(r) / r;
        v *= atan(r) / r;
    }
    const double q = u * u + v * v;
    at[0] = u;
    at[1] = v;
    switch (model) {
    case 2:
        at[0] = u * (1 + k[0] * q), at[1] = v * (1 + k[0] * q);
        break;
    case 3:
        at[0] = u * polynomial(q, k, 2), at[1] = v * polynomial(q, k, 2);
        break;
    case 4:
        opencv(k, u, v, polynomial(q, k, 2), at);
        break;
    case 5:
        at[0] = u * polynomial(q, k, 4), at[1] = v * polynomial(q, k, 4);
        break;
    case 6:
        opencv(k, u, v,
               (1 + k[0] * q + k[1] * q * q + k[4] * q * q * q) /
                   (1 + k[5] * q + k[6] * q * q + k[7] * q * q * q),
               at);
        break;
    case 7:
        if (r > 1e-9)
            at[0] = x * atan(2 * r * tan(k[0] / 2)) / (r * k[0]),
            at[1] = y * atan(2 * r * tan(k[0] / 2)) / (r * k[0]);
        else
            at[0] = x * 2 * tan(k[0] / 2) / k[0], at[1] = y * 2 * tan(k[0] / 2) / k[0];
        break;
    case 8:
        at[0] = u * polynomial(q, k, 1), at[1] = v * polynomial(q, k, 1);
        break;
    case 9:
        at[0] = u * polynomial(q, k, 2), at[1] = v * polynomial(q, k, 2);
        break;
    case 10:
        opencv(k, u, v, 1 + k[0] * q + k[1] * q * q + k[4] * pow(q, 3) + k[5] * pow(q, 4), at);
        at[0] += k[6] * q;
        at[1] += k[7] * q;
        break;
    case 11: {
        const double a = u * polynomial(q, k, 6), b = v * polynomial(q, k, 6), s = a * a + b * b;
        at[0] = a + 2 * k[7] * a * b + k[6] * (s + 2 * a * a) + k[8] * s + k[9] * s * s;
        at[1] = b + 2 * k[6] * a * b + k[7] * (s + 2 * b * b) + k[10] * s + k[11] * s * s;
        break;
    }
    case 12:
    case 13:
        at[0] = 2 * x / (1 + sqrt(1 - 4 * k[0] * r * r)),
        at[1] = 2 * y / (1 + sqrt(1 - 4 * k[0] * r * r));
        break;
    case 16: {
        const double d = k[0] * sqrt(k[1] * r * r + 1) + 1 - k[0];
        at[0] = x / d;
        at[1] = y / d;
        break;
    }
    default:
        break;
    }
    out[0] = fx * at[0] + c[0];
    out[1] = fy * at[1] + c[1];
}

/* From ray on; 0: there is none. A panorama's is known. */
static int seek(double px, double py, double ray[2])
{
    const double widest = 0.9, longitude = (px / width - 0.5) * 2 * M_PI,
                 latitude = (py / height - 0.5) * M_PI;
    if (model == 17) {
        ray[0] = tan(longitude);
        ray[1] = tan(latitude) / cos(longitude);
        return fabs(longitude) < widest && fabs(latitude) < widest;
    }
    for (int i = 0; i < 60; i++) {
        const double h = 1e-6;
        double a[2], b[2], c[2];
        project(ray[0], ray[1], a);
        project(ray[0] + h, ray[1], b);
        project(ray[0], ray[1] + h, c);
        const double rx = px - a[0], ry = py - a[1];
        if (hypot(rx, ry) < 1e-8) return 1;
        const double j0 = (b[0] - a[0]) / h, j1 = (c[0] - a[0]) / h, j2 = (b[1] - a[1]) / h,
                     j3 = (c[1] - a[1]) / h;
        const double det = j0 * j3 - j1 * j2;
        double dx = (j3 * rx - j1 * ry) / det, dy = (j0 * ry - j2 * rx) / det;
        const double most = 0.1 * (1 + hypot(ray[0], ray[1])), size = hypot(dx, dy);
        if (size > most) dx *= most / size, dy *= most / size;
        ray[0] += dx;
        ray[1] += dy;
        if (!(hypot(ray[0], ray[1]) < 4)) return 0;
    }
    return 0;
}

static void weights(double t, double w[4])
{
    w[0] = t * (-0.5 + t * (1 - 0.5 * t));
    w[1] = 1 + t * t * (-2.5 + 1.5 * t);
    w[2] = t * (0.5 + t * (2 - 1.5 * t));
    w[3] = t * t * (-0.5 + 0.5 * t);
}

static void sample(const float *d, long w, long h, double x, double y, float out[3])
{
    const long x0 = (long)floor(x), y0 = (long)floor(y);
    double wx[4], wy[4], sum[3] = {0, 0, 0};
    weights(x - (double)x0, wx);
    weights(y - (double)y0, wy);
    for (long j = 0; j < 4; j++)
        for (long i = 0; i < 4; i++) {
            long cx = x0 - 1 + i, cy = y0 - 1 + j;
            cx = cx < 0 ? 0 : cx < w ? cx : w - 1;
            cy = cy < 0 ? 0 : cy < h ? cy : h - 1;
            for (int c = 0; c < 3; c++) sum[c] += wx[i] * wy[j] * (double)d[4 * (cy * w + cx) + c];
        }
    for (int c = 0; c < 3; c++) out[c] = (float)(sum[c] < 0 ? 0 : sum[c] > 1 ? 1 : sum[c]);
}

static float *read_drawing(const char *path, long *w, long *h)
{
    unsigned char head[10];
    char text[512] = "";
    FILE *f = fopen(path, "rb");
    if (!f || fread(head, 1, 10, f) != 10) exit(1);
    const size_t n = head[8] + 256u * head[9];
    if (n >= sizeof text || fread(text, 1, n, f) != n) exit(1);
    const char *shape = strstr(text, "'shape'");
    if (!shape || sscanf(shape, "'shape': (%ld, %ld", h, w) != 2) exit(1);
    float *d = malloc((size_t)*w * (size_t)*h * 16);
    if (!d || fread(d, 16, (size_t)(*w * *h), f) != (size_t)(*w * *h)) exit(1);
    fclose(f);
    return d;
}

int main(int argc, char **argv)
{
    long w, h;
    if (argc < 7) return 2;
    float *drawing = read_drawing(argv[1], &w, &h);
    const double focal = atof(argv[2]);
    model = atoi(argv[3]);
    width = atoi(argv[4]);
    height = atoi(argv[5]);
    for (int i = 7; i < argc && i < 23; i++) p[i - 7] = atof(argv[i]);
    FILE *f = fopen(argv[6], "wb");
    char text[119];
    if (!f) return 1;
    memset(text, ' ', sizeof text);
    const int n =
        snprintf(text, sizeof text - 1,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, 3), }", height, width);
    text[n] = ' ';
    text[117] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
    fwrite(text, 1, 118, f);
    for (int y = 0; y < height; y++) {
        double ray[2] = {0, 0};
        for (int x = 0; x < width; x++) {
            float rgb[3] = {0, 0, 0};
            if (seek(x + 0.5, y + 0.5, ray) || (ray[0] = ray[1] = 0, seek(x + 0.5, y + 0.5, ray)))
                sample(drawing, w, h, focal * ray[0] + 0.5 * (double)w - 0.5,
                       focal * ray[1] + 0.5 * (double)h - 0.5, rgb);
            else
                ray[0] = ray[1] = 0;
            fwrite(rgb, 4, 3, f);
        }
    }
    free(drawing);
    return fclose(f) != 0;
}
