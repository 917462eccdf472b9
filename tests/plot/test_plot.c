/* Figures: what is in the files, that equal figures are equal files, that nothing upsets the plotter, and that it
 * fails as a whole or not at all. Files lie in the working directory. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "comma.h"
#include "io/files/file.h"
#include "plot/figure.h"
#include "plot/figure_private.h"

static const double pi = 3.14159265358979323846;
static const double none = (double)NAN, endless = (double)INFINITY;

/* ---- Helpers ----------------------------------------------------------------------------------------------------- */

/* Numbers in [0, 1) that look random and are always the same. */
static double noise(unsigned i)
{
    uint32_t h = i * 2654435761u + 12345u;
    h = (h ^ h >> 15) * 2246822519u;
    h = (h ^ h >> 13) * 3266489917u;
    return (double)(h ^ h >> 16) / 4294967296.0;
}

typedef struct content {
    char *bytes;
    size_t size;
} content;

static content load(const char *path)
{
    content c = {NULL, 0};
    assert_int_equal(psld_file_read(path, 100000000, &c.bytes, &c.size), PSLD_OK);
    return c;
}

static content save(psld_figure *figure, const char *path)
{
    if (psld_figure_save(figure, path) != PSLD_OK) fail_msg("%s", psld_error_text());
    return load(path);
}

static void assert_same(content a, content b)
{
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.bytes, b.bytes, a.size);
}

static unsigned long big_endian(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (unsigned long)b[0] << 24 | (unsigned long)b[1] << 16 | (unsigned long)b[2] << 8 | b[3];
}

/* A page with everything that a figure can hold. */
static psld_figure *make_figure(void)
{
    enum { N = 300, G = 24 };
    static double x[N], y[N], map[G * G];
    psld_figure *figure = psld_figure_create("Everything", 2, 2, 200, 150);
    psld_panel *panel = psld_figure_panel(figure, 0, 0);
    psld_panel_frame(panel, "Curves", "t", "\xce\xa3_{xx}(t)", PSLD_LOG_X | PSLD_LOG_Y);
    for (int dash = PSLD_SOLID; dash <= PSLD_DOTTED; dash++) {
        for (int i = 0; i < N; i++) {
            x[i] = pow(10, -5 + 5.0 * i / N);
            y[i] = pow(x[i], 1 + dash);
        }
        psld_panel_curve(panel, N, x, y, dash, (psld_dash)dash, dash ? "power" : "10^{-5}");
    }
    panel = psld_figure_panel(figure, 0, 1);
    psld_panel_frame(panel, "Map", "x", "y", PSLD_EQUAL_AXES);
    for (int i = 0; i < G * G; i++) map[i] = exp(-0.02 * (pow(i % G - 12, 2) + pow(i / G - 12, 2)));
    for (unsigned i = 0; i < N; i++) {
        x[i] = 2 * noise(2 * i) - 1;
        y[i] = 2 * noise(2 * i + 1) - 1;
    }
    psld_panel_density(panel, G, G, -1, 1, -1, 1, map);
    psld_panel_points(panel, N, x, y, 1, 1.5, 0.4, "samples");
    panel = psld_figure_panel(figure, 1, 0);
    psld_panel_frame(panel, "Ranges", NULL, NULL, 0);
    psld_panel_range(panel, 1, 0, -2e7, 2e7);
    psld_panel_curve(panel, N, x, y, -1, PSLD_SOLID, NULL);
    return figure; /* and one panel stays unused */
}

/* ---- What is in the files ---------------------------------------------------------------------------------------- */

/* Every element is closed by its own name. Enough for what cairo writes: no comments, no '>' in attributes. */
static void assert_well_formed(content svg)
{
    char stack[64][16];
    int depth = 0, elements = 0;
    const char *s = svg.bytes;
    assert_int_equal(strncmp(s, "<?xml", 5), 0);
    s = strstr(s, "?>") + 2;
    while ((s = strchr(s, '<'))) {
        char name[16] = "";
        const char *end = strchr(s, '>');
        assert_non_null(end);
        assert_int_equal(sscanf(s + 1 + (s[1] == '/'), "%15[a-zA-Z]", name), 1);
        elements++;
        if (s[1] == '/') {
            assert_true(depth > 0);
            assert_string_equal(stack[--depth], name);
        } else if (end[-1] != '/') {
            assert_true(depth < 64);
            strcpy(stack[depth++], name);
        }
        s = end + 1;
    }
    assert_int_equal(depth, 0);
    assert_true(elements > 5);
    assert_int_equal(svg.size, strlen(svg.bytes));
    /* With what stands before them: the letters alone may be in an image. */
    static const char *const wrong[] = {" nan", " inf", "-nan", "-inf", ",nan", ",inf", "\"nan", "\"inf"};
    for (int i = 0; i < 8; i++) assert_null(strstr(svg.bytes, wrong[i]));
}

