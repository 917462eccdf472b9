/* YAML: what is read, and for what is refused, that the message says where it stands and what was expected. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "io/yaml/yaml.h"
#include "starve.h"

/* ---- Helpers ----------------------------------------------------------------------------------------------------- */

static psld_yaml *parse(const char *text)
{
    psld_yaml *yaml = NULL;
    if (psld_yaml_parse(text, strlen(text), "my.yaml", &yaml) != PSLD_OK) fail_msg("%s", psld_error_text());
    assert_non_null(yaml);
    return yaml;
}

static void assert_refused(const char *text, const char *message)
{
    psld_yaml *yaml = NULL;
    long live = psld_alloc_live();
    assert_int_equal(psld_yaml_parse(text, strlen(text), "my.yaml", &yaml), PSLD_BAD_INPUT);
    assert_null(yaml);
    assert_string_equal(psld_error_text(), message);
    assert_int_equal(psld_alloc_live(), live);
}

static void assert_fails(psld_status status, const char *message)
{
    assert_int_equal(status, PSLD_BAD_INPUT);
    assert_string_equal(psld_error_text(), message);
}

/* Value under keys separated by '/'. */
static const psld_node *at(const psld_yaml *yaml, const char *keys)
{
    char copy[256];
    snprintf(copy, sizeof copy, "%s", keys);
    const psld_node *node = psld_yaml_root(yaml);
    for (char *key = copy, *slash = NULL; key; key = slash) {
        slash = strchr(key, '/');
        if (slash) *slash++ = '\0';
        node = psld_node_get(node, key);
    }
    assert_non_null(node);
    return node;
}

static const char *text_of(const psld_node *node)
{
    const char *text = NULL;
    assert_int_equal(psld_node_text(node, &text), PSLD_OK);
    return text;
}

static double number_of(const psld_node *node)
{
    double number = 0;
    if (psld_node_number(node, &number) != PSLD_OK) fail_msg("%s", psld_error_text());
    return number;
}

/* A text of `count` times `piece`, between `before` and `after`. Release with psld_release. */
static char *repeat(const char *before, const char *piece, size_t count, const char *after)
{
    size_t length = strlen(piece);
    char *text = psld_alloc(strlen(before) + count * length + strlen(after) + 1, 1);
    assert_non_null(text);
    char *end = text + strlen(strcpy(text, before));
    for (size_t i = 0; i < count; i++, end += length) memcpy(end, piece, length);
    strcpy(end, after);
    return text;
}

/* ---- Trees ------------------------------------------------------------------------------------------------------- */

static void reads_scalars_lists_and_maps(void **state)
{
    (void)state;
    psld_yaml *yaml = parse("name: my-process\nD: [[1, 2], [3, 4]]\nmodel:\n  depth: 3\n  parts:\n  - a\n  - b c\n");
    const psld_node *root = psld_yaml_root(yaml);
    assert_int_equal(psld_node_kind_of(root), PSLD_NODE_MAP);
    assert_int_equal(psld_node_size(root), 3);
    assert_string_equal(psld_node_key_at(root, 1), "D");
    assert_string_equal(text_of(at(yaml, "name")), "my-process");
    assert_int_equal(psld_node_size(at(yaml, "name")), 0);
    assert_int_equal(psld_node_kind_of(at(yaml, "D")), PSLD_NODE_LIST);
    assert_true(number_of(psld_node_at(psld_node_at(at(yaml, "D"), 1), 0)) == 3);
    assert_string_equal(text_of(psld_node_at(at(yaml, "model/parts"), 1)), "b c");
    assert_true(psld_node_at(root, 2) == at(yaml, "model"));
    assert_null(psld_node_get(root, "absent"));
    assert_null(psld_node_get(at(yaml, "D"), "absent"));
    assert_null(psld_node_get(at(yaml, "name"), "absent"));
    assert_null(psld_node_get(NULL, "absent"));
    psld_yaml_free(yaml);
    psld_yaml_free(NULL);
}

static void text_without_a_value_is_an_empty_map(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n\n", "# a comment\n", "{}"};
    for (size_t i = 0; i < 4; i++) {
        psld_yaml *yaml = parse(texts[i]);
        assert_int_equal(psld_node_kind_of(psld_yaml_root(yaml)), PSLD_NODE_MAP);
        assert_int_equal(psld_node_size(psld_yaml_root(yaml)), 0);
        psld_yaml_free(yaml);
    }
}

