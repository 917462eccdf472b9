/* Ranges and ticks.
 *
 * An axis works in `t`: the value itself, or its log10 on a log axis. Values are limited to +-1e300 and ranges are
 * never narrower than 1e-290 or than 1e-10 of their ends, so that no difference overflows, none is lost in rounding,
 * and a tick is an integer times a power of ten: its label is written from that integer, exactly, and the same in every
 * locale. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plot/figure_private.h"

static const double largest_value = 1e300, narrowest = 1e-290, narrowest_part = 1e-10;
static const double x_padding = 0.03, y_padding = 0.06;
static const double far_away = 1e6; /* in widths of the frame: slopes are kept, and nothing overflows */

#define MINUS "\xe2\x88\x92"
#define TIMES "\xc3\x97"

/* ---- Ranges ------------------------------------------------------------------------------------------------------ */

static int to_t(int log, double value, double *t)
{
    if (!isfinite(value) || (log && value <= 0)) return 0;
    *t = log ? log10(value) : fmin(fmax(value, -largest_value), largest_value);
    return 1;
}

typedef struct span {
    double lo, hi; /* lo > hi: empty */
} span;

static const span nothing = {DBL_MAX, -DBL_MAX};

static void span_add(span *s, double t)
{
    s->lo = fmin(s->lo, t);
    s->hi = fmax(s->hi, t);
}

/* Whether a value is within fixed bounds. Bounds that are not fixed contain every value. */
static int is_within_fixed(const double *bound, double value)
{
    double lo = fmin(bound[0], bound[1]), hi = fmax(bound[0], bound[1]);
    if (!isfinite(bound[0]) || !isfinite(bound[1])) return 1;
    return value >= lo && value <= hi;
}

/* Extends the ranges to the points of a curve. A point counts only if both axes can show it. */
static void range_add_series(const psld_panel *panel, const psld_mark *mark, span *xs, span *ys)
{
    double tx = 0, ty = 0;
    for (size_t i = 0; i < mark->count; i++) {
        if (!to_t(panel->flags & PSLD_LOG_X, mark->x[i], &tx) || !to_t(panel->flags & PSLD_LOG_Y, mark->y[i], &ty))
            continue;
        if (is_within_fixed(panel->range + 2, mark->y[i])) span_add(xs, tx);
        if (is_within_fixed(panel->range, mark->x[i])) span_add(ys, ty);
    }
}

static void range_add_density(const psld_panel *panel, const psld_mark *mark, span *xs, span *ys)
{
    double t = 0;
    for (int i = 0; i < 2; i++) {
        if (to_t(panel->flags & PSLD_LOG_X, mark->edge[i], &t)) span_add(xs, t);
        if (to_t(panel->flags & PSLD_LOG_Y, mark->edge[2 + i], &t)) span_add(ys, t);
    }
}

/* Widens a range whose width is zero, or only rounding errors, around its middle. */
static void widen_range(psld_axis *axis)
{
    double middle = axis->lo / 2 + axis->hi / 2, size = fmax(fabs(axis->lo), fabs(axis->hi));
    double least = fmax(narrowest, narrowest_part * (axis->log ? fmax(size, 1) : size));
    if (axis->hi - axis->lo >= least) return;
    double half = axis->log ? 0.5 : size > 1e-280 ? 0.1 * size : 1;
    axis->lo = middle - half;
    axis->hi = middle + half;
}

/* Curves and points (`data`) get a margin; a density map fills the frame. */
static void fit_range(psld_axis *axis, span data, span map, const double *bound, double padding)
{
    double t = 0, air = data.lo <= data.hi ? padding * (data.hi - data.lo) : 0;
    int known[2] = {0, 0};
    axis->lo = data.lo < map.lo ? data.lo - air : map.lo;
    axis->hi = data.hi > map.hi ? data.hi + air : map.hi;
    axis->empty = axis->lo > axis->hi;
    if (axis->empty) axis->lo = 0, axis->hi = 1;
    double ends[2] = {axis->lo, axis->hi};
    for (int i = 0; i < 2; i++)
        if (to_t(axis->log, bound[i], &t)) known[i] = 1, ends[i] = t;
    if (known[0] && known[1]) axis->empty = 0;
    axis->reversed = known[0] && known[1] && ends[0] > ends[1];
    axis->lo = axis->reversed ? ends[1] : ends[0];
    axis->hi = axis->reversed ? ends[0] : ends[1];
    /* Only one end is fixed, and no data lie on the other side of it. */
    if (axis->lo > axis->hi && known[0]) axis->hi = axis->lo;
    if (axis->lo > axis->hi) axis->lo = axis->hi;
    widen_range(axis);
}

