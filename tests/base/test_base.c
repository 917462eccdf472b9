/* The base layer: messages, memory, random numbers by address, threads, log and progress. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <Random123/philox.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/bf16.h"
#include "base/half.h"
#include "base/log.h"
#include "base/quantile.h"
#include "base/random.h"
#include "base/text.h"
#include "base/threads.h"
#include "sanitized.h"
#include "skip.h"

/* ---- Status ------------------------------------------------------------------------------------------------------ */

static void failing_returns_the_status_and_sets_the_text(void **state)
{
    (void)state;
    assert_int_equal(psld_fail(PSLD_IO, "%s: line %d of %.1f", "x.yaml", 3, 4.5), PSLD_IO);
    assert_string_equal(psld_error_text(), "x.yaml: line 3 of 4.5");
    assert_int_equal(psld_fail(PSLD_BAD_INPUT, "another"), PSLD_BAD_INPUT);
    assert_string_equal(psld_error_text(), "another");
}

static void context_comes_before_the_text(void **state)
{
    (void)state;
    psld_fail(PSLD_BAD_INPUT, "expected %d", 1);
    assert_int_equal(psld_fail_in(PSLD_BAD_INPUT, "D[%d]", 2), PSLD_BAD_INPUT);
    assert_int_equal(psld_fail_in(PSLD_IO, "%s", "a.yaml"), PSLD_IO);
    assert_string_equal(psld_error_text(), "a.yaml: D[2]: expected 1");
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
    (void)state;
    char all[128], expected[128];
    for (int c = 1; c < 128; c++) {
        all[c - 1] = (char)c;
        expected[c - 1] = c < 0x20 || c == 0x7f ? '?' : (char)c;
    }
    all[127] = expected[127] = 0;
    psld_fail(PSLD_BAD_INPUT, "%s", all);
    assert_string_equal(psld_error_text(), expected);
    psld_fail(PSLD_BAD_INPUT, "ok");
    psld_fail_in(PSLD_BAD_INPUT, "two\nlines\033[2J");
    assert_string_equal(psld_error_text(), "two?lines?[2J: ok");
    psld_fail(PSLD_BAD_INPUT, "M\xc3\xbcnchen"); /* UTF-8 stays */
    assert_string_equal(psld_error_text(), "M\xc3\xbcnchen");
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    psld_fail(PSLD_BAD_INPUT, "%s", text);
    size_t length = strlen(psld_error_text());
    assert_in_range(length, 100, 2000);
    assert_memory_equal(psld_error_text(), text, length);
    for (int i = 0; i < 10; i++) psld_fail_in(PSLD_BAD_INPUT, "%s", text);
    assert_in_range(strlen(psld_error_text()), 100, 2000);
    assert_memory_equal(psld_error_text(), text, 100);
}

static void *fail_elsewhere(void *seen)
{
    *(int *)seen = psld_error_text()[0] != 0; /* a new thread has not failed yet */
    psld_fail(PSLD_IO, "other");
    return NULL;
}

static void each_thread_has_its_own_text(void **state)
{
    (void)state;
    pthread_t thread;
    int seen = 1;
    psld_fail(PSLD_IO, "mine");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(seen, 0);
    assert_string_equal(psld_error_text(), "mine");
}

static psld_status pass_on(psld_status status, int *reached)
{
    PSLD_TRY(status);
    (*reached)++;
    return PSLD_OK;
}

static psld_status pass_to_label(psld_status given, int *released)
{
    psld_status status;
    PSLD_TRY_OR(done, given);
    status = PSLD_CANCELLED;
done:
    (*released)++;
    return status;
}

static void failures_are_passed_on(void **state)
{
    (void)state;
    int count = 0;
    assert_int_equal(pass_on(PSLD_IO, &count), PSLD_IO);
    assert_int_equal(count, 0);
    assert_int_equal(pass_on(PSLD_OK, &count), PSLD_OK);
    assert_int_equal(count, 1);
    assert_int_equal(pass_to_label(PSLD_IO, &count), PSLD_IO);
    assert_int_equal(pass_to_label(PSLD_OK, &count), PSLD_CANCELLED);
    assert_int_equal(count, 3);
}

static void statuses_keep_their_values(void **state)
{
    (void)state;
    assert_int_equal(PSLD_OK, 0);
    assert_int_equal(PSLD_NO_MEMORY, 1);
    assert_int_equal(PSLD_BAD_ARGUMENT, 2);
    assert_int_equal(PSLD_BAD_INPUT, 3);
    assert_int_equal(PSLD_IO, 4);
    assert_int_equal(PSLD_CANCELLED, 5);
    assert_int_equal(PSLD_NOT_FINITE, 6);
    assert_string_equal(psld_version(), PSLD_VERSION);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static void blocks_are_aligned_and_zero(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 7, 63, 64, 65, 127, 128, 4095, 4096, 1000003};
    long live = psld_alloc_live();
    for (int round = 0; round < 3; round++) /* the later rounds get memory that was written to */
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned char *block = psld_alloc(sizes[i], 1);
            assert_non_null(block);
            assert_int_equal((uintptr_t)block % 64, 0);
            for (size_t j = 0; j < sizes[i]; j++) assert_int_equal(block[j], 0);
            assert_int_equal(psld_alloc_live(), live + 1);
            if (sizes[i]) memset(block, 0xff, sizes[i]);
            psld_release(block);
            assert_int_equal(psld_alloc_live(), live);
        }
    psld_release(NULL);
    assert_int_equal(psld_alloc_live(), live);
}