static void scalars_keep_their_text(void **state)
{
    (void)state;
    psld_yaml *yaml = parse("\xef\xbb\xbf%YAML 1.1\n---\na: null\nb: ~\nc:\nd: '3'\ne: \"x\\ty\"\nf: !!str 5\n"
                            "g: |\n  two\n  lines\nh: \xc3\xbc\n...\n");
    assert_string_equal(text_of(at(yaml, "a")), "null");
    assert_string_equal(text_of(at(yaml, "b")), "~");
    assert_string_equal(text_of(at(yaml, "c")), "");
    assert_true(number_of(at(yaml, "d")) == 3);
    assert_string_equal(text_of(at(yaml, "e")), "x\ty");
    assert_string_equal(text_of(at(yaml, "f")), "5");
    assert_string_equal(text_of(at(yaml, "g")), "two\nlines\n");
    assert_string_equal(text_of(at(yaml, "h")), "\xc3\xbc");
    psld_yaml_free(yaml);
}

static void a_root_may_be_anything(void **state)
{
    (void)state;
    psld_yaml *yaml = parse("[1, x]");
    double numbers[2];
    assert_fails(psld_node_numbers(psld_yaml_root(yaml), 2, numbers), "my.yaml:1: [1]: expected a number, found \"x\"");
    psld_yaml_free(yaml);
    yaml = parse("\n\n7.5");
    int64_t integer = 0;
    assert_true(number_of(psld_yaml_root(yaml)) == 7.5);
    assert_fails(psld_node_integer(psld_yaml_root(yaml), 0, 9, &integer),
                 "my.yaml:3: expected a whole number from 0 to 9, found \"7.5\"");
    psld_yaml_free(yaml);
}

static void loads_files(void **state)
{
    (void)state;
    FILE *file = fopen("loaded.yaml", "w");
    fputs("beta: 8\nname: x: y\n", file);
    fclose(file);
    psld_yaml *yaml = NULL;
    assert_fails(psld_yaml_load("loaded.yaml", &yaml),
                 "loaded.yaml:2:8: mapping values are not allowed in this context");
    assert_null(yaml);
    assert_int_equal(psld_yaml_load("absent.yaml", &yaml), PSLD_IO);
    assert_string_equal(psld_error_text(), "absent.yaml: cannot read: No such file or directory");
    file = fopen("loaded.yaml", "w");
    fputs("beta: 8\n", file);
    fclose(file);
    assert_int_equal(psld_yaml_load("loaded.yaml", &yaml), PSLD_OK);
    assert_true(number_of(at(yaml, "beta")) == 8);
    psld_yaml_free(yaml);
    char *text = repeat("", "# 345678\n", (1 << 20) / 9 + 1, "");
    file = fopen("loaded.yaml", "w");
    fputs(text, file);
    fclose(file);
    psld_release(text);
    assert_fails(psld_yaml_load("loaded.yaml", &yaml), "loaded.yaml: longer than the 1048576 bytes that it may have");
}

/* ---- What is refused --------------------------------------------------------------------------------------------- */

static void bad_syntax_has_line_and_column(void **state)
{
    (void)state;
    assert_refused("a: 1\nb: [1, 2\n", "my.yaml:3:1: while parsing a flow sequence, did not find expected ',' or ']'");
    assert_refused("a: 1\n\tb: 2\n",
                   "my.yaml:2:1: while scanning a plain scalar, found a tab character that violates indentation");
    assert_refused("\ta: 1\n",
                   "my.yaml:1:1: while scanning for the next token, found character that cannot start any token");
    assert_refused("a: 1\nbc: x\xff\n", "my.yaml:2:6: invalid leading UTF-8 octet");
    assert_refused("a: \x01\n", "my.yaml:1:4: control characters are not allowed");
    assert_refused("a: {b: 1\n", "my.yaml:2:1: while parsing a flow mapping, did not find expected ',' or '}'");
    assert_refused("a: \"b\n", "my.yaml:2:1: while scanning a quoted scalar, found unexpected end of stream");
}

static void nul_is_refused(void **state)
{
    (void)state;
    psld_yaml *yaml = NULL;
    assert_fails(psld_yaml_parse("a: 1\nb: \0 2\n", 11, "my.yaml", &yaml), "my.yaml:2: the byte NUL is not allowed");
    assert_refused("a:\n  b: \"x\\0y\"\n", "my.yaml:2: a.b: the character NUL is not allowed in text");
    assert_refused("a:\n  \"x\\0y\": 3\n", "my.yaml:2: a: the character NUL is not allowed in text");
}

static void keys_stand_once(void **state)
{
    (void)state;
    assert_refused("a: 1\nb: 2\na: 3\n", "my.yaml:3: key \"a\" stands twice, first on line 1");
    assert_refused("m:\n  x: 1\n  'x': 2\n", "my.yaml:3: m: key \"x\" stands twice, first on line 2");
    assert_refused("l:\n- {y: 1, z: 2, y: 3}\n", "my.yaml:2: l[0]: key \"y\" stands twice, first on line 2");
    char *text = psld_alloc(1 << 20, 1), *end = text;
    for (int i = 0; i < 60000; i++) end += sprintf(end, "k%d: %d\n", i, i);
    psld_yaml *yaml = parse(text); /* many keys take no long time */
    assert_int_equal(psld_node_size(psld_yaml_root(yaml)), 60000);
    psld_yaml_free(yaml);
    sprintf(end, "k30000: 0\n");
    assert_refused(text, "my.yaml:60001: key \"k30000\" stands twice, first on line 30001");
    psld_release(text);
}