void psld_axes_fit(const psld_panel *panel, psld_axis *x, psld_axis *y)
{
    span data[2] = {nothing, nothing}, map[2] = {nothing, nothing};
    memset(x, 0, sizeof *x);
    memset(y, 0, sizeof *y);
    x->log = (panel->flags & PSLD_LOG_X) != 0;
    y->log = (panel->flags & PSLD_LOG_Y) != 0;
    for (size_t i = 0; i < panel->count; i++) {
        if (panel->marks[i].kind == PSLD_MARK_DENSITY)
            range_add_density(panel, &panel->marks[i], &map[0], &map[1]);
        else
            range_add_series(panel, &panel->marks[i], &data[0], &data[1]);
    }
    fit_range(x, data[0], map[0], panel->range, x_padding);
    fit_range(y, data[1], map[1], panel->range + 2, y_padding);
}

void psld_axis_stretch(psld_axis *axis, double width)
{
    double middle = axis->lo / 2 + axis->hi / 2;
    axis->lo = middle - width / 2;
    axis->hi = middle + width / 2;
    widen_range(axis);
}

void psld_axis_set(psld_axis *axis, double at_lo, double at_hi)
{
    axis->at_lo = axis->reversed ? at_hi : at_lo;
    axis->at_hi = axis->reversed ? at_lo : at_hi;
}

double psld_axis_place_tick(const psld_axis *axis, double at)
{
    double part = (at - axis->lo) / (axis->hi - axis->lo);
    part = fmin(fmax(part, -far_away), far_away);
    return axis->at_lo + part * (axis->at_hi - axis->at_lo);
}

int psld_axis_place(const psld_axis *axis, double value, double *at)
{
    double t = 0;
    if (!to_t(axis->log, value, &t)) return 0;
    *at = psld_axis_place_tick(axis, t);
    return 1;
}

double psld_axis_value(const psld_axis *axis, double at)
{
    double part = (at - axis->at_lo) / (axis->at_hi - axis->at_lo);
    double t = axis->lo + part * (axis->hi - axis->lo);
    return axis->log ? pow(10, t) : t;
}

/* ---- Ticks ------------------------------------------------------------------------------------------------------- */

/* n / 10^decimals in digits. `decimals` is at most 18. */
static void write_decimal(long long n, int decimals, char *label)
{
    char digits[32], *to = digits + sizeof digits;
    unsigned long long rest = n < 0 ? 0 - (unsigned long long)n : (unsigned long long)n;
    *--to = 0;
    for (int place = 0; rest > 0 || place <= decimals; place++, rest /= 10) {
        if (place == decimals && place > 0) *--to = '.';
        *--to = (char)('0' + rest % 10);
    }
    snprintf(label, PSLD_TICK_LABEL_SIZE, "%s%s", n < 0 ? MINUS : "", n == 0 ? "0" : to);
}

static void write_power(const char *before, int exponent, char *label)
{
    snprintf(label, PSLD_TICK_LABEL_SIZE, "%s10^{%s%d}", before, exponent < 0 ? MINUS : "",
             exponent < 0 ? -exponent : exponent);
}

static int digit_count(long long n)
{
    int count = 1;
    for (n = n < 0 ? -n : n; n >= 10; n /= 10) count++;
    return count;
}

static long long power_of_ten(int exponent)
{
    long long power = 1;
    while (exponent-- > 0) power *= 10;
    return power;
}

/* m * 10^exponent as a double. Dividing keeps 3 / 10 the same as 0.3. */
static double scaled(double m, int exponent)
{
    return exponent < 0 ? m / pow(10, -exponent) : m * pow(10, exponent);
}

static psld_tick *add_tick(psld_ticks *ticks, const psld_axis *axis, double at)
{
    static const psld_tick none;
    double slack = 1e-9 * (axis->hi - axis->lo);
    if (ticks->count == PSLD_MAX_TICKS || !(at >= axis->lo - slack && at <= axis->hi + slack)) return NULL;
    psld_tick *tick = &ticks->tick[ticks->count++];
    *tick = none;
    tick->at = at;
    return tick;
}