static void impossible_sizes_fail(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {{SIZE_MAX, 1},
                                      {SIZE_MAX, 2},
                                      {SIZE_MAX / 2 + 1, 2},
                                      {2, SIZE_MAX},
                                      {(size_t)1 << 33, (size_t)1 << 33},
                                      {SIZE_MAX - 63, 1},
                                      {SIZE_MAX - 127, 1}};
    long live = psld_alloc_live();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char expected[128];
        snprintf(expected, sizeof expected, "out of memory: %zu elements of %zu bytes asked for", sizes[i][0],
                 sizes[i][1]);
        assert_null(psld_alloc(sizes[i][0], sizes[i][1]));
        assert_string_equal(psld_error_text(), expected);
    }
    assert_int_equal(psld_alloc_live(), live);
}

static void the_nth_allocation_can_be_made_to_fail(void **state)
{
    (void)state;
    for (int n = 1; n <= 5; n++) {
        psld_alloc_fail_at(n);
        for (int i = 1; i <= 7; i++) {
            long live = psld_alloc_live();
            void *block = psld_alloc(10, 10);
            assert_int_equal(block == NULL, i == n); /* once */
            assert_int_equal(psld_alloc_live(), live + (i != n));
            assert_int_equal(psld_alloc_failed(), i >= n);
            psld_release(block);
        }
    }
    psld_alloc_fail_at(1);
    psld_alloc_fail_at(0);
    void *block = psld_alloc(1, 1);
    assert_non_null(block);
    assert_int_equal(psld_alloc_failed(), 0);
    psld_release(block);
}

static void copies_are_copies(void **state)
{
    (void)state;
    const char text[] = "a\tb";
    char *copy = psld_copy_text(text);
    assert_string_equal(copy, text);
    assert_ptr_not_equal(copy, text);
    char *bytes = psld_copy_bytes("x\0y", 3), *none = psld_copy_bytes(NULL, 0);
    assert_memory_equal(bytes, "x\0y", 3);
    assert_non_null(none);
    psld_release(copy);
    psld_release(bytes);
    psld_release(none);
    psld_alloc_fail_at(1);
    assert_null(psld_copy_text(text));
    psld_alloc_fail_at(1);
    assert_null(psld_copy_bytes(text, 2));
    psld_alloc_fail_at(0);
}

static void growing_keeps_contents(void **state)
{
    (void)state;
    void *block = NULL;
    size_t capacity = 0, moves = 0;
    long live = psld_alloc_live();
    for (size_t n = 1; n <= 10000; n++) {
        size_t before = capacity;
        assert_int_equal(psld_grow(&block, &capacity, n, sizeof(size_t)), PSLD_OK);
        assert_true(capacity >= n && capacity >= before);
        moves += capacity != before;
        ((size_t *)block)[n - 1] = n * n;
    }
    for (size_t n = 1; n <= 10000; n++) assert_int_equal(((size_t *)block)[n - 1], n * n);
    for (size_t n = 10000; n < capacity; n++) assert_int_equal(((size_t *)block)[n], 0);
    assert_in_range(moves, 2, 40); /* geometric */
    assert_int_equal(psld_alloc_live(), live + 1);

    void *old = block; /* a failure leaves all as it was */
    size_t old_capacity = capacity;
    psld_alloc_fail_at(1);
    assert_int_equal(psld_grow(&block, &capacity, capacity + 1, sizeof(size_t)), PSLD_NO_MEMORY);
    psld_alloc_fail_at(0);
    assert_int_equal(psld_grow(&block, &capacity, SIZE_MAX, sizeof(size_t)), PSLD_NO_MEMORY);
    assert_int_equal(psld_grow(&block, &capacity, SIZE_MAX / 2, 1), PSLD_NO_MEMORY);
    assert_ptr_equal(block, old);
    assert_int_equal(capacity, old_capacity);
    assert_int_equal(((size_t *)block)[99], 10000);
    psld_release(block);
    assert_int_equal(psld_alloc_live(), live);
}

/* ---- Random numbers ---------------------------------------------------------------------------------------------- */

/* Philox 4x64-10 as the paper (Salmon et al. 2011) writes it, in 128-bit arithmetic, without Random123's header. */
static void plain_philox(const uint64_t counter[4], const uint64_t key[2], uint64_t out[4])
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t k0 = key[0], k1 = key[1];
    memcpy(out, counter, 4 * sizeof *out);
    for (int round = 0; round < 10; round++) {
        wide a = (wide)out[0] * 0xD2E7470EE14C6C93u, b = (wide)out[2] * 0xCA5A826395121157u;
        uint64_t next[4] = {(uint64_t)(b >> 64) ^ out[1] ^ k0, (uint64_t)b, (uint64_t)(a >> 64) ^ out[3] ^ k1,
                            (uint64_t)a};
        memcpy(out, next, sizeof next);
        k0 += 0x9E3779B97F4A7C15u;
        k1 += 0xBB67AE8584CAA73Bu;
    }
}