static void keys_are_plain_text(void **state)
{
    (void)state;
    const char *what = "a key must be plain text (no list, map, alias or anchor)";
    char message[256];
    snprintf(message, sizeof message, "my.yaml:2: %s", what);
    assert_refused("a: 1\n? [b]\n: 2\n", message);
    assert_refused("a: 1\n? {b: 1}\n: 2\n", message);
    assert_refused("a: &x 1\n*x : 2\n", message);
    snprintf(message, sizeof message, "my.yaml:2: m: %s", what);
    assert_refused("m:\n  &x a: 1\n", message);
    psld_yaml *yaml = parse("3: a\n'': b\n");
    assert_string_equal(text_of(at(yaml, "3")), "a");
    assert_string_equal(psld_node_key_at(psld_yaml_root(yaml), 1), "");
    psld_yaml_free(yaml);
}

static void one_document(void **state)
{
    (void)state;
    assert_refused("a: 1\n---\nb: 2\n", "my.yaml:2: a second document begins here, expected one");
    assert_refused("---\n---\n", "my.yaml:2: a second document begins here, expected one");
    psld_yaml_free(parse("---\na: 1\n...\n"));
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    char *text = repeat("", "[", 63, "1");
    char *closed = repeat(text, "]", 63, "");
    psld_yaml_free(parse(closed)); /* the scalar lies at level 64 */
    psld_release(text);
    psld_release(closed);
    text = repeat("\n", "[", 64, "1");
    assert_refused(text, "my.yaml:2: nested deeper than 64 levels");
    psld_release(text);
    static const char *const pieces[] = {"[", "{a: ", "- ", "? ", "{? "};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        psld_yaml *yaml = NULL;
        text = repeat("", pieces[i], (1 << 20) / strlen(pieces[i]), "");
        assert_int_equal(psld_yaml_parse(text, strlen(text), "my.yaml", &yaml), PSLD_BAD_INPUT);
        assert_null(yaml);
        psld_release(text);
    }
    psld_yaml *yaml = parse("{}");
    text = repeat("a", ".a", 63, "=");
    assert_int_equal(psld_yaml_override(yaml, text), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "expected 1 to 63 keys with '.' between them before '='"));
    psld_release(text);
    text = repeat("a", ".a", 62, "=1");
    assert_int_equal(psld_yaml_override(yaml, text), PSLD_OK);
    psld_release(text);
    text = repeat("a", ".a", 61, "=[[1]]");
    assert_int_equal(psld_yaml_override(yaml, text), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), ": nested deeper than 64 levels"));
    psld_release(text);
    psld_yaml_free(yaml);
}

static void text_is_bounded(void **state)
{
    (void)state;
    char *text = repeat("a: ", "x", (1 << 20) - 3, "");
    psld_yaml *yaml = parse(text);
    assert_int_equal(strlen(text_of(at(yaml, "a"))), (1 << 20) - 3);
    double number = 0;
    assert_fails(psld_node_number(at(yaml, "a"), &number),
                 "my.yaml:1: a: expected a number, found "
                 "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\"");
    psld_yaml_free(yaml);
    psld_release(text);
    text = repeat("", "x", (1 << 20) + 1, "");
    assert_refused(text, "my.yaml: longer than the 1048576 bytes that it may have");
    psld_release(text);
    text = repeat("[", "1,", 99999, "]");
    psld_yaml_free(parse(text));
    psld_release(text);
    text = repeat("[", "1,", 100000, "]");
    assert_refused(text, "my.yaml: more than 100000 values after expanding its aliases");
    psld_release(text);
}

/* ---- Aliases ----------------------------------------------------------------------------------------------------- */

static void aliases_are_copies(void **state)
{
    (void)state;
    psld_yaml *yaml = parse("a: &x\n  b: [1, oops]\nc: *x\nd: &x 5\ne: *x\nf: [*x, *x]\n");
    assert_true(number_of(at(yaml, "e")) == 5); /* the last anchor of the name */
    assert_true(number_of(psld_node_at(at(yaml, "f"), 1)) == 5);
    assert_true(number_of(psld_node_at(at(yaml, "c/b"), 0)) == 1);
    double numbers[2];
    assert_fails(psld_node_numbers(at(yaml, "c/b"), 2, numbers),
                 "my.yaml:2: c.b[1]: expected a number, found \"oops\"");
    static const char *const known[] = {"a", "d", "e", "f", NULL};
    assert_fails(psld_node_check_keys(psld_yaml_root(yaml), known),
                 "my.yaml:3: unknown key \"c\", known are a, d, e, f");
    /* A copy has a life of its own. */
    assert_int_equal(psld_yaml_override(yaml, "a.b=7"), PSLD_OK);
    assert_true(number_of(psld_node_at(at(yaml, "c/b"), 0)) == 1);
    psld_yaml_free(yaml);
}