/* Every object that is referred to is there. */
static void assert_references(content svg)
{
    int found = 0;
    for (const char *s = svg.bytes; (s = strstr(s, "href=\"#")); found++) {
        char name[32] = "", id[64];
        s += strlen("href=\"#");
        assert_int_equal(sscanf(s, "%31[a-z0-9]", name), 1);
        snprintf(id, sizeof id, " id=\"%s\"", name);
        assert_non_null(strstr(svg.bytes, id));
    }
    assert_true(found > 20);
}

static void saves_svg(void **state)
{
    (void)state;
    psld_figure *figure = make_figure();
    content svg = save(figure, "all.svg");
    assert_well_formed(svg);
    assert_references(svg);
    assert_non_null(strstr(svg.bytes, " width=\"400pt\""));
    assert_non_null(strstr(svg.bytes, "data:image/png;base64,"));
    assert_true(svg.size < 150000);
    psld_release(svg.bytes);
    psld_figure_free(figure);
}

static void saves_png(void **state)
{
    (void)state;
    psld_figure *figure = make_figure();
    content titled = save(figure, "all.png");
    assert_memory_equal(titled.bytes, "\x89PNG\r\n\x1a\n", 8);
    assert_int_equal(big_endian(titled.bytes + 16), 2 * 2 * 200);
    assert_true(big_endian(titled.bytes + 20) > 2 * 2 * 150);
    psld_release(titled.bytes);
    psld_figure_free(figure);
    figure = psld_figure_create(NULL, 3, 1, 123.25, 100);
    content plain = save(figure, "plain.png");
    assert_int_equal(big_endian(plain.bytes + 16), 247);
    assert_int_equal(big_endian(plain.bytes + 20), 600);
    psld_release(plain.bytes);
    psld_figure_free(figure);
}

static void equal_figures_are_equal_files(void **state)
{
    (void)state;
    static const char *const paths[] = {"same.svg", "same.png"};
    for (int i = 0; i < 2; i++) {
        psld_figure *one = make_figure(), *two = make_figure();
        content a = save(one, paths[i]), b = save(one, paths[i]), c = save(two, paths[i]);
        assert_same(a, b);
        assert_same(a, c);
        psld_release(a.bytes);
        psld_release(b.bytes);
        psld_release(c.bytes);
        psld_figure_free(one);
        psld_figure_free(two);
    }
}

/* Labels have no commas in them where numbers are written so. */
static void does_not_depend_on_the_locale(void **state)
{
    (void)state;
    need_comma();
    psld_figure *figure = make_figure();
    content before = save(figure, "locale.svg");
    with_comma();
    content after = save(figure, "locale.svg");
    without_comma();
    assert_same(before, after);
    psld_release(before.bytes);
    psld_release(after.bytes);
    psld_figure_free(figure);
}

/* ---- Axes -------------------------------------------------------------------------------------------------------- */

/* The number that a label shows: "−1.5", "2×10^{−7}", "10^{3}". */
static double label_value(const char *label)
{
    char plain[64] = "";
    double base = 1, exponent = 0;
    size_t length = 0;
    for (const char *s = label; *s;) {
        int minus = strncmp(s, "\xe2\x88\x92", 3) == 0;
        plain[length++] = minus ? '-' : *s;
        s += minus ? 3 : 1;
    }
    char *power = strstr(plain, "10^{");
    if (power) {
        exponent = strtod(power + 4, NULL);
        if (power == plain) return pow(10, exponent);
    }
    base = strtod(plain, NULL);
    if (power && strncmp(plain, "\xc3\x97", 2) == 0) base = 1;
    return base * pow(10, exponent);
}

static psld_axis make_axis(int log, double lo, double hi)
{
    psld_axis axis = {.log = log, .lo = lo, .hi = hi, .at_lo = 0, .at_hi = 200};
    return axis;
}

/* Labels say where they stand, to what a double can tell, and their steps are all 1, 2 or 5 times a power of ten. */
static void linear_ticks_are_true(void **state)
{
    (void)state;
    static psld_ticks ticks;
    for (unsigned i = 0; i < 4000; i++) {
        double size = pow(10, 40 * noise(3 * i) - 20), width = size * pow(10, -6 * noise(3 * i + 1));
        double lo = size * (2 * noise(3 * i + 2) - 1);
        psld_axis axis = make_axis(0, lo, lo + width);
        int target = 2 + (int)(i % 7);
        psld_axis_ticks(&axis, target, &ticks);
        assert_in_range(ticks.count, target < 3 ? 0 : 1, target + 1);
        double factor = ticks.factor[0] ? label_value(ticks.factor) : 1;
        for (int k = 0; k < ticks.count; k++) {
            double value = label_value(ticks.tick[k].label) * factor;
            assert_true(fabs(value - ticks.tick[k].at) <= 1e-12 * (size + width));
            assert_true(ticks.tick[k].at >= axis.lo - 1e-8 * width && ticks.tick[k].at <= axis.hi + 1e-8 * width);
        }
        if (ticks.count < 2) continue;
        double step = label_value(ticks.tick[1].label) - label_value(ticks.tick[0].label);
        double mantissa = step / pow(10, floor(log10(step) + 1e-6));
        double distance = fmin(fabs(mantissa - 1), fmin(fabs(mantissa - 2), fabs(mantissa - 5)));
        assert_true(distance < 1e-4);
    }
}