/* Random123's kat_vectors. */
static void philox_gives_the_published_numbers(void **state)
{
    (void)state;
    static const uint64_t ones = UINT64_MAX;
    const struct {
        uint64_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x16554d9eca36314c, 0xdb20fe9d672d0fdc, 0xd7e772cee186176b, 0x7e68b68aec7ba23b}},
        {{ones, ones, ones, ones},
         {ones, ones},
         {0x87b092c3013fe90b, 0x438c3c67be8d0224, 0x9cc7d7c69cd777b6, 0xa09caebf594f0ba0}},
        {{0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89},
         {0x452821e638d01377, 0xbe5466cf34e90c6c},
         {0xa528f45403e61d95, 0x38c72dbd566e9788, 0xa5a1610e72fd18b5, 0x57bd43b5e52b7fe6}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint64_t plain[4];
        philox4x64_ctr_t counter;
        philox4x64_key_t key;
        memcpy(counter.v, known[i].counter, sizeof counter.v);
        memcpy(key.v, known[i].key, sizeof key.v);
        philox4x64_ctr_t out = philox4x64(counter, key);
        plain_philox(known[i].counter, known[i].key, plain);
        for (int w = 0; w < 4; w++) {
            assert_int_equal(out.v[w], known[i].out[w]);
            assert_int_equal(plain[w], known[i].out[w]);
        }
    }
}

/* The address of a number is part of what a seed means, so this is kept as it is. */
static void a_number_is_a_word_of_the_block_at_its_address(void **state)
{
    (void)state;
    static const uint64_t places[] = {0, 1, 2, 3, 12345, (uint64_t)1 << 40, UINT64_MAX};
    enum { PLACES = sizeof places / sizeof *places };
    for (int i = 0; i < PLACES * PLACES * PLACES; i++) {
        uint64_t seed = places[i % PLACES], sample = places[i / PLACES % PLACES], step = places[i / PLACES / PLACES];
        uint64_t element = ((uint64_t)i * 7919) & 0xffff, words[4];
        enum psld_purpose purpose = (enum psld_purpose)(1 + i % 8);
        double u;
        plain_philox((uint64_t[]){element / 4, step, sample, (uint64_t)purpose}, (uint64_t[]){seed, 0}, words);
        psld_random_uniform(seed, purpose, sample, step, element, 1, &u);
        double word = (double)(words[element % 4] >> 12) * 0x1p-52; /* the cell that u is the middle of */
        assert_true(u > word && u - word < 0x1p-52);
    }
}

/* Then, whatever word Philox gives, u is neither 0 nor 1, 1 - u is exact, and both are equally likely. */
static void uniform_numbers_are_odd_multiples_of_a_cell(void **state)
{
    (void)state;
    enum { N = 100000 };
    static double u[N];
    psld_random_uniform(11, PSLD_FOR_START, 0, 0, 0, N, u);
    for (int i = 0; i < N; i++) {
        double cells = u[i] * 0x1p53;
        if (!(u[i] > 0 && u[i] < 1)) fail_msg("%.17g is outside (0, 1)", u[i]);
        if (cells != floor(cells) || fmod(cells, 2) != 1) fail_msg("%.17g 2^53 is not odd", u[i]);
    }
}

typedef void (*random_fn)(uint64_t, enum psld_purpose, uint64_t, uint64_t, uint64_t, size_t, double *);

/* Numbers `first` ... of one address in pieces whose lengths depend on `salt`. */
static void draw_in_pieces(random_fn draw, uint64_t first, size_t count, size_t salt, double *out)
{
    for (size_t done = 0, piece = 0; done < count; done += piece) {
        salt = salt * 1103515245 + 12345;
        piece = salt / 65536 % 9;
        if (piece > count - done) piece = count - done;
        draw(3, PSLD_FOR_STEP, 4, 5, first + done, piece, out + done);
    }
}