static void aliases_need_an_anchor(void **state)
{
    (void)state;
    assert_refused("a: 1\nb: [*y]\n", "my.yaml:2: b: alias *y has no anchor before it");
    assert_refused("*y", "my.yaml:1: alias *y has no anchor before it");
    assert_refused("a: *b\nb: &b 1\n", "my.yaml:1: alias *b has no anchor before it");
}

static void cycles_are_refused(void **state)
{
    (void)state;
    assert_refused("a: &x [1, *x]\n", "my.yaml:1: a: alias *x stands inside the value that it names");
    assert_refused("&x\na: &y\n  b:\n  - *x\n", "my.yaml:4: a.b: alias *x stands inside the value that it names");
    assert_refused("&x {a: *x}", "my.yaml:1: alias *x stands inside the value that it names");
}

static void bombs_are_refused(void **state)
{
    (void)state;
    char *text = psld_alloc(1 << 12, 1), *end = text;
    end += sprintf(end, "x0: &x0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for (int i = 1; i < 10; i++) {
        end += sprintf(end, "x%d: &x%d [", i, i);
        for (int j = 0; j < 10; j++) end += sprintf(end, "*x%d, ", i - 1);
        end += sprintf(end, "]\n");
    }
    assert_refused(text, "my.yaml: more than 100000 values after expanding its aliases");
    /* Each level one deeper than the last: the text itself is flat. */
    end = text + sprintf(text, "x0: &x0 1\n");
    for (int i = 1; i < 70; i++) end += sprintf(end, "x%d: &x%d [*x%d]\n", i, i, i - 1);
    assert_refused(text, "my.yaml:64: nested deeper than 64 levels");
    psld_release(text);
    text = repeat("", "- &a 1\n", 1000, "");
    psld_yaml_free(parse(text));
    psld_release(text);
    text = repeat("", "- &a 1\n", 1001, "");
    assert_refused(text, "my.yaml: more than 1000 anchors");
    psld_release(text);
    text = repeat("", "%TAG !a! b\n", 101, "--- 1\n");
    assert_refused(text, "my.yaml: more than 100 times %TAG");
    psld_release(text);
}

/* ---- Typed reading ----------------------------------------------------------------------------------------------- */

static void numbers(void **state)
{
    (void)state;
    psld_yaml *yaml = parse("a: 1e-9\nb: .5\nc: abc\nd: .inf\ne: [1]\nf: {x: 1}\ng: nan\nh: 1e999\ni:\nj: 0x10\n");
    double number = -77;
    assert_true(number_of(at(yaml, "a")) == 1e-9);
    assert_true(number_of(at(yaml, "b")) == 0.5);
    assert_fails(psld_node_number(at(yaml, "c"), &number), "my.yaml:3: c: expected a number, found \"abc\"");
    assert_fails(psld_node_number(at(yaml, "d"), &number), "my.yaml:4: d: expected a finite number, found \".inf\"");
    assert_fails(psld_node_number(at(yaml, "e"), &number), "my.yaml:5: e: expected a number, found a list");
    assert_fails(psld_node_number(at(yaml, "f"), &number), "my.yaml:6: f: expected a number, found a map");
    assert_fails(psld_node_number(at(yaml, "g"), &number), "my.yaml:7: g: expected a finite number, found \"nan\"");
    assert_fails(psld_node_number(at(yaml, "h"), &number), "my.yaml:8: h: expected a finite number, found \"1e999\"");
    assert_fails(psld_node_number(at(yaml, "i"), &number), "my.yaml:9: i: expected a number, found \"\"");
    assert_fails(psld_node_number(at(yaml, "j"), &number), "my.yaml:10: j: expected a number, found \"0x10\"");
    const char *text = NULL;
    assert_fails(psld_node_text(at(yaml, "e"), &text), "my.yaml:5: e: expected text, found a list");
    assert_true(number == -77);
    psld_yaml_free(yaml);
}