static void assert_labels(psld_axis axis, int target, const char *expected)
{
    static psld_ticks ticks;
    char joined[512] = "";
    psld_axis_ticks(&axis, target, &ticks);
    for (int i = 0; i < ticks.count; i++) {
        if (!ticks.tick[i].label[0]) continue;
        strcat(joined, joined[0] ? " " : "");
        strcat(joined, ticks.tick[i].label);
    }
    strcat(joined, ticks.factor[0] ? " " : "");
    strcat(joined, ticks.factor);
    assert_string_equal(joined, expected);
}

static void writes_labels_for_people(void **state)
{
    (void)state;
    assert_labels(make_axis(0, 0, 1), 5, "0 0.2 0.4 0.6 0.8 1.0");
    assert_labels(make_axis(0, -3, 3), 6,
                  "\xe2\x88\x92"
                  "3 \xe2\x88\x92"
                  "2 \xe2\x88\x92"
                  "1 0 1 2 3");
    assert_labels(make_axis(0, 0, 25000), 5, "0 5000 10000 15000 20000 25000");
    assert_labels(make_axis(0, 0, 250000), 5,
                  "0 0.5 1.0 1.5 2.0 2.5 \xc3\x97"
                  "10^{5}");
    assert_labels(make_axis(0, 0, 3e-7), 3,
                  "0 1 2 3 \xc3\x97"
                  "10^{\xe2\x88\x92"
                  "7}");
    assert_labels(make_axis(0, -1e300, 1e300), 2,
                  "\xe2\x88\x92"
                  "1 0 1 \xc3\x97"
                  "10^{300}");
    assert_labels(make_axis(1, -2, 1), 5,
                  "10^{\xe2\x88\x92"
                  "2} 10^{\xe2\x88\x92"
                  "1} 10^{0} 10^{1}");
    assert_labels(make_axis(1, -9, 3), 5,
                  "10^{\xe2\x88\x92"
                  "9} 10^{\xe2\x88\x92"
                  "6} 10^{\xe2\x88\x92"
                  "3} 10^{0} 10^{3}");
    assert_labels(make_axis(1, log10(1.5), log10(60)), 5, "2 5 10 20 50");
    assert_labels(make_axis(1, log10(1.5e-7), log10(9e-7)), 5,
                  "2 4 6 8 \xc3\x97"
                  "10^{\xe2\x88\x92"
                  "7}");
}

/* Minor ticks between powers of ten stand where the numbers 2 to 9 are. */
static void log_axes_have_minor_ticks(void **state)
{
    (void)state;
    static psld_ticks ticks;
    psld_axis axis = make_axis(1, 0, 3);
    psld_axis_ticks(&axis, 5, &ticks);
    assert_int_equal(ticks.count, 4 + 3 * 8);
    int minor = 0;
    for (int i = 0; i < ticks.count; i++) {
        double digit = pow(10, ticks.tick[i].at - floor(ticks.tick[i].at + 1e-9));
        minor += ticks.tick[i].label[0] == 0;
        assert_true(fabs(digit - round(digit)) < 1e-9);
    }
    assert_int_equal(minor, 24);
}

/* All data that can be shown are inside; a value goes to its place and back. */
static void ranges_hold_the_data(void **state)
{
    (void)state;
    double x[] = {3, -1e5, none, 7, 0.01}, y[] = {1e-3, 5, 1, endless, 20}, at = 0;
    for (int flags = 0; flags < 4; flags++) {
        psld_figure *figure = psld_figure_create(NULL, 1, 1, 100, 100);
        psld_panel *panel = psld_figure_panel(figure, 0, 0);
        psld_axis axis[2];
        psld_panel_frame(panel, NULL, NULL, NULL, flags);
        psld_panel_curve(panel, 5, x, y, 0, PSLD_SOLID, NULL);
        psld_axes_fit(panel, &axis[0], &axis[1]);
        psld_axis_set(&axis[0], 10, 90);
        psld_axis_set(&axis[1], 80, 20);
        for (int i = 0; i < 5; i++) {
            if (!isfinite(x[i]) || !isfinite(y[i]) || (flags & PSLD_LOG_X && x[i] <= 0)) continue;
            assert_true(psld_axis_place(&axis[0], x[i], &at) && at >= 10 && at <= 90);
            assert_true(fabs(psld_axis_value(&axis[0], at) - x[i]) < 1e-9 * 1e5);
            assert_true(psld_axis_place(&axis[1], y[i], &at) && at >= 20 && at <= 80);
        }
        assert_int_equal(psld_axis_place(&axis[0], -1, &at), !(flags & PSLD_LOG_X));
        assert_false(psld_axis_place(&axis[0], none, &at));
        psld_figure_free(figure);
    }
}