/* The smallest step of 1, 2 or 5 times 10^exponent that is not below `least`. */
static int nice_step(double least, int *exponent)
{
    int e = (int)floor(log10(least));
    double m = least / scaled(1, e) * (1 - 1e-9);
    int mantissa = m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10;
    *exponent = mantissa == 10 ? e + 1 : e;
    return mantissa == 10 ? 1 : mantissa;
}

/* Ticks at integers times the step, from lo to hi in values; on a log axis they stand at their logarithms. */
static void even_ticks(const psld_axis *axis, double lo, double hi, int target, psld_ticks *ticks)
{
    int exponent = 0, mantissa = nice_step((hi - lo) / target, &exponent);
    double step = scaled(mantissa, exponent);
    long long first = (long long)ceil(lo / step - 1e-9), last = (long long)floor(hi / step + 1e-9);
    long long most = (first < 0 ? -first : first) > last ? first : last;
    /* Long numbers are written as multiples of a power of ten, which is shown at the end of the axis. */
    int order = digit_count(most * mantissa) - 1 + exponent;
    int common = order >= 5 || order <= -4 ? order : 0;
    if (most == 0)
        common = exponent; /* 0 is the only one */
    else if (common)
        write_power(TIMES, common, ticks->factor);
    for (long long k = first; k <= last; k++) {
        double value = scaled((double)(k * mantissa), exponent);
        psld_tick *tick = add_tick(ticks, axis, axis->log ? log10(value) : value);
        if (!tick) continue;
        write_decimal(k * mantissa * power_of_ten(exponent - common), exponent < common ? common - exponent : 0,
                      tick->label);
    }
}

static int count_between(const psld_axis *axis, const int *mantissas, int count)
{
    int found = 0;
    for (int e = (int)floor(axis->lo); e <= (int)ceil(axis->hi); e++)
        for (int i = 0; i < count; i++) {
            double t = e + log10(mantissas[i]);
            found += t >= axis->lo && t <= axis->hi;
        }
    return found;
}

/* Powers of ten, every `stride`-th with a label; between them 2 to 9, or the powers left out, as minor ticks. */
static void decade_ticks(const psld_axis *axis, int target, psld_ticks *ticks)
{
    int first = (int)floor(axis->lo), last = (int)ceil(axis->hi);
    static const int strides[] = {1, 2, 3, 5, 10, 20, 50, 100, 200, 500};
    int stride = 1000, decades = (int)(axis->hi - axis->lo);
    for (int i = 9; i >= 0; i--)
        if (decades / strides[i] <= target) stride = strides[i];
    int fine = stride == 1 && (last - first) * 9 < PSLD_MAX_TICKS;
    int minors = stride <= 5 && last - first < PSLD_MAX_TICKS;
    for (int e = first; e <= last; e++) {
        if (e % stride != 0 && !minors) continue;
        psld_tick *tick = add_tick(ticks, axis, e);
        if (tick && e % stride == 0) write_power("", e, tick->label);
        for (int m = 2; m < 10 && fine; m++) add_tick(ticks, axis, e + log10(m));
    }
}

/* 1, 2, 5 of each decade with labels, the other digits as minor ticks. */
static void digit_ticks(const psld_axis *axis, psld_ticks *ticks)
{
    for (int e = (int)floor(axis->lo); e <= (int)ceil(axis->hi); e++)
        for (int m = 1; m < 10; m++) {
            psld_tick *tick = add_tick(ticks, axis, e + log10(m));
            char before[8] = {(char)('0' + m), 0};
            if (!tick || (m != 1 && m != 2 && m != 5)) continue;
            if (e >= -3 && e <= 4)
                write_decimal(m * power_of_ten(e), e < 0 ? -e : 0, tick->label);
            else
                write_power(m == 1 ? "" : strcat(before, TIMES), e, tick->label);
        }
}

void psld_axis_ticks(const psld_axis *axis, int target, psld_ticks *ticks)
{
    static const int tens[] = {1}, digits[] = {1, 2, 5};
    memset(ticks, 0, sizeof *ticks);
    if (axis->empty) return;
    if (target < 1) target = 1;
    if (!axis->log)
        even_ticks(axis, axis->lo, axis->hi, target, ticks);
    else if (count_between(axis, tens, 1) >= 2 || axis->lo < -280 || axis->hi > 299)
        decade_ticks(axis, target, ticks);
    else if (count_between(axis, digits, 3) >= 3)
        digit_ticks(axis, ticks);
    else
        even_ticks(axis, pow(10, axis->lo), pow(10, axis->hi), target, ticks);
}
