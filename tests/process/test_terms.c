/* Expressions: values against C, derivatives against finite differences, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "process/terms.h"

static const char *const variables[] = {"x", "y"}, *const constants[] = {"a"};
static const double values[] = {0.7};
static const psld_term_names names = {2, 1, variables, NULL, constants, values};

static psld_terms *new_terms(void)
{
    psld_terms *terms;
    assert_int_equal(psld_terms_create(&terms), PSLD_OK);
    return terms;
}

static double value_at(const psld_terms *terms, psld_term term, double x, double y)
{
    psld_formulas *f;
    double lanes[2 * PSLD_TERM_LANES];
    assert_int_equal(psld_formulas_create(terms, 1, &term, &f), PSLD_OK);
    double *scratch = psld_alloc(psld_formulas_scratch(f), sizeof *scratch);
    for (int l = 0; l < PSLD_TERM_LANES; l++) lanes[l] = x + l, lanes[PSLD_TERM_LANES + l] = y;
    psld_formulas_prepare(f, scratch);
    psld_formulas_run(f, lanes, scratch);
    double value = *psld_formulas_output(f, scratch, 0);
    psld_release(scratch);
    psld_formulas_free(f);
    return value;
}

static double row_1(double x, double y)
{
    return x * x * x * x / 8 + y * y / 2 - x * y;
}
static double row_2(double x, double y)
{
    return exp(-x * x) * sin(y) + cos(x * y) / (1 + x * x);
}
static double row_3(double x, double y)
{
    return sqrt(1 + x * x) * log(2 + y * y) - atan(x) + tanh(y * x);
}
static double row_4(double x, double y)
{
    return pow(1.5 + x * x, y) + sinh(0.3 * x) * cosh(y);
}
static double row_5(double x, double y)
{
    return -x * x + 2 * pow(y * y + 1, -1.5) - -x;
}
static double row_6(double x, double y)
{
    return 0.7 * x / y - 3.14159265358979323846 * pow(x, 3) + pow(2, pow(x, 2)) * 1e-1;
}

static const struct row {
    const char *text;
    double (*value)(double x, double y);
} rows[] = {
    {"x^4/8 + y^2/2 - x*y", row_1},
    {"exp(-x^2)*sin(y) + cos(x*y)/(1 + x^2)", row_2},
    {"sqrt(1+x*x)*log(2+y^2) - atan(x) + tanh(y*x)", row_3},
    {"(1.5 + x^2)^y + sinh(0.3*x)*cosh(y)", row_4},
    {"-x^2 + 2*(y^2+1)^-1.5 - -x", row_5},
    {"a*x/y - pi*x^3 + 2^x^2*1e-1", row_6},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void values_and_derivatives(void **state)
{
    (void)state;
    for (int r = 0; r < ROWS; r++) {
        psld_terms *terms = new_terms();
        psld_term term, slope[2], second[2];
        assert_int_equal(psld_terms_parse(terms, rows[r].text, &names, &term), PSLD_OK);
        for (int v = 0; v < 2; v++) assert_int_equal(psld_terms_derive(terms, v, 1, &term, &slope[v]), PSLD_OK);
        for (int v = 0; v < 2; v++) assert_int_equal(psld_terms_derive(terms, 0, 1, &slope[v], &second[v]), PSLD_OK);
        for (int p = 0; p < 8; p++) {
            double x = 1.3 * sin(1 + 3 * p), y = 1.1 * cos(2 + 5 * p), h = 1e-5;
            double (*f)(double, double) = rows[r].value;
            assert_true(fabs(value_at(terms, term, x, y) - f(x, y)) < 1e-13 * (1 + fabs(f(x, y))));
            double numeric[2] = {(f(x + h, y) - f(x - h, y)) / (2 * h), (f(x, y + h) - f(x, y - h)) / (2 * h)};
            for (int v = 0; v < 2; v++)
                assert_true(fabs(value_at(terms, slope[v], x, y) - numeric[v]) < 1e-8 * (1 + fabs(numeric[v])));
            for (int v = 0; v < 2; v++) {
                double by_slopes =
                    (value_at(terms, slope[v], x + h, y) - value_at(terms, slope[v], x - h, y)) / (2 * h);
                assert_true(fabs(value_at(terms, second[v], x, y) - by_slopes) < 1e-8 * (1 + fabs(by_slopes)));
            }
        }
        psld_terms_free(terms);
    }
}

/* What is zero is the term 0, and equal formulas are one term. */
static void known_terms(void **state)
{
    (void)state;
    static const char *const zero[] = {"0", "x - x", "0*x", "0/(1+x^2)", "x*y - y*x", "sin(0)", "2 - 4/2"};
    psld_terms *terms = new_terms();
    psld_term a, b;
    for (size_t i = 0; i < sizeof zero / sizeof *zero; i++) {
        assert_int_equal(psld_terms_parse(terms, zero[i], &names, &a), PSLD_OK);
        assert_int_equal(a, 0);
    }
    assert_int_equal(psld_terms_parse(terms, "(x + y)*sin(x)", &names, &a), PSLD_OK);
    assert_int_equal(psld_terms_parse(terms, "sin( x )*(y+x)", &names, &b), PSLD_OK);
    assert_int_equal(a, b);
    psld_terms_free(terms);
}