static void ranges_may_be_cut_anywhere(void **state)
{
    (void)state;
    enum { N = 203 };
    static const random_fn kinds[] = {psld_random_uniform, psld_random_normal};
    static const uint64_t firsts[] = {0, 1, 2, 3, 1000001, ((uint64_t)1 << 63) - 2};
    double whole[N], pieces[N];
    for (size_t kind = 0; kind < 2; kind++)
        for (size_t f = 0; f < sizeof firsts / sizeof *firsts; f++) {
            kinds[kind](3, PSLD_FOR_STEP, 4, 5, firsts[f], N, whole);
            for (size_t salt = 0; salt < 50; salt++) {
                draw_in_pieces(kinds[kind], firsts[f], N, salt, pieces);
                assert_memory_equal(whole, pieces, sizeof whole);
            }
        }
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void addresses_do_not_meet(void **state)
{
    (void)state;
    static double all[8 * 6 * 6 * 6 * 8];
    size_t used = 0;
    for (int purpose = 1; purpose <= 8; purpose++)
        for (uint64_t seed = 0; seed < 6; seed++)
            for (uint64_t sample = 0; sample < 6; sample++)
                for (uint64_t step = 0; step < 6; step++, used += 8)
                    psld_random_uniform(seed, (enum psld_purpose)purpose, sample, step, 0, 8, all + used);
    qsort(all, used, sizeof *all, compare_doubles);
    for (size_t i = 1; i < used; i++) assert_true(all[i] != all[i - 1]);
}

static void normals_have_the_moments_of_a_normal(void **state)
{
    (void)state;
    enum { N = 1000000 };
    double *x = psld_alloc(N, sizeof *x), sums[5] = {0}, central[5] = {0};
    for (uint64_t sample = 0; sample < 1000; sample++) /* as samplers draw: some numbers for each of many samples */
        psld_random_normal(2024, PSLD_FOR_STEP, sample, 17, 0, N / 1000, x + sample * (N / 1000));
    for (int i = 0; i < N; i++) sums[1] += x[i];
    double mean = sums[1] / N;
    for (int i = 0; i < N; i++)
        for (int p = 2; p <= 4; p++) central[p] += pow(x[i] - mean, p) / N;
    psld_release(x);
    double skewness = central[3] / pow(central[2], 1.5), kurtosis = central[4] / (central[2] * central[2]);
    assert_true(fabs(mean) < 5 * sqrt(1.0 / N));
    assert_true(fabs(central[2] - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(skewness) < 5 * sqrt(6.0 / N));
    assert_true(fabs(kurtosis - 3) < 5 * sqrt(24.0 / N));
}

/* Neighbours in each part of the address are independent: correlations within 5 standard errors. */
static void neighbours_are_uncorrelated(void **state)
{
    (void)state;
    enum { N = 100000 };
    static double x[N + 1], other[N];
    double dots[5] = {0};
    psld_random_normal(1, PSLD_FOR_STEP, 0, 0, 0, N + 1, x);
    for (int i = 0; i < N; i++) dots[0] += x[i] * x[i + 1];
    for (int part = 1; part < 5; part++) {
        psld_random_normal(1 + (part == 1), part == 2 ? PSLD_FOR_CORRECTOR : PSLD_FOR_STEP, part == 3, part == 4, 0, N,
                           other);
        for (int i = 0; i < N; i++) dots[part] += x[i] * other[i];
    }
    for (int part = 0; part < 5; part++) assert_true(fabs(dots[part]) < 5 * sqrt((double)N));
}

/* The part of the normal distribution beyond x, on the side where it is smaller, against that of u: relative error. An
 * error e of x, relative to it, is one of x^2 e in the part. */
static void assert_normal_matches_uniform(double x, double u)
{
    long double part = erfcl(fabsl((long double)x) / sqrtl(2.0L)) / 2,
                wanted = u < 0.5 ? (long double)u : 1.0L - (long double)u;
    double error = (double)fabsl(part - wanted);
    if ((x < 0) != (u < 0.5) || !(error <= (double)wanted * 2e-15 * (1 + x * x)) || !(error <= 1e-14))
        fail_msg("normal %.17g of uniform %.17g: off by %g", x, u, error);
}

static void normals_are_quantiles_of_the_uniform_numbers(void **state)
{
    (void)state;
    enum { N = 200000 };
    static double u[N], x[N];
    psld_random_uniform(5, PSLD_FOR_DATA, 1, 2, 3, N, u);
    psld_random_normal(5, PSLD_FOR_DATA, 1, 2, 3, N, x);
    for (int i = 0; i < N; i++) assert_normal_matches_uniform(x[i], u[i]);
}

/* Words whose numbers are in the centre, the flanks and the tails, and at the ends of each. */
static uint64_t word_near(int i)
{
    static const double places[] = {0, 0x1p-52, 1e-13, 1.3887943e-11, 0.0749999, 0.075, 0.0750001, 0.3, 0.5};
    const int number = i / 2 % 9;
    const uint64_t cell = (uint64_t)(places[number] * 0x1p52) << 12, other = UINT64_MAX - cell;
    return (i % 2 ? other : cell) + ((uint64_t)(i / 18) << 12);
}

static void all_instruction_sets_give_the_same_normals(void **state)
{
    (void)state;
    uint64_t words[PSLD_QUANTILES];
    double plain[PSLD_QUANTILES], other[PSLD_QUANTILES], u[PSLD_QUANTILES];
    for (int round = 0; round < 200; round++) {
        size_t count = (size_t)(PSLD_QUANTILES - round);
        psld_random_uniform(9, PSLD_FOR_STEP, (uint64_t)round, 0, 0, PSLD_QUANTILES, u);
        for (size_t i = 0; i < PSLD_QUANTILES; i++)
            words[i] = round % 2 ? word_near((int)i + round) : (uint64_t)(u[i] * 0x1p64);
        psld_word_normals_form(0)(count, words, plain);
        for (size_t i = 0; i < count; i++) assert_normal_matches_uniform(plain[i], psld_word_uniform(words[i]));
        for (int form = 1; form < PSLD_WORD_NORMALS_FORMS; form++) {
            if (!psld_word_normals_form(form)) continue;
            memset(other, 0, sizeof other);
            psld_word_normals_form(form)(count, words, other);
            assert_memory_equal(plain, other, count * sizeof *plain);
        }
    }
}

/* Elements of seed 0, purpose 1 at which a long search has met the far tails, beyond 6.6 standard deviations. */
static void far_tails_are_quantiles_too(void **state)
{
    (void)state;
    static const uint64_t elements[] = {9132911046, 39458076329};
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        double u, x;
        psld_random_uniform(0, PSLD_FOR_START, 0, 0, elements[i], 1, &u);
        psld_random_normal(0, PSLD_FOR_START, 0, 0, elements[i], 1, &x);
        assert_true(fabs(x) > 6.6);
        assert_normal_matches_uniform(x, u);
    }
}

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

enum { MOST = 5000 };

typedef struct visit {
    atomic_int times[MOST];
    atomic_int calls, small; /* calls of the body, and those with fewer than `grain` indices */
    size_t count, grain;
} visit;

static void count_visits(void *context, size_t begin, size_t end)
{
    visit *v = context;
    atomic_fetch_add(&v->calls, 1);
    if (end - begin < v->grain) atomic_fetch_add(&v->small, 1);
    if (end > v->count || begin >= end) abort();
    for (size_t i = begin; i < end; i++) atomic_fetch_add(&v->times[i], 1);
}

static void every_index_is_visited_once(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 8, 1, 4, 0};
    static const size_t counts[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 100, 1023, 1024, MOST},
                        grains[] = {1, 2, 7, 64, 6000};
    static visit v;
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        assert_int_equal(psld_threads_set(threads[t]), PSLD_OK);
        if (threads[t]) assert_int_equal(psld_threads_get(), threads[t]);
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (size_t g = 0; g < sizeof grains / sizeof *grains; g++) {
                memset(&v, 0, sizeof v);
                v.count = counts[c];
                v.grain = grains[g];
                psld_parallel(counts[c], grains[g], count_visits, &v);
                for (size_t i = 0; i < MOST; i++) assert_int_equal(atomic_load(&v.times[i]), i < counts[c]);
                assert_true(atomic_load(&v.small) <= 1); /* the rest, at the end */
                if (counts[c] == 0) assert_int_equal(atomic_load(&v.calls), 0);
                if (threads[t] == 1 && counts[c]) assert_int_equal(atomic_load(&v.calls), 1);
            }
    }
}