static void integers(void **state)
{
    (void)state;
    psld_yaml *yaml = parse("a: 12\nb: 1e6\nc: 1.5\nd: 9223372036854775807\ne: 1e300\nf: -3\ng: [1]\nh: nan\n");
    int64_t integer = -77;
    assert_int_equal(psld_node_integer(at(yaml, "a"), 12, 12, &integer), PSLD_OK);
    assert_int_equal(integer, 12);
    assert_int_equal(psld_node_integer(at(yaml, "b"), 1, INT64_MAX, &integer), PSLD_OK);
    assert_int_equal(integer, 1000000);
    assert_int_equal(psld_node_integer(at(yaml, "d"), 1, INT64_MAX, &integer), PSLD_OK);
    assert_true(integer == INT64_MAX);
    assert_int_equal(psld_node_integer(at(yaml, "f"), INT64_MIN, INT64_MAX, &integer), PSLD_OK);
    assert_int_equal(integer, -3);
    assert_fails(psld_node_integer(at(yaml, "c"), INT64_MIN, INT64_MAX, &integer),
                 "my.yaml:3: c: expected a whole number, found \"1.5\"");
    assert_fails(psld_node_integer(at(yaml, "a"), 1, 8, &integer),
                 "my.yaml:1: a: expected a whole number from 1 to 8, found \"12\"");
    assert_fails(psld_node_integer(at(yaml, "f"), 1, INT64_MAX, &integer),
                 "my.yaml:6: f: expected a whole number of at least 1, found \"-3\"");
    assert_fails(psld_node_integer(at(yaml, "a"), INT64_MIN, 8, &integer),
                 "my.yaml:1: a: expected a whole number of at most 8, found \"12\"");
    assert_fails(psld_node_integer(at(yaml, "e"), INT64_MIN, INT64_MAX, &integer),
                 "my.yaml:5: e: expected a whole number, found \"1e300\"");
    assert_fails(psld_node_integer(at(yaml, "g"), INT64_MIN, INT64_MAX, &integer),
                 "my.yaml:7: g: expected a whole number, found a list");
    assert_fails(psld_node_integer(at(yaml, "h"), INT64_MIN, INT64_MAX, &integer),
                 "my.yaml:8: h: expected a whole number, found \"nan\"");
    assert_int_equal(integer, -3);
    psld_yaml_free(yaml);
}

static void flags(void **state)
{
    (void)state;
    psld_yaml *yaml = parse("[true, false, yes, no, on, off, True, OFF, maybe, 1, [true]]");
    for (size_t i = 0; i < 8; i++) {
        int flag = -1;
        assert_int_equal(psld_node_flag(psld_node_at(psld_yaml_root(yaml), i), &flag), PSLD_OK);
        assert_int_equal(flag, i % 2 == 0);
    }
    int flag = -1;
    assert_fails(psld_node_flag(psld_node_at(psld_yaml_root(yaml), 8), &flag),
                 "my.yaml:1: [8]: expected true or false, found \"maybe\"");
    assert_fails(psld_node_flag(psld_node_at(psld_yaml_root(yaml), 9), &flag),
                 "my.yaml:1: [9]: expected true or false, found \"1\"");
    assert_fails(psld_node_flag(psld_node_at(psld_yaml_root(yaml), 10), &flag),
                 "my.yaml:1: [10]: expected true or false, found a list");
    assert_int_equal(flag, -1);
    psld_yaml_free(yaml);
}

static void lists_and_matrices(void **state)
{
    (void)state;
    psld_yaml *yaml = parse("good: [[1, 2], [3, 4]]\nD: [[1, 2],\n    [abc, 4]]\nmixture: {weights: [1, 2, x]}\n"
                            "long: [1, 2, 3]\nragged: [[1, 2], [3]]\nscalar: 3\n");
    double m[4] = {0};
    assert_int_equal(psld_node_matrix(at(yaml, "good"), 2, 2, m), PSLD_OK);
    assert_true(m[0] == 1 && m[1] == 2 && m[2] == 3 && m[3] == 4);
    assert_int_equal(psld_node_numbers(at(yaml, "long"), 3, m), PSLD_OK);
    assert_fails(psld_node_matrix(at(yaml, "D"), 2, 2, m), "my.yaml:3: D[1][0]: expected a number, found \"abc\"");
    assert_fails(psld_node_numbers(at(yaml, "mixture/weights"), 3, m),
                 "my.yaml:4: mixture.weights[2]: expected a number, found \"x\"");
    assert_fails(psld_node_numbers(at(yaml, "long"), 2, m), "my.yaml:5: long: expected a list of 2 numbers, found 3");
    assert_fails(psld_node_numbers(at(yaml, "long"), 1, m), "my.yaml:5: long: expected a list of 1 number, found 3");
    assert_fails(psld_node_matrix(at(yaml, "ragged"), 2, 2, m),
                 "my.yaml:6: ragged[1]: expected a list of 2 numbers, found 1");
    assert_fails(psld_node_matrix(at(yaml, "long"), 3, 2, m),
                 "my.yaml:5: long[0]: expected a list of 2 numbers, found \"1\"");
    assert_fails(psld_node_matrix(at(yaml, "good"), 1, 4, m),
                 "my.yaml:1: good: expected a list of 1 row of 4 numbers, found 2");
    assert_fails(psld_node_matrix(at(yaml, "scalar"), 2, 1, m),
                 "my.yaml:7: scalar: expected a list of 2 rows of 1 number, found \"3\"");
    assert_fails(psld_node_numbers(at(yaml, "mixture"), 1, m),
                 "my.yaml:4: mixture: expected a list of 1 number, found a map");
    psld_yaml_free(yaml);
}