static void refuse(const char *text, const char *wanted)
{
    psld_terms *terms = new_terms();
    psld_term term;
    assert_int_equal(psld_terms_parse(terms, text, &names, &term), PSLD_BAD_INPUT);
    if (!strstr(psld_error_text(), wanted)) fail_msg("%.40s: no \"%s\" in: %s", text, wanted, psld_error_text());
    assert_null(strchr(psld_error_text(), '\n'));
    psld_terms_free(terms);
}

static void bad_texts(void **state)
{
    (void)state;
    refuse("", "at character 1, found the end");
    refuse("x +", "found the end");
    refuse("x y", "expected an operator or the end at character 3, found \"y\"");
    refuse("x ** 2", "at character 4");
    refuse("2x", "at character 2");
    refuse("(x", "expected \")\"");
    refuse("x)", "operator or the end");
    refuse("sin x", "\"(\" after the name of a function");
    refuse("z + 1", "\"z\" at character 1 is no variable");
    refuse("system(x)", "\"system\" at character 1 is no variable");
    refuse("xx", "\"xx\" at character 1 is no variable");
    refuse("1/0", "divides by zero");
    refuse("x/(2 - 2)", "divides by zero");
    refuse("log(0)", "not a finite number");
    refuse("(0-1)^0.5", "not a finite number");
    refuse("1e999", "finite number");
    refuse("1.2.3", "finite number");
    refuse("x;y", "at character 2");
    refuse("\x01", "a character that cannot be in a formula");
    enum { DEEP = 9000 };
    char *deep = psld_alloc(DEEP + 2002, 1);
    memset(deep, '(', DEEP);
    refuse(deep, "nested more than 100 deep");
    memset(deep, '-', DEEP);
    refuse(deep, "nested more than 100 deep");
    for (int i = 0; i < DEEP; i += 2) deep[i] = 'x', deep[i + 1] = '^';
    refuse(deep, "nested more than 100 deep");
    memset(deep, ' ', DEEP + 2001);
    refuse(deep, "more than 10000 characters");
    psld_release(deep);
}

/* A long sum is no problem, and derivatives of a deep product stay small. */
static void large_formulas(void **state)
{
    (void)state;
    psld_terms *terms = new_terms();
    psld_term term, slope;
    char text[9000] = "";
    for (int i = 0; i < 2000; i++) strcat(text + 4 * i, "x*y+"), text[4 * i + 4] = 0;
    strcat(text, "1");
    assert_int_equal(psld_terms_parse(terms, text, &names, &term), PSLD_OK);
    assert_int_equal(psld_terms_derive(terms, 0, 1, &term, &slope), PSLD_OK);
    assert_true(fabs(value_at(terms, term, 0.5, 2) - 2001) < 1e-9);
    assert_true(fabs(value_at(terms, slope, 0.5, 2) - 4000) < 1e-9);
    for (int i = 0; i < PSLD_TERMS_MOST && psld_terms_status(terms) == PSLD_OK; i++) {
        term = psld_term_add(terms, psld_term_multiply(terms, term, term), psld_term_number(terms, i));
    }
    assert_int_equal(psld_terms_status(terms), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "too large"));
    psld_terms_free(terms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_and_derivatives), cmocka_unit_test(known_terms),
                                       cmocka_unit_test(bad_texts), cmocka_unit_test(large_formulas)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