/* Many short jobs one after another: where wake-ups could be lost. */
static void short_jobs_do_not_get_lost(void **state)
{
    (void)state;
    static visit v;
    memset(&v, 0, sizeof v);
    v.count = 64;
    v.grain = 1;
    assert_int_equal(psld_threads_set(3), PSLD_OK);
    for (int i = 0; i < 3000; i++) psld_parallel(64, 1, count_visits, &v);
    for (size_t i = 0; i < 64; i++) assert_int_equal(atomic_load(&v.times[i]), 3000);
    psld_threads_set(0);
}

static void visit_within(void *context, size_t begin, size_t end)
{
    visit *rows = context;
    for (size_t i = begin; i < end; i++) psld_parallel(100, 1, count_visits, &rows[i]);
}

static void calls_may_be_nested(void **state)
{
    (void)state;
    enum { ROWS = 20 };
    visit *rows = psld_alloc(ROWS, sizeof *rows);
    for (int i = 0; i < ROWS; i++) rows[i].count = 100;
    assert_int_equal(psld_threads_set(4), PSLD_OK);
    psld_parallel(ROWS, 1, visit_within, rows);
    for (int i = 0; i < ROWS; i++) {
        for (size_t j = 0; j < MOST; j++) assert_int_equal(atomic_load(&rows[i].times[j]), j < 100);
        assert_int_equal(atomic_load(&rows[i].calls), 1); /* in the calling thread alone */
    }
    psld_release(rows);
    psld_threads_set(0);
}

static void *use_the_pool(void *context)
{
    for (int i = 0; i < 200; i++) psld_parallel(1000, 10, count_visits, context);
    return NULL;
}