static void fixed_ranges_hold(void **state)
{
    (void)state;
    double x[] = {0, 1, 2, 3}, y[] = {0, 10, 20, 300};
    psld_axis ax, ay;
    psld_figure *figure = psld_figure_create(NULL, 1, 1, 100, 100);
    psld_panel *panel = psld_figure_panel(figure, 0, 0);
    psld_panel_curve(panel, 4, x, y, 0, PSLD_SOLID, NULL);
    psld_panel_range(panel, 2, 0, none, 25);
    psld_axes_fit(panel, &ax, &ay);
    assert_true(ax.lo == 0 && ax.hi == 2 && ax.reversed);
    assert_true(ay.lo < 0 && ay.lo > -2 && ay.hi == 25); /* follows what the x axis shows */
    psld_panel_range(panel, 500, none, 7, 7);
    psld_axes_fit(panel, &ax, &ay);
    assert_true(ax.lo <= 500 && ax.hi >= 500 && ax.lo < ax.hi);
    assert_true(ay.lo < 7 && ay.hi > 7);
    psld_figure_free(figure);
}

/* ---- What is drawn ----------------------------------------------------------------------------------------------- */

/* The data of the n-th path drawn with a pen of this width; NULL when there are fewer. */
static const char *path_with(content svg, const char *width, int n)
{
    char forms[2][48]; /* of different versions of cairo */
    snprintf(forms[0], sizeof forms[0], "stroke-width:%s;", width);
    snprintf(forms[1], sizeof forms[1], "stroke-width=\"%s\"", width);
    for (const char *s = svg.bytes; (s = strstr(s, "<path")); s++) {
        const char *end = strchr(s, '>');
        for (int i = 0; i < 2; i++) {
            const char *found = strstr(s, forms[i]);
            if (found && found < end && n-- == 0) return strstr(s, " d=\"") + 4;
        }
    }
    return NULL;
}

static int count_in_path(const char *path, char command)
{
    int count = 0;
    for (; *path != '"'; path++) count += *path == command;
    return count;
}

/* Up to `most` points of a path. */
static int read_path(const char *path, int most, double (*points)[2])
{
    int count = 0;
    for (char *end = NULL; *path != '"' && count < most;) {
        if (*path == 'M' || *path == 'L' || *path == ' ') {
            path++;
            continue;
        }
        points[count][0] = strtod(path, &end);
        points[count][1] = strtod(end, &end);
        path = end;
        count++;
    }
    return count;
}

static const char *const curve_width = "1.4";

static content save_curve(size_t count, const double *x, const double *y, int flags)
{
    psld_figure *figure = psld_figure_create(NULL, 1, 1, 300, 200);
    psld_panel *panel = psld_figure_panel(figure, 0, 0);
    psld_panel_frame(panel, NULL, NULL, NULL, flags);
    psld_panel_curve(panel, count, x, y, 0, PSLD_SOLID, NULL);
    content svg = save(figure, "curve.svg");
    psld_figure_free(figure);
    return svg;
}

static void curves_break_where_values_are_missing(void **state)
{
    (void)state;
    double x[] = {0, 1, 2, 3, 4, 5, 6, 7}, y[] = {0, 1, none, 3, 5, endless, 6, 0};
    content svg = save_curve(8, x, y, 0);
    assert_int_equal(count_in_path(path_with(svg, curve_width, 0), 'M'), 3);
    psld_release(svg.bytes);
    svg = save_curve(8, x, y, PSLD_LOG_Y); /* the zeros are missing too */
    assert_int_equal(count_in_path(path_with(svg, curve_width, 0), 'M'), 3);
    psld_release(svg.bytes);
}

static double distance_to_segment(const double *p, const double *a, const double *b)
{
    double dx = b[0] - a[0], dy = b[1] - a[1], length = dx * dx + dy * dy;
    double part = length > 0 ? ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / length : 0;
    part = fmin(fmax(part, 0), 1);
    return hypot(p[0] - a[0] - part * dx, p[1] - a[1] - part * dy);
}

/* A smooth curve of many points keeps its shape with few. The circle drawn is found from its own extent. */
static void thinning_keeps_the_shape(void **state)
{
    (void)state;
    enum { N = 20000, MOST = 2000 };
    static double x[N], y[N], path[MOST][2];
    for (int i = 0; i < N; i++) {
        x[i] = cos(2 * pi * i / (N - 1));
        y[i] = sin(2 * pi * i / (N - 1));
    }
    content svg = save_curve(N, x, y, PSLD_EQUAL_AXES);
    int count = read_path(path_with(svg, curve_width, 0), MOST, path);
    assert_in_range(count, 30, 200);
    double box[4] = {1e9, -1e9, 1e9, -1e9};
    for (int i = 0; i < count; i++) {
        box[0] = fmin(box[0], path[i][0]);
        box[1] = fmax(box[1], path[i][0]);
        box[2] = fmin(box[2], path[i][1]);
        box[3] = fmax(box[3], path[i][1]);
    }
    double radius = (box[1] - box[0]) / 2, middle[2] = {(box[0] + box[1]) / 2, (box[2] + box[3]) / 2};
    assert_true(fabs(radius - (box[3] - box[2]) / 2) < 0.2); /* equal axes: it is a circle */
    for (int i = 0; i < 500; i++) {
        double angle = 2 * pi * i / 500, nearest = 1e9;
        double p[2] = {middle[0] + radius * cos(angle), middle[1] + radius * sin(angle)};
        for (int k = 1; k < count; k++) nearest = fmin(nearest, distance_to_segment(p, path[k - 1], path[k]));
        assert_true(nearest < 0.2);
    }
    psld_release(svg.bytes);
}