static void unknown_keys(void **state)
{
    (void)state;
    static const char *const known[] = {"weights", "means", NULL};
    psld_yaml *yaml = parse("mixture:\n  means: [1]\n\n  wieghts:\n    [2]\nbase: {<<: 3}\nlist: []\n");
    assert_fails(psld_node_check_keys(at(yaml, "mixture"), known),
                 "my.yaml:4: mixture: unknown key \"wieghts\": did you mean \"weights\"? known are weights, means");
    assert_fails(psld_node_check_keys(at(yaml, "base"), known),
                 "my.yaml:6: base: unknown key \"<<\", known are weights, means");
    assert_fails(psld_node_check_keys(psld_yaml_root(yaml), known),
                 "my.yaml:1: unknown key \"mixture\", known are weights, means");
    assert_fails(psld_node_check_keys(at(yaml, "list"), known),
                 "my.yaml:7: list: expected a map of keys, found a list");
    psld_yaml_free(yaml);
    yaml = parse("{means: 1, weights: 2}");
    assert_int_equal(psld_node_check_keys(psld_yaml_root(yaml), known), PSLD_OK);
    psld_yaml_free(yaml);
}

static void callers_can_fail_at_a_node(void **state)
{
    (void)state;
    psld_yaml *yaml = parse("a:\n  b: [3, -1]\n");
    assert_fails(psld_node_fail(psld_node_at(at(yaml, "a/b"), 1), "must be positive, is %d", -1),
                 "my.yaml:2: a.b[1]: must be positive, is -1");
    assert_fails(psld_node_fail(psld_yaml_root(yaml), "key \"%s\" is missing", "D"), "my.yaml:1: key \"D\" is missing");
    psld_yaml_free(yaml);
}

/* Whatever a key has, the message stays one line and within its bounds. */
static void messages_stay_one_line(void **state)
{
    (void)state;
    psld_yaml *yaml = parse("\"a\\nb\\e[31m\": \"c\\nd\"\n");
    double number = 0;
    assert_fails(psld_node_number(psld_node_at(psld_yaml_root(yaml), 0), &number),
                 "my.yaml:1: a?b?[31m: expected a number, found \"c?d\"");
    psld_yaml_free(yaml);
    char *text = repeat("? ", "k", 5000, "\n: [1, x]\n");
    yaml = parse(text);
    assert_int_equal(psld_node_number(psld_node_at(psld_node_at(psld_yaml_root(yaml), 0), 1), &number), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "kk: expected a number, found \"x\""));
    static const char *const known[] = {"a", NULL};
    assert_int_equal(psld_node_check_keys(psld_yaml_root(yaml), known), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "kkk...\", known are a"));
    psld_yaml_free(yaml);
    psld_release(text);
    /* A value is not cut within a character: 59 bytes and then one of two. */
    text = repeat("a: ", "v", 59, "\xc3\xbc\xc3\xbc\n");
    yaml = parse(text);
    assert_int_equal(psld_node_number(at(yaml, "a"), &number), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "vvv...\""));
    psld_yaml_free(yaml);
    psld_release(text);
}

/* ---- Overrides --------------------------------------------------------------------------------------------------- */

static void overrides_set_values(void **state)
{
    (void)state;
    psld_yaml *yaml = parse("beta: 8\nmodel: {depth: 3}\nnothing:\n");
    assert_int_equal(psld_yaml_override(yaml, "beta=[0.1, 20]"), PSLD_OK);
    assert_int_equal(psld_yaml_override(yaml, "model.depth=4"), PSLD_OK);
    assert_int_equal(psld_yaml_override(yaml, "model.width=16"), PSLD_OK);
    assert_int_equal(psld_yaml_override(yaml, "new.made.here={x: 1}"), PSLD_OK);
    assert_int_equal(psld_yaml_override(yaml, "new.made.here.y=a=b"), PSLD_OK);
    assert_int_equal(psld_yaml_override(yaml, "nothing.now=some"), PSLD_OK);
    assert_int_equal(psld_yaml_override(yaml, "empty="), PSLD_OK);
    double beta[2];
    assert_int_equal(psld_node_numbers(at(yaml, "beta"), 2, beta), PSLD_OK);
    assert_true(beta[0] == 0.1 && beta[1] == 20);
    assert_true(number_of(at(yaml, "model/depth")) == 4);
    assert_int_equal(psld_node_size(at(yaml, "model")), 2);
    assert_true(number_of(at(yaml, "new/made/here/x")) == 1);
    assert_string_equal(text_of(at(yaml, "new/made/here/y")), "a=b");
    assert_string_equal(text_of(at(yaml, "nothing/now")), "some");
    assert_string_equal(text_of(at(yaml, "empty")), "");
    assert_string_equal(psld_node_key_at(psld_yaml_root(yaml), 0), "beta"); /* in its old place */
    assert_int_equal(psld_node_size(psld_yaml_root(yaml)), 5);
    psld_yaml_free(yaml);
}