static void several_threads_may_call_at_once(void **state)
{
    (void)state;
    enum { CALLERS = 4 };
    visit *visits = psld_alloc(CALLERS, sizeof *visits);
    pthread_t threads[CALLERS];
    assert_int_equal(psld_threads_set(3), PSLD_OK);
    for (int i = 0; i < CALLERS; i++) {
        visits[i].count = 1000;
        assert_int_equal(pthread_create(&threads[i], NULL, use_the_pool, &visits[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < CALLERS; i++)
        for (size_t j = 0; j < 1000; j++) assert_int_equal(atomic_load(&visits[i].times[j]), 200);
    psld_release(visits);
    psld_threads_set(0);
}

enum { MOST_SLOTS = 6 };

typedef struct slot_use {
    visit tasks;
    int slots, scratch[MOST_SLOTS]; /* not atomic: a slot belongs to one thread at a time */
    atomic_int busy[MOST_SLOTS];
} slot_use;

static void use_slot(void *context, int slot, ptrdiff_t task)
{
    slot_use *u = context;
    if (slot < 0 || slot >= u->slots || atomic_fetch_add(&u->busy[slot], 1) != 0) abort();
    u->scratch[slot]++;
    atomic_fetch_add(&u->tasks.times[task], 1);
    atomic_fetch_sub(&u->busy[slot], 1);
}

static void tasks_run_once_and_slots_are_not_shared(void **state)
{
    (void)state;
    static const ptrdiff_t counts[] = {0, 1, 2, 5, 17, 1000};
    static slot_use u;
    for (int threads = 1; threads <= 5; threads += 2)
        for (int slots = 1; slots <= MOST_SLOTS; slots++)
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
                int used = 0;
                memset(&u, 0, sizeof u);
                u.slots = slots;
                assert_int_equal(psld_threads_set(threads), PSLD_OK);
                psld_parallel_tasks(slots, counts[c], use_slot, &u);
                for (ptrdiff_t i = 0; i < MOST; i++) assert_int_equal(atomic_load(&u.tasks.times[i]), i < counts[c]);
                for (int i = 0; i < MOST_SLOTS; i++) used += u.scratch[i];
                assert_int_equal(used, counts[c]);
            }
    psld_threads_set(0);
}

static void change_threads(void *context, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        if (psld_threads_set(1 + (int)(i % 4)) != PSLD_OK) abort();
    count_visits(context, begin, end);
}

static void threads_may_be_set_inside_a_body(void **state)
{
    (void)state;
    static visit v;
    memset(&v, 0, sizeof v);
    v.count = 100;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(psld_threads_set(1 + i % 4), PSLD_OK);
        psld_parallel(100, 1, change_threads, &v);
    }
    for (size_t i = 0; i < 100; i++) assert_int_equal(atomic_load(&v.times[i]), 20);
    psld_threads_set(0);
}

static void number_of_threads_has_limits(void **state)
{
    (void)state;
    assert_int_equal(psld_threads_set(5), PSLD_OK);
    assert_int_equal(psld_threads_set(-1), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "threads: expected 0 to 256, found -1");
    assert_int_equal(psld_threads_set(257), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "threads: expected 0 to 256, found 257");
    assert_int_equal(psld_threads_get(), 5); /* as it was */
    assert_int_equal(psld_threads_set(256), PSLD_OK);
    assert_int_equal(psld_threads_get(), 256);
    assert_int_equal(psld_threads_set(0), PSLD_OK);
    assert_in_range(psld_threads_get(), 1, 256);
}

static void fill_with_noise(void *context, size_t begin, size_t end)
{
    double *out = context;
    for (size_t i = begin; i < end; i++) psld_random_normal(1, PSLD_FOR_STEP, i, 0, 0, 5, out + 5 * i);
}

static void results_do_not_depend_on_threads(void **state)
{
    (void)state;
    static double alone[5 * MOST], together[5 * MOST];
    fill_with_noise(alone, 0, MOST);
    for (int threads = 1; threads <= 5; threads++) {
        memset(together, 0, sizeof together);
        assert_int_equal(psld_threads_set(threads), PSLD_OK);
        psld_parallel(MOST, 3, fill_with_noise, together);
        assert_memory_equal(alone, together, sizeof alone);
    }
    psld_threads_set(0);
}

/* The child of a process with a pool has none of its threads: they must not be waited for. */
static void use_the_pool_after_fork(void)
{
    visit *all = psld_alloc(1, sizeof *all);
    alarm(60); /* instead of hanging */
    all->count = MOST;
    if (psld_threads_set(2) != PSLD_OK) _exit(1);
    psld_parallel(MOST, 3, count_visits, all);
    if (psld_threads_set(3) != PSLD_OK) _exit(1);
    psld_parallel(MOST, 3, count_visits, all);
    for (size_t j = 0; j < MOST; j++)
        if (atomic_load(&all->times[j]) != 2) _exit(2);
    psld_release(all);
    _exit(0);
}

static void a_child_of_fork_has_a_pool_of_its_own(void **state)
{
    (void)state;
    if (PSLD_THREAD_SANITIZED) skip_for("the thread sanitizer allows no threads in a child");
    visit *all = psld_alloc(1, sizeof *all);
    all->count = MOST;
    assert_int_equal(psld_threads_set(4), PSLD_OK);
    psld_parallel(MOST, 3, count_visits, all);
    for (int i = 0; i < 4; i++) {
        int result = 0;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) use_the_pool_after_fork();
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFEXITED(result));
        assert_int_equal(WEXITSTATUS(result), 0);
        psld_parallel(MOST, 3, count_visits, all); /* and the parent keeps its own */
    }
    for (size_t j = 0; j < MOST; j++) assert_int_equal(atomic_load(&all->times[j]), 5);
    psld_release(all);
    psld_threads_set(0);
}