/* Noise of many points reaches from its lowest to its highest value still, in a small file. */
static void noise_stays_small(void **state)
{
    (void)state;
    enum { N = 200000, MOST = 10000 };
    static double x[N], y[N], path[MOST][2];
    for (unsigned i = 0; i < N; i++) {
        x[i] = i;
        y[i] = noise(i);
    }
    y[N / 3] = 3;
    content svg = save_curve(N, x, y, 0);
    assert_true(svg.size < 120000);
    int count = read_path(path_with(svg, curve_width, 0), MOST, path), peaks = 0;
    double low = -1e9;
    for (int i = 0; i < count; i++) low = fmax(low, path[i][1]);
    for (int i = 0; i < count; i++) peaks += path[i][1] < low - 100; /* the page is 200 high */
    assert_int_equal(peaks, 1);
    psld_release(svg.bytes);
}

/* Whatever the data, cairo sees nothing far from the page: its coordinates would overflow. */
static void curves_are_cut_at_the_frame(void **state)
{
    (void)state;
    double x[] = {0, 1, 2, 3, 4, 5}, y[] = {0, 1e300, -1e300, 0.5, -DBL_MAX, 1}, path[64][2];
    psld_figure *figure = psld_figure_create(NULL, 1, 1, 300, 200);
    psld_panel *panel = psld_figure_panel(figure, 0, 0);
    psld_panel_curve(panel, 6, x, y, 0, PSLD_SOLID, NULL);
    psld_panel_range(panel, 1, 4.5, 0, 1);
    content svg = save(figure, "cut.svg");
    int count = read_path(path_with(svg, curve_width, 0), 64, path);
    assert_true(count >= 5);
    for (int i = 0; i < count; i++)
        assert_true(path[i][0] > -10 && path[i][0] < 310 && path[i][1] > -10 && path[i][1] < 210);
    psld_release(svg.bytes);
    psld_figure_free(figure);
}

static void equal_axes_are_equal(void **state)
{
    (void)state;
    double x[] = {0, 4, 0}, y[] = {0, 0, 1}, at[6][2];
    for (int shape = 0; shape < 3; shape++) {
        psld_figure *figure = psld_figure_create(NULL, 1, 1, shape == 1 ? 500 : 200, shape == 2 ? 600 : 150);
        psld_panel *panel = psld_figure_panel(figure, 0, 0);
        psld_panel_frame(panel, NULL, "x", "y", PSLD_EQUAL_AXES);
        psld_panel_points(panel, 3, x, y, 0, 2.25, 1, NULL);
        content svg = save(figure, "equal.svg");
        assert_int_equal(read_path(path_with(svg, "4.5", 0), 6, at), 6);
        double along = at[2][0] - at[0][0], up = at[0][1] - at[4][1];
        assert_true(along > 50 && fabs(along - 4 * up) < 1); /* dots stand on eighths of a point */
        psld_release(svg.bytes);
        psld_figure_free(figure);
    }
}

static void points_are_compact(void **state)
{
    (void)state;
    enum { N = 5000 };
    static double x[N], y[N];
    for (unsigned i = 0; i < N; i++) {
        x[i] = noise(2 * i) + noise(7 * i + 3);
        y[i] = noise(2 * i + 1);
    }
    psld_figure *figure = psld_figure_create(NULL, 1, 1, 300, 200);
    psld_panel_points(psld_figure_panel(figure, 0, 0), N, x, y, 0, 1, 0.3, "points");
    content svg = save(figure, "points.svg");
    assert_true(svg.size < 220000);
    psld_release(svg.bytes);
    psld_figure_free(figure);
}

/* Red, green and blue added up at a place given in points. */
static int lightness(cairo_surface_t *image, double x, double y)
{
    const unsigned char *row =
        cairo_image_surface_get_data(image) + (ptrdiff_t)(2 * y) * cairo_image_surface_get_stride(image);
    const unsigned char *pixel = row + 4 * (ptrdiff_t)(2 * x);
    return pixel[0] + pixel[1] + pixel[2];
}

static cairo_surface_t *save_image(psld_figure *figure, const char *path)
{
    content png = save(figure, path);
    cairo_surface_t *image = cairo_image_surface_create_from_png(path);
    assert_int_equal(cairo_surface_status(image), CAIRO_STATUS_SUCCESS);
    psld_release(png.bytes);
    return image;
}