static void overrides_are_their_own_origin(void **state)
{
    (void)state;
    psld_yaml *yaml = parse("gamma: 1\nD: 3\n");
    double number = 0, matrix[4];
    assert_int_equal(psld_yaml_override(yaml, "gamma=abc"), PSLD_OK);
    assert_fails(psld_node_number(at(yaml, "gamma"), &number), "gamma=abc: expected a number, found \"abc\"");
    assert_int_equal(psld_yaml_override(yaml, "D=[[1, 2], [x, 4]]"), PSLD_OK);
    assert_fails(psld_node_matrix(at(yaml, "D"), 2, 2, matrix),
                 "D=[[1, 2], [x, 4]]: D[1][0]: expected a number, found \"x\"");
    assert_int_equal(psld_yaml_override(yaml, "a.b.c=q"), PSLD_OK);
    assert_fails(psld_node_number(at(yaml, "a/b/c"), &number), "a.b.c=q: expected a number, found \"q\"");
    assert_fails(psld_node_number(at(yaml, "a/b"), &number), "a.b.c=q: a.b: expected a number, found a map");
    static const char *const known[] = {"gamma", "D", NULL};
    assert_fails(psld_node_check_keys(psld_yaml_root(yaml), known), "a.b.c=q: unknown key \"a\", known are gamma, D");
    assert_fails(psld_node_check_keys(at(yaml, "a"), known), "a.b.c=q: a: unknown key \"b\", known are gamma, D");
    /* A long one is shortened, so that the message has room. */
    char *text = repeat("gamma=", "v", 2000, "");
    assert_int_equal(psld_yaml_override(yaml, text), PSLD_OK);
    assert_int_equal(psld_node_number(at(yaml, "gamma"), &number), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "vvv...: expected a number, found \"vvv"));
    psld_release(text);
    psld_yaml_free(yaml);
}

static void bad_overrides_change_nothing(void **state)
{
    (void)state;
    psld_yaml *yaml = parse("a: 3\nl: [1, 2]\n");
    assert_fails(psld_yaml_override(yaml, "gamma"), "gamma: expected KEY=VALUE");
    assert_fails(psld_yaml_override(yaml, "=3"), "=3: expected KEY=VALUE");
    assert_fails(psld_yaml_override(yaml, ""), ": expected KEY=VALUE");
    static const char *const empty[] = {"a..b=1", ".a=1", "a.=1", ".=1"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(psld_yaml_override(yaml, empty[i]), PSLD_BAD_INPUT);
        assert_non_null(strstr(psld_error_text(), ": expected 1 to 63 keys with '.' between them before '='"));
    }
    assert_fails(psld_yaml_override(yaml, "a.b=1"), "a.b=1: a is no map of keys");
    assert_fails(psld_yaml_override(yaml, "l.b.c=1"), "l.b.c=1: l is no map of keys");
    assert_fails(psld_yaml_override(yaml, "a=[1, 2"),
                 "a=[1, 2: at the end of the value: while parsing a flow sequence, did not find expected ',' or ']'");
    assert_fails(psld_yaml_override(yaml, "a=[1, ]]"),
                 "a=[1, ]]: at column 6 of the value: did not find expected <document start>");
    assert_fails(psld_yaml_override(yaml, "a=\xff"), "a=\xff: at column 1 of the value: invalid leading UTF-8 octet");
    assert_fails(psld_yaml_override(yaml, "a={x: 1, x: 2}"), "a={x: 1, x: 2}: key \"x\" stands twice");
    assert_fails(psld_yaml_override(yaml, "a=\"\\0\""), "a=\"\\0\": the character NUL is not allowed in text");
    assert_fails(psld_yaml_override(yaml, "a=*l"), "a=*l: alias *l has no anchor before it");
    assert_int_equal(psld_node_size(psld_yaml_root(yaml)), 2);
    assert_true(number_of(at(yaml, "a")) == 3);
    psld_yaml_free(yaml);
    yaml = parse("[1, 2]");
    assert_fails(psld_yaml_override(yaml, "a=1"), "a=1: my.yaml holds no map of keys");
    psld_yaml_free(yaml);
}