/* ---- Log and progress -------------------------------------------------------------------------------------------- */

typedef struct heard {
    int lines;
    psld_log_level level;
    char line[2048];
} heard;

static void hear(void *user, psld_log_level level, const char *line)
{
    heard *h = user;
    h->lines++;
    h->level = level;
    snprintf(h->line, sizeof h->line, "%s", line);
}

static void log_goes_where_it_is_sent(void **state)
{
    (void)state;
    heard first = {0}, second = {0};
    psld_log(PSLD_LOG_WARNING, "nobody listens");
    psld_log_to(hear, &first);
    psld_log(PSLD_LOG_WARNING, "%d of %s", 3, "five");
    assert_int_equal(first.lines, 1);
    assert_int_equal(first.level, PSLD_LOG_WARNING);
    assert_string_equal(first.line, "3 of five");
    psld_log_to(hear, &second);
    psld_log(PSLD_LOG_INFO, "again");
    psld_log_to(NULL, NULL);
    psld_log(PSLD_LOG_INFO, "silence");
    assert_int_equal(first.lines, 1);
    assert_int_equal(second.lines, 1);
    assert_int_equal(second.level, PSLD_LOG_INFO);
    assert_string_equal(second.line, "again");
}

static void long_log_lines_are_cut(void **state)
{
    (void)state;
    heard h = {0};
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    psld_log_to(hear, &h);
    psld_log(PSLD_LOG_INFO, "%s", text);
    psld_log_to(NULL, NULL);
    assert_in_range(strlen(h.line), 100, sizeof h.line - 1);
}

static int stop_at_ten(void *user, uint64_t done, uint64_t total)
{
    *(uint64_t *)user = done * 1000 + total;
    return done >= 10 ? -1 : 0;
}

static void progress_can_cancel(void **state)
{
    (void)state;
    uint64_t seen = 0;
    assert_int_equal(psld_progress(NULL, NULL, 10, 20), PSLD_OK);
    assert_int_equal(psld_progress(stop_at_ten, &seen, 9, 20), PSLD_OK);
    assert_int_equal(seen, 9020);
    assert_int_equal(psld_progress(stop_at_ten, &seen, 10, 20), PSLD_CANCELLED);
    assert_string_equal(psld_error_text(), "cancelled");
    assert_int_equal(seen, 10020);
}

/* Short numbers: any cut of a range gives the same ones, and all values are equally likely. */
static void short_numbers(void **state)
{
    (void)state;
    enum { COUNT = 60000 };
    static uint16_t whole[COUNT], cut[COUNT];
    double sum = 0, squares = 0;
    psld_random_short(5, PSLD_FOR_DROPOUT, 6, 7, 3, COUNT, whole);
    for (size_t i = 0, piece = 1; i < COUNT; i += piece, piece = piece % 37 + 1) {
        size_t count = COUNT - i < piece ? COUNT - i : piece;
        psld_random_short(5, PSLD_FOR_DROPOUT, 6, 7, 3 + i, count, cut + i);
    }
    assert_memory_equal(whole, cut, sizeof whole);
    for (size_t i = 0; i < COUNT; i++) {
        double u = (whole[i] + 0.5) / 65536;
        sum += u;
        squares += u * u;
    }
    assert_true(fabs(sum / COUNT - 0.5) < 5 * sqrt(1.0 / 12 / COUNT));
    assert_true(fabs(squares / COUNT - 1.0 / 3) < 5 * sqrt(4.0 / 45 / COUNT));
}

static void shortest_numbers_read_back(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *text;
    } known[] = {
        {0, "0"},       {0.05, "0.05"},   {-0.1, "-0.1"},         {20, "20"},         {20000, "20000"},
        {1e-5, "1e-5"}, {1e-4, "0.0001"}, {1e20, "1e20"},         {2.5e-7, "2.5e-7"}, {1.0 / 3, "0.3333333333333333"},
        {8, "8"},       {1e300, "1e300"}, {123456.5, "123456.5"}, {-1e15, "-1e15"}};
    char text[PSLD_NUMBER_SIZE];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_string_equal(psld_text_shortest(known[i].number, text), known[i].text);
    assert_string_equal(psld_text_shortest((double)INFINITY, text), "inf");
    assert_string_equal(psld_text_shortest((double)NAN, text), "nan");
    for (uint64_t i = 0; i < 20000; i++) { /* any bits */
        uint64_t bits = i * 0x9e3779b97f4a7c15u;
        double number, again = 0;
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number)) continue;
        assert_true(psld_text_number(psld_text_shortest(number, text), &again));
        assert_memory_equal(&again, &number, sizeof number);
    }
}