/* Where the image in an SVG begins and ends, from left to right. */
static void find_image(content svg, double *left, double *right)
{
    double scale = 0, width = 0;
    const char *image = strstr(svg.bytes, "<image"), *use = strstr(svg.bytes, "transform=\"matrix(");
    assert_non_null(image);
    assert_non_null(use);
    assert_int_equal(sscanf(strstr(image, " width="), " width=\"%lf", &width), 1);
    assert_int_equal(sscanf(use, "transform=\"matrix(%lf,%*f,%*f,%*f,%lf", &scale, left), 2);
    *right = *left + scale * width;
}

/* A map that rises to the right gets darker to the right, from white, without jumps. */
static void maps_are_ordered(void **state)
{
    (void)state;
    double values[10], left = 0, right = 0;
    for (int i = 0; i < 10; i++) values[i] = i % 5;
    psld_figure *figure = psld_figure_create(NULL, 1, 1, 300, 200);
    psld_panel_density(psld_figure_panel(figure, 0, 0), 5, 2, 0, 1, 0, 1, values);
    content svg = save(figure, "map.svg");
    find_image(svg, &left, &right);
    cairo_surface_t *image = save_image(figure, "map.png");
    left += 1.5; /* without the frame */
    right -= 1.5;
    assert_true(right - left > 200);
    assert_int_equal(lightness(image, 1, 1), 3 * 255);
    assert_true(lightness(image, left, 100) > 3 * 245);
    assert_true(lightness(image, right, 100) < 200);
    for (double x = left; x + 0.5 < right; x += 0.5) {
        int here = lightness(image, x, 100), next = lightness(image, x + 0.5, 100);
        assert_true(next <= here && next >= here - 12);
    }
    psld_release(svg.bytes);
    cairo_surface_destroy(image);
    psld_figure_free(figure);
}

/* Points on one place add up their opacity. */
static void opacity_adds_up(void **state)
{
    (void)state;
    double x[] = {0, 1, 1, 1}, y[] = {0, 0, 0, 0}, at[4][2];
    psld_figure *figure = psld_figure_create(NULL, 1, 1, 300, 200);
    psld_panel_points(psld_figure_panel(figure, 0, 0), 4, x, y, 0, 4.5, 0.3, NULL);
    content svg = save(figure, "opacity.svg");
    assert_int_equal(read_path(path_with(svg, "9", 0), 4, at), 4);
    assert_non_null(path_with(svg, "9", 2));
    assert_null(path_with(svg, "9", 3));
    cairo_surface_t *image = save_image(figure, "opacity.png");
    /* Beside the middle, where a line of the grid passes. */
    assert_true(lightness(image, at[0][0], at[0][1] + 2) > lightness(image, at[2][0], at[2][1] + 2) + 100);
    psld_release(svg.bytes);
    cairo_surface_destroy(image);
    psld_figure_free(figure);
}

static void cover_measures_what_is_in_a_box(void **state)
{
    (void)state;
    double x[] = {0, 100, none, 50}, y[] = {50, 50, 0, 50};
    psld_axis axis = {.lo = 0, .hi = 100, .at_lo = 0, .at_hi = 100};
    const psld_box box = {40, 40, 60, 60}, away = {0, 0, 100, 20};
    psld_mark curve = {.kind = PSLD_MARK_CURVE, .count = 3, .x = x, .y = y};
    psld_mark points = {.kind = PSLD_MARK_POINTS, .count = 4, .x = x, .y = y, .radius = 2};
    assert_true(fabs(psld_mark_cover(&curve, &axis, &axis, &box) - 20) < 1e-9);
    assert_true(fabs(psld_mark_cover(&points, &axis, &axis, &box) - 4) < 1e-9);
    assert_true(psld_mark_cover(&curve, &axis, &axis, &away) == 0);
    assert_true(psld_mark_cover(&points, &axis, &axis, &away) == 0);
}

/* ---- Extremes ---------------------------------------------------------------------------------------------------- */

static void assert_drawn(psld_figure *figure)
{
    content svg = save(figure, "extreme.svg"), png = save(figure, "extreme.png");
    assert_well_formed(svg);
    psld_release(svg.bytes);
    psld_release(png.bytes);
}

static void draws_all_numbers(void **state)
{
    (void)state;
    const double odd[] = {0,       1,        -1,   DBL_MAX, -DBL_MAX,        DBL_MIN, 4.9e-324, -4.9e-324,
                          endless, -endless, none, 1e300,   1 + DBL_EPSILON, 1e-300,  1e9 + 1,  1e9};
    enum { ODD = sizeof odd / sizeof *odd };
    /* Every pair of odd values as the data of a panel; the flags go round. */
    for (int i = 0; i < ODD; i++) {
        psld_figure *figure = psld_figure_create(NULL, 4, 4, 100, 90);
        for (int j = 0; j < ODD; j++) {
            psld_panel *panel = psld_figure_panel(figure, j / 4, j % 4);
            double x[] = {odd[i], odd[j], odd[(i + j) % ODD]}, y[] = {odd[j], odd[i], odd[(2 * i + j) % ODD]};
            psld_panel_frame(panel, NULL, NULL, NULL, (i + j) % 8);
            psld_panel_curve(panel, 3, x, y, i, (psld_dash)(j % 3), "curve");
            psld_panel_points(panel, 3, x, y, j, odd[(i + 2) % ODD], odd[j], "points");
            psld_panel_density(panel, 1 + j % 3, 3 / (1 + j % 3), odd[i], odd[j], odd[j], odd[(i + 3) % ODD], x);
            if (j % 3 == 0) psld_panel_range(panel, odd[j], odd[(i + 5) % ODD], odd[(j + 1) % ODD], odd[i]);
        }
        assert_drawn(figure);
        psld_figure_free(figure);
    }
}