/* ---- Out of memory ----------------------------------------------------------------------------------------------- */

static psld_status parse_and_override(void)
{
    static const char text[] = "a: &x {b: [1, 2], c: text}\nd: *x\ne: [*x, *x]\n";
    psld_yaml *yaml = NULL;
    psld_status status = psld_yaml_parse(text, sizeof text - 1, "my.yaml", &yaml);
    if (status == PSLD_OK) status = psld_yaml_override(yaml, "p.q.r=[1, {x: y}]");
    if (status != PSLD_OK && yaml) assert_null(psld_node_get(psld_yaml_root(yaml), "p"));
    if (status == PSLD_OK) status = psld_yaml_override(yaml, "a.b=");
    if (status != PSLD_OK && yaml) assert_int_equal(psld_node_size(at(yaml, "a/b")), 2);
    if (status == PSLD_OK) status = psld_yaml_override(yaml, "d.c=[1, 2]");
    psld_yaml_free(yaml);
    return status;
}

static psld_status load(void)
{
    psld_yaml *yaml = NULL;
    psld_status status = psld_yaml_load("memory.yaml", &yaml);
    if (status != PSLD_OK) assert_null(yaml);
    psld_yaml_free(yaml);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    FILE *file = fopen("memory.yaml", "w");
    fputs("a: [1, 2]\n", file);
    fclose(file);
    psld_status (*const calls[])(void) = {parse_and_override, load};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) starve(calls[i]);
}

/* Any text without NUL that is UTF-8, as an override's value and within a list. */
static void texts_become_scalars(void **state)
{
    (void)state;
    static const struct {
        const char *text, *written;
    } rows[] = {
        {"plain", "plain"},     {"a path/x-1.5", "a path/x-1.5"},
        {"./x", "./x"},         {"-5", "-5"},
        {"", "\"\""},           {" x", "\" x\""},
        {"x ", "\"x \""},       {"-", "\"-\""},
        {"- x", "\"- x\""},     {"---", "\"---\""},
        {"...", "\"...\""},     {"a\"b", "\"a\\\"b\""},
        {"a\\b", "\"a\\\\b\""}, {"a\nb\t\x7f", "\"a\\x0ab\\x09\\x7f\""},
        {"a: b", "\"a: b\""},   {"[x]", "\"[x]\""},
        {"#x", "\"#x\""},       {"\xc3\xa9", "\"\xc3\xa9\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char written[64], assignment[256];
        assert_int_equal(psld_yaml_put_scalar(rows[i].text, written), strlen(rows[i].written));
        assert_string_equal(written, rows[i].written);
        assert_true(strlen(written) < PSLD_YAML_ROOM(rows[i].text));
        psld_yaml *yaml = parse("{}");
        snprintf(assignment, sizeof assignment, "a=%s", written);
        assert_int_equal(psld_yaml_override(yaml, assignment), PSLD_OK);
        snprintf(assignment, sizeof assignment, "b=[%s, {c: %s}]", written, written);
        assert_int_equal(psld_yaml_override(yaml, assignment), PSLD_OK);
        assert_string_equal(text_of(at(yaml, "a")), rows[i].text);
        assert_string_equal(text_of(psld_node_at(at(yaml, "b"), 0)), rows[i].text);
        assert_string_equal(text_of(psld_node_get(psld_node_at(at(yaml, "b"), 1), "c")), rows[i].text);
        psld_yaml_free(yaml);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_scalars_lists_and_maps),
        cmocka_unit_test(text_without_a_value_is_an_empty_map),
        cmocka_unit_test(scalars_keep_their_text),
        cmocka_unit_test(a_root_may_be_anything),
        cmocka_unit_test(loads_files),
        cmocka_unit_test(bad_syntax_has_line_and_column),
        cmocka_unit_test(nul_is_refused),
        cmocka_unit_test(keys_stand_once),
        cmocka_unit_test(keys_are_plain_text),
        cmocka_unit_test(one_document),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(text_is_bounded),
        cmocka_unit_test(aliases_are_copies),
        cmocka_unit_test(aliases_need_an_anchor),
        cmocka_unit_test(cycles_are_refused),
        cmocka_unit_test(bombs_are_refused),
        cmocka_unit_test(numbers),
        cmocka_unit_test(integers),
        cmocka_unit_test(flags),
        cmocka_unit_test(lists_and_matrices),
        cmocka_unit_test(unknown_keys),
        cmocka_unit_test(callers_can_fail_at_a_node),
        cmocka_unit_test(messages_stay_one_line),
        cmocka_unit_test(overrides_set_values),
        cmocka_unit_test(overrides_are_their_own_origin),
        cmocka_unit_test(bad_overrides_change_nothing),
        cmocka_unit_test(texts_become_scalars),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