static void nearest_words_are_found(void **state)
{
    (void)state;
    static const char *const words[] = {"frog", "horse", "ship", "truck", "automobile"};
    static const struct {
        const char *word, *nearest;
    } known[] = {{"froog", "frog"},      {"horsse", "horse"}, {"hrose", "horse"}, {"Ship", "ship"}, {"shp", "ship"},
                 {"auto", "automobile"}, {"elephant", NULL},  {"", NULL},         {"x", NULL},      {"trukc", "truck"}};
    char text[PSLD_SUGGESTION_SIZE], longest[200];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *nearest = psld_text_nearest(known[i].word, words, 5);
        if (known[i].nearest)
            assert_string_equal(nearest ? nearest : "none", known[i].nearest);
        else
            assert_null(nearest);
    }
    assert_null(psld_text_nearest("frog", words, 0));
    memset(longest, 'f', sizeof longest);
    longest[199] = 0;
    assert_null(psld_text_nearest(longest, words, 5));
    assert_string_equal(psld_text_suggest("froog", words, 5, text), ": did you mean \"frog\"?");
    assert_string_equal(psld_text_suggest_from("unform", "uniform|quadratic", text), ": did you mean \"uniform\"?");
    assert_string_equal(psld_text_suggest_from("nothing", "uniform|quadratic", text), "");
}

/* Every number of 16 bits is itself, and what lies between two goes to the nearer one; from the middle to the even one. */
static void check_nearest(uint16_t (*from)(float), float (*value_of)(uint16_t))
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        float value = value_of((uint16_t)h), next = value_of((uint16_t)(h + 1));
        if (isnan(value)) {
            assert_true(isnan(value_of(from(value))));
            continue;
        }
        assert_int_equal(from(value), h);
        if (!isfinite(value) || !isfinite(next)) continue;
        float middle = (float)(((double)value + (double)next) / 2), even = h % 2 ? next : value;
        assert_true(value_of(from(middle)) == even);
        assert_true(value_of(from(nextafterf(middle, value))) == value);
        assert_true(value_of(from(nextafterf(middle, next))) == next);
    }
    assert_true(isinf(value_of(from(3.4e38f))) && isinf(value_of(from(-INFINITY))) && isnan(value_of(from(NAN))));
    assert_true(signbit(value_of(from(-0.0f))));
}

static void bf16_is_the_nearest(void **state)
{
    (void)state;
    check_nearest(psld_bf16_from, psld_bf16_value);
}

static void half_is_the_nearest(void **state)
{
    (void)state;
    check_nearest(psld_half_from, psld_half_value);
    assert_true(psld_half_value(psld_half_from(nextafterf(65520, 0))) == 65504 &&
                isinf(psld_half_value(psld_half_from(65520))));
    assert_true(psld_half_value(psld_half_from(1e-9f)) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shortest_numbers_read_back),
        cmocka_unit_test(nearest_words_are_found),
        cmocka_unit_test(short_numbers),
        cmocka_unit_test(failing_returns_the_status_and_sets_the_text),
        cmocka_unit_test(context_comes_before_the_text),
        cmocka_unit_test(control_characters_do_not_reach_the_terminal),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(each_thread_has_its_own_text),
        cmocka_unit_test(failures_are_passed_on),
        cmocka_unit_test(statuses_keep_their_values),
        cmocka_unit_test(blocks_are_aligned_and_zero),
        cmocka_unit_test(impossible_sizes_fail),
        cmocka_unit_test(the_nth_allocation_can_be_made_to_fail),
        cmocka_unit_test(copies_are_copies),
        cmocka_unit_test(growing_keeps_contents),
        cmocka_unit_test(philox_gives_the_published_numbers),
        cmocka_unit_test(a_number_is_a_word_of_the_block_at_its_address),
        cmocka_unit_test(uniform_numbers_are_odd_multiples_of_a_cell),
        cmocka_unit_test(ranges_may_be_cut_anywhere),
        cmocka_unit_test(addresses_do_not_meet),
        cmocka_unit_test(normals_have_the_moments_of_a_normal),
        cmocka_unit_test(neighbours_are_uncorrelated),
        cmocka_unit_test(normals_are_quantiles_of_the_uniform_numbers),
        cmocka_unit_test(all_instruction_sets_give_the_same_normals),
        cmocka_unit_test(far_tails_are_quantiles_too),
        cmocka_unit_test(every_index_is_visited_once),
        cmocka_unit_test(short_jobs_do_not_get_lost),
        cmocka_unit_test(calls_may_be_nested),
        cmocka_unit_test(several_threads_may_call_at_once),
        cmocka_unit_test(tasks_run_once_and_slots_are_not_shared),
        cmocka_unit_test(threads_may_be_set_inside_a_body),
        cmocka_unit_test(number_of_threads_has_limits),
        cmocka_unit_test(bf16_is_the_nearest),
        cmocka_unit_test(half_is_the_nearest),
        cmocka_unit_test(results_do_not_depend_on_threads),
        cmocka_unit_test(a_child_of_fork_has_a_pool_of_its_own),
        cmocka_unit_test(log_goes_where_it_is_sent),
        cmocka_unit_test(long_log_lines_are_cut),
        cmocka_unit_test(progress_can_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