static void draws_empty_and_constant_panels(void **state)
{
    (void)state;
    double zero[5] = {0}, five[5] = {5, 5, 5, 5, 5}, minus[5] = {-1, -2, -3, -4, -5};
    psld_figure *figure = psld_figure_create("", 3, 3, 120, 100);
    for (int i = 0; i < 8; i++) psld_panel_frame(psld_figure_panel(figure, i / 3, i % 3), "", NULL, "y", i % 8);
    psld_panel_curve(psld_figure_panel(figure, 0, 0), 0, NULL, NULL, 0, PSLD_SOLID, "nothing");
    psld_panel_points(psld_figure_panel(figure, 0, 1), 0, NULL, NULL, 0, 1, 1, "nothing");
    psld_panel_curve(psld_figure_panel(figure, 0, 2), 5, five, five, 0, PSLD_SOLID, "one point");
    psld_panel_curve(psld_figure_panel(figure, 1, 0), 5, minus, minus, 0, PSLD_SOLID, "not on log axes");
    psld_panel_density(psld_figure_panel(figure, 1, 1), 5, 1, 0, 1, 0, 1, zero);
    psld_panel_points(psld_figure_panel(figure, 1, 2), 5, zero, five, 0, 1, 0.5, NULL);
    assert_drawn(figure);
    psld_figure_free(figure);
    /* A log axis without positive data has no ticks, and so the page no text: no objects to refer to. */
    figure = psld_figure_create(NULL, 1, 1, 120, 100);
    psld_panel_frame(psld_figure_panel(figure, 0, 0), NULL, NULL, NULL, PSLD_LOG_X | PSLD_LOG_Y);
    psld_panel_curve(psld_figure_panel(figure, 0, 0), 5, minus, minus, 0, PSLD_SOLID, NULL);
    content svg = save(figure, "log.svg");
    assert_null(strstr(svg.bytes, "href=\"#"));
    psld_release(svg.bytes);
    psld_figure_free(figure);
}

static void draws_any_text(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "\xff\xfe", "\xc3",       "a\xe2\x82", "\xed\xa0\x80", "\xf4\x90\x80\x80", "line\nbreak\t\x7f", "^{",
        "_{}",      "^{a}_{b}^{", "}",         "\xef\xbf\xbf", "\xc0\x80 <&>\"'"};
    char long_text[3000];
    for (size_t i = 0; i + 1 < sizeof long_text; i++) long_text[i] = "\xc3\xa9"[i % 2];
    long_text[sizeof long_text - 1] = 0;
    double x[] = {1, 2};
    psld_figure *figure = psld_figure_create(long_text, 3, 4, 150, 120);
    for (int i = 0; i < 12; i++) {
        psld_panel *panel = psld_figure_panel(figure, i / 4, i % 4);
        psld_panel_frame(panel, odd[i], odd[(i + 1) % 12], i ? odd[(i + 2) % 12] : long_text, 0);
        psld_panel_curve(panel, 2, x, x, 0, PSLD_SOLID, i ? odd[i] : long_text);
    }
    assert_drawn(figure);
    psld_panel_frame(psld_figure_panel(figure, 0, 0), "a second title", NULL, NULL, PSLD_LOG_X);
    assert_drawn(figure);
    psld_figure_free(figure);
}

static void draws_tiny_panels_with_large_legends(void **state)
{
    (void)state;
    double x[] = {1, 2}, y[] = {1, 3};
    psld_figure *figure = psld_figure_create("title", 1, 2, 40, 40);
    psld_panel *panel = psld_figure_panel(figure, 0, 1);
    psld_panel_frame(panel, "a long title", "a long label", "a long label", PSLD_EQUAL_AXES);
    for (int i = 0; i < 40; i++) psld_panel_curve(panel, 2, x, y, i, PSLD_SOLID, "a long label in a small panel");
    assert_drawn(figure);
    psld_figure_free(figure);
}

/* ---- Failures ---------------------------------------------------------------------------------------------------- */

static void refuses_other_endings(void **state)
{
    (void)state;
    static const char *const paths[] = {"figure.pdf", "svg", "figure.svg.gz", "figure"};
    psld_figure *figure = make_figure();
    for (int i = 0; i < 4; i++) {
        char message[128];
        snprintf(message, sizeof message, "%s: expected a name that ends in .svg or .png", paths[i]);
        assert_int_equal(psld_figure_save(figure, paths[i]), PSLD_BAD_ARGUMENT);
        assert_string_equal(psld_error_text(), message);
        assert_int_not_equal(access(paths[i], F_OK), 0);
    }
    assert_int_equal(psld_figure_save(figure, "no/such/folder/figure.svg"), PSLD_IO);
    assert_int_not_equal(access("no", F_OK), 0);
    psld_figure_free(figure);
}

/* The first failure is returned, whatever comes after it. */
static void keeps_the_first_failure(void **state)
{
    (void)state;
    double one = 1;
    psld_figure *figure = make_figure();
    psld_panel *panel = psld_figure_panel(figure, 0, 0);
    assert_null(psld_figure_panel(figure, 2, 0));
    psld_panel_density(panel, 0, 1, 0, 1, 0, 1, &one);
    psld_fail(PSLD_IO, "something else");
    unlink("failed.svg");
    assert_int_equal(psld_figure_save(figure, "failed.svg"), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "failed.svg: panel (2, 0) of a figure with 2 x 2");
    assert_int_not_equal(access("failed.svg", F_OK), 0);
    psld_figure_free(figure);
}

static void refuses_impossible_sizes(void **state)
{
    (void)state;
    const double size[][4] = {{0, 1, 100, 100}, {1, -1, 100, 100}, {1, 1, 0, 100},    {1, 1, 100, none},
                              {1, 2, 1e4, 100}, {65, 1, 100, 100}, {1, 1, 1e308, 100}};
    for (int i = 0; i < 7; i++) {
        psld_figure *figure = psld_figure_create("t", (int)size[i][0], (int)size[i][1], size[i][2], size[i][3]);
        psld_panel_frame(psld_figure_panel(figure, 0, 0), "a", "b", "c", 0);
        assert_int_equal(psld_figure_save(figure, "size.png"), PSLD_BAD_ARGUMENT);
        psld_figure_free(figure);
    }
    assert_int_not_equal(access("size.png", F_OK), 0);
}

static void tolerates_null(void **state)
{
    (void)state;
    double one = 1;
    assert_null(psld_figure_panel(NULL, 0, 0));
    psld_panel_frame(NULL, "a", "b", "c", 0);
    psld_panel_range(NULL, 0, 1, 0, 1);
    psld_panel_curve(NULL, 1, &one, &one, 0, PSLD_SOLID, "a");
    psld_panel_points(NULL, 1, &one, &one, 0, 1, 1, "a");
    psld_panel_density(NULL, 1, 1, 0, 1, 0, 1, &one);
    assert_int_equal(psld_figure_save(NULL, "null.svg"), PSLD_NO_MEMORY);
    psld_figure_free(NULL);
}

/* Every allocation fails once: an error each time, nothing leaks, no file. */
static void survives_running_out_of_memory(void **state)
{
    (void)state;
    static const char *const paths[] = {"memory.svg", "memory.png"};
    for (int i = 0; i < 2; i++) {
        long n = 0;
        for (int failed = 1; failed; n++) {
            long live = psld_alloc_live();
            unlink(paths[i]);
            psld_alloc_fail_at(n + 1);
            psld_figure *figure = make_figure();
            psld_status status = psld_figure_save(figure, paths[i]);
            failed = psld_alloc_failed();
            psld_alloc_fail_at(0);
            psld_figure_free(figure);
            assert_int_equal(status, failed ? PSLD_NO_MEMORY : PSLD_OK);
            assert_int_equal(access(paths[i], F_OK) == 0, !failed);
            assert_int_equal(psld_alloc_live(), live);
        }
        assert_true(n > 40);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saves_svg),
        cmocka_unit_test(saves_png),
        cmocka_unit_test(equal_figures_are_equal_files),
        cmocka_unit_test(does_not_depend_on_the_locale),
        cmocka_unit_test(linear_ticks_are_true),
        cmocka_unit_test(writes_labels_for_people),
        cmocka_unit_test(log_axes_have_minor_ticks),
        cmocka_unit_test(ranges_hold_the_data),
        cmocka_unit_test(fixed_ranges_hold),
        cmocka_unit_test(curves_break_where_values_are_missing),
        cmocka_unit_test(thinning_keeps_the_shape),
        cmocka_unit_test(noise_stays_small),
        cmocka_unit_test(curves_are_cut_at_the_frame),
        cmocka_unit_test(equal_axes_are_equal),
        cmocka_unit_test(points_are_compact),
        cmocka_unit_test(maps_are_ordered),
        cmocka_unit_test(opacity_adds_up),
        cmocka_unit_test(cover_measures_what_is_in_a_box),
        cmocka_unit_test(draws_all_numbers),
        cmocka_unit_test(draws_empty_and_constant_panels),
        cmocka_unit_test(draws_any_text),
        cmocka_unit_test(draws_tiny_panels_with_large_legends),
        cmocka_unit_test(refuses_other_endings),
        cmocka_unit_test(keeps_the_first_failure),
        cmocka_unit_test(refuses_impossible_sizes),
        cmocka_unit_test(tolerates_null),
        cmocka_unit_test(survives_running_out_of_memory),
    };
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cairo_debug_reset_static_data(); /* asserts that no font is in use any more */
    return failures;
}
