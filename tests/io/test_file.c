/* Reading within a limit, writing all or nothing, and reading numbers from text. Files lie in the working directory. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/files/file.h"

/* ---- Helpers ----------------------------------------------------------------------------------------------------- */

static void assert_message(const char *expected)
{
    assert_string_equal(psld_error_text(), expected);
}

/* Files of the library's that nobody removed. */
static int temporaries(const char *folder)
{
    char command[256];
    snprintf(command, sizeof command, "ls -a '%s' | grep -c '^\\.psld-.*tmp$'", folder);
    FILE *pipe = popen(command, "r");
    int count = -1;
    assert_int_equal(fscanf(pipe, "%d", &count), 1);
    pclose(pipe);
    return count;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void assert_content(const char *path, const char *expected)
{
    char *bytes = NULL;
    size_t size = 0;
    assert_int_equal(psld_file_read(path, 1000, &bytes, &size), PSLD_OK);
    assert_int_equal(size, strlen(expected));
    assert_string_equal(bytes, expected);
    psld_release(bytes);
}

static psld_status write_text(const char *path, const char *text)
{
    psld_writer *writer = NULL;
    PSLD_TRY(psld_writer_open(path, &writer));
    psld_writer_put(writer, text, strlen(text));
    return psld_writer_commit(writer);
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 0777;
}

/* A descriptor that a child process fills with `size` bytes of 'x', a few at a time. */
static int pipe_with(size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    if (fork() == 0) {
        close(ends[0]);
        for (size_t left = size; left > 0;) {
            char piece[777];
            memset(piece, 'x', sizeof piece);
            ssize_t count = write(ends[1], piece, left < sizeof piece ? left : sizeof piece);
            if (count <= 0) break;
            left -= (size_t)count;
        }
        _exit(0);
    }
    close(ends[1]);
    return ends[0];
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static void reads_whole_files(void **state)
{
    (void)state;
    write_file("short.txt", "hello");
    assert_content("short.txt", "hello");
    write_file("empty.txt", "");
    assert_content("empty.txt", "");
}

static void enforces_the_limit(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t size = 0;
    write_file("five.txt", "12345");
    assert_int_equal(psld_file_read("five.txt", 5, &bytes, &size), PSLD_OK);
    assert_int_equal(size, 5);
    psld_release(bytes);
    assert_int_equal(psld_file_read("five.txt", 4, &bytes, &size), PSLD_BAD_INPUT);
    assert_null(bytes);
    assert_message("five.txt: longer than the 4 bytes that it may have");
    assert_int_equal(psld_file_read("five.txt", 0, &bytes, &size), PSLD_BAD_INPUT);
    assert_int_equal(psld_file_read("five.txt", SIZE_MAX, &bytes, &size), PSLD_OK);
    psld_release(bytes);
    /* Without end, and with a size of 0 by its own account. */
    assert_int_equal(psld_file_read("/dev/zero", 100000, &bytes, &size), PSLD_BAD_INPUT);
    assert_message("/dev/zero: longer than the 100000 bytes that it may have");
    if (access("/proc/self/maps", R_OK) == 0) {
        assert_int_equal(psld_file_read("/proc/self/maps", 1 << 24, &bytes, &size), PSLD_OK);
        assert_true(size > 0);
        psld_release(bytes);
        assert_int_equal(psld_file_read("/proc/self/maps", 10, &bytes, &size), PSLD_BAD_INPUT);
    }
}

static void refuses_what_it_cannot_read(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t size = 0;
    assert_int_equal(psld_file_read(".", 10, &bytes, &size), PSLD_IO);
    assert_message(".: cannot read: Is a directory");
    assert_int_equal(psld_file_read("absent.txt", 10, &bytes, &size), PSLD_IO);
    assert_message("absent.txt: cannot read: No such file or directory");
    assert_int_equal(psld_file_read("", 10, &bytes, &size), PSLD_IO);
    assert_null(bytes);
}

static void reads_pipes(void **state)
{
    (void)state;
    const size_t total = 300000;
    char path[64], *bytes = NULL;
    size_t size = 0;
    int fd = pipe_with(total);
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    assert_int_equal(psld_file_read(path, total, &bytes, &size), PSLD_OK);
    assert_int_equal(size, total);
    for (size_t i = 0; i < size; i++) assert_int_equal(bytes[i], 'x');
    psld_release(bytes);
    close(fd);
    wait(NULL);
    fd = pipe_with(total);
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    assert_int_equal(psld_file_read(path, total - 1, &bytes, &size), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "longer than the 299999 bytes"));
    close(fd);
    wait(NULL);
}

static void reads_standard_input(void **state)
{
    (void)state;
    write_file("input.txt", "from stdin");
    int before = dup(STDIN_FILENO), fd = open("input.txt", O_RDONLY);
    dup2(fd, STDIN_FILENO);
    assert_int_equal(lseek(STDIN_FILENO, 5, SEEK_SET), 5);
    assert_content("/dev/stdin", "stdin"); /* from where it is */
    dup2(before, STDIN_FILENO);
    close(before);
    close(fd);
}

static void readers_go_piece_by_piece(void **state)
{
    (void)state;
    psld_reader reader;
    char piece[4] = "";
    size_t got = 0;
    write_file("abcde.txt", "abcde");
    for (int memory = 0; memory < 2; memory++) {
        if (memory)
            psld_reader_memory("abcde", 5, "memory", &reader);
        else
            assert_int_equal(psld_reader_open("abcde.txt", &reader), PSLD_OK);
        assert_true(reader.length_known);
        assert_int_equal(reader.left, 5);
        assert_int_equal(psld_reader_get(&reader, piece, 3, &got), PSLD_OK);
        assert_int_equal(got, 3);
        assert_memory_equal(piece, "abc", 3);
        assert_int_equal(reader.left, 2);
        assert_int_equal(psld_reader_get(&reader, piece, 3, &got), PSLD_OK);
        assert_int_equal(got, 2);
        assert_memory_equal(piece, "de", 2);
        assert_int_equal(psld_reader_get(&reader, piece, 3, &got), PSLD_OK);
        assert_int_equal(got, 0);
        psld_reader_close(&reader);
        psld_reader_close(&reader);
    }
    assert_int_equal(psld_reader_open("nothing-here", &reader), PSLD_IO);
    psld_reader_close(&reader);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void writes_and_replaces(void **state)
{
    (void)state;
    assert_int_equal(write_text("out.txt", "first"), PSLD_OK);
    assert_content("out.txt", "first");
    psld_writer *writer = NULL;
    assert_int_equal(psld_writer_open("out.txt", &writer), PSLD_OK);
    psld_writer_put(writer, "sec", 3);
    assert_in_range(temporaries("."), 0, 1); /* 1 where the file system has no files without a name */
    assert_content("out.txt", "first");      /* until commit */
    psld_writer_put(writer, "ond", 3);
    psld_writer_put(writer, NULL, 0);
    assert_int_equal(psld_writer_commit(writer), PSLD_OK);
    assert_content("out.txt", "second");
    assert_int_equal(temporaries("."), 0);
    unlink("out.txt");
}

/* What the program names itself is replaced where a link stands; what the user names is written where it leads. */
static void own_names_follow_no_links(void **state)
{
    struct stat info;
    (void)state;
    unlink("own.txt");
    write_file("precious.txt", "keep");
    assert_int_equal(symlink("precious.txt", "own.txt"), 0);
    assert_int_equal(psld_text_save("new", "own.txt"), PSLD_OK);
    assert_int_equal(lstat("own.txt", &info), 0);
    assert_true(S_ISREG(info.st_mode));
    assert_content("own.txt", "new");
    assert_content("precious.txt", "keep");
    assert_int_equal(psld_text_save("newer", "own.txt"), PSLD_OK);
    assert_content("own.txt", "newer");
    assert_int_equal(psld_text_save("x", "no-such-folder/own.txt"), PSLD_IO);
    assert_int_equal(temporaries("."), 0);
    unlink("own.txt");
    unlink("precious.txt");
}

/* One claim at a time; the next one clears away what nobody writes any more. */
static void claims_of_folders(void **state)
{
    psld_folder_lock *claim, *second;
    (void)state;
    mkdir("claimed", 0777);
    write_file("claimed/.psld-12-3.tmp", "left");
    write_file("claimed/.psld-12-4.txt", "kept");
    write_file("claimed/.psld-12-5.tmp", "held");
    int held = open("claimed/.psld-12-5.tmp", O_RDONLY);
    assert_int_equal(flock(held, LOCK_EX), 0);
    assert_int_equal(psld_folder_lock_take("claimed", &claim), PSLD_OK);
    assert_int_equal(access("claimed/.psld-12-3.tmp", F_OK), -1);
    assert_int_equal(access("claimed/.psld-12-4.txt", F_OK), 0);
    assert_int_equal(access("claimed/.psld-12-5.tmp", F_OK), 0);
    assert_int_equal(psld_folder_lock_take("claimed", &second), PSLD_IO);
    assert_null(second);
    assert_message("claimed: another process is writing into this folder; wait for it, or give another folder");
    psld_folder_lock_free(claim);
    close(held);
    assert_int_equal(psld_folder_lock_take("claimed", &claim), PSLD_OK);
    assert_int_equal(access("claimed/.psld-12-5.tmp", F_OK), -1);
    psld_folder_lock_free(claim);
    assert_int_equal(psld_folder_lock_take("no-such-folder", &claim), PSLD_IO);
    assert_null(claim);
    unlink("claimed/.psld-12-4.txt");
    rmdir("claimed");
}

static void abort_leaves_nothing(void **state)
{
    (void)state;
    psld_writer *writer = NULL;
    write_file("kept.txt", "old");
    assert_int_equal(psld_writer_open("kept.txt", &writer), PSLD_OK);
    psld_writer_put(writer, "new", 3);
    psld_writer_abort(writer);
    assert_content("kept.txt", "old");
    assert_int_equal(psld_writer_open("never.txt", &writer), PSLD_OK);
    psld_writer_abort(writer);
    assert_int_equal(access("never.txt", F_OK), -1);
    assert_int_equal(temporaries("."), 0);
    psld_writer_abort(NULL);
}

/* Pieces around the size of the buffer arrive in order and complete. */
static void writes_large_files(void **state)
{
    (void)state;
    static char block[200000];
    for (size_t i = 0; i < sizeof block; i++) block[i] = (char)('a' + i % 23);
    static const size_t pieces[] = {1, 65535, 65536, 65537, 0, 100000, 3};
    psld_writer *writer = NULL;
    assert_int_equal(psld_writer_open("large.bin", &writer), PSLD_OK);
    size_t total = 0;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        psld_writer_put(writer, block + total % 23, pieces[i]);
        total += pieces[i];
    }
    assert_int_equal(psld_writer_commit(writer), PSLD_OK);
    char *bytes = NULL;
    size_t size = 0;
    assert_int_equal(psld_file_read("large.bin", 1 << 20, &bytes, &size), PSLD_OK);
    assert_int_equal(size, total);
    for (size_t i = 0; i < size; i++) assert_int_equal(bytes[i], 'a' + (int)(i % 23));
    psld_release(bytes);
}

static void two_writers_of_one_file_do_not_meet(void **state)
{
    (void)state;
    psld_writer *a = NULL, *b = NULL;
    assert_int_equal(psld_writer_open("both.txt", &a), PSLD_OK);
    assert_int_equal(psld_writer_open("both.txt", &b), PSLD_OK);
    psld_writer_put(a, "a", 1);
    psld_writer_put(b, "b", 1);
    assert_int_equal(psld_writer_commit(a), PSLD_OK);
    assert_content("both.txt", "a");
    assert_int_equal(psld_writer_commit(b), PSLD_OK);
    assert_content("both.txt", "b");
}

static void keeps_permissions_and_links(void **state)
{
    (void)state;
    unlink("plain.txt");
    mode_t mask = umask(027);
    assert_int_equal(write_text("plain.txt", "x"), PSLD_OK);
    umask(mask);
    assert_int_equal(mode_of("plain.txt"), 0640);
    assert_int_equal(chmod("plain.txt", 0604), 0);
    assert_int_equal(write_text("plain.txt", "y"), PSLD_OK);
    assert_int_equal(mode_of("plain.txt"), 0604);

    mkdir("elsewhere", 0777);
    write_file("elsewhere/real.txt", "old");
    unlink("link.txt");
    assert_int_equal(symlink("elsewhere/real.txt", "link.txt"), 0);
    assert_int_equal(write_text("link.txt", "new"), PSLD_OK);
    struct stat info;
    assert_int_equal(lstat("link.txt", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_content("elsewhere/real.txt", "new");
}

static void writes_the_longest_name(void **state)
{
    (void)state;
    char name[256] = "";
    memset(name, 'n', 255);
    assert_int_equal(write_text(name, "x"), PSLD_OK);
    assert_content(name, "x");
    unlink(name);
}

static void refuses_what_it_cannot_write(void **state)
{
    (void)state;
    mkdir("folder", 0777);
    assert_int_equal(write_text("folder", "x"), PSLD_IO);
    assert_message("folder: cannot write: Is a directory");
    assert_int_equal(write_text("no/such/folder.txt", "x"), PSLD_IO);
    assert_message("no/such/folder.txt: cannot write: No such file or directory");
    assert_int_equal(write_text("no-such-folder/", "x"), PSLD_IO);
    assert_int_equal(write_text("", "x"), PSLD_IO);
    write_file("file.txt", "x");
    assert_int_equal(write_text("file.txt/below", "x"), PSLD_IO);
    assert_message("file.txt/below: cannot write: Not a directory");
    char name[300] = "";
    memset(name, 'n', 299);
    assert_int_equal(write_text(name, "x"), PSLD_IO);
    assert_non_null(strstr(psld_error_text(), ": cannot write: File name too long"));
}

static void respects_permissions(void **state)
{
    (void)state;
    int is_root = geteuid() == 0;
    mkdir("locked", 0777);
    write_file("locked/there.txt", "old");
    unlink("protected.txt"); /* of an earlier run */
    write_file("protected.txt", "old");
    assert_int_equal(chmod("locked", 0555), 0);
    assert_int_equal(chmod("protected.txt", 0444), 0);
    if (is_root) assert_int_equal(seteuid(65534), 0); /* root may do anything */
    psld_status in_folder = write_text("locked/new.txt", "x");
    char message[256];
    snprintf(message, sizeof message, "%s", psld_error_text());
    psld_status in_file = write_text("protected.txt", "x");
    if (is_root) assert_int_equal(seteuid(0), 0);
    assert_int_equal(in_folder, PSLD_IO);
    assert_string_equal(message, "locked/new.txt: cannot write: Permission denied");
    assert_int_equal(in_file, PSLD_IO);
    assert_message("protected.txt: cannot write: Permission denied");
    assert_content("protected.txt", "old");
    chmod("locked", 0777);
}

/* Writing stops, the old file stays, nothing else remains. */
static void survives_a_full_disk(void **state)
{
    (void)state;
    static char block[100000];
    struct rlimit before, small = {50000, 50000};
    write_file("precious.txt", "old");
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    psld_writer *writer = NULL;
    assert_int_equal(psld_writer_open("precious.txt", &writer), PSLD_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 5; i++) psld_writer_put(writer, block, sizeof block);
    psld_status status = psld_writer_commit(writer);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, PSLD_IO);
    assert_message("precious.txt: cannot write: File too large");
    assert_content("precious.txt", "old");
    assert_int_equal(temporaries("."), 0);
}

static void survives_a_failed_rename(void **state)
{
    (void)state;
    psld_writer *writer = NULL;
    rmdir("becomes-a-folder");
    assert_int_equal(psld_writer_open("becomes-a-folder", &writer), PSLD_OK);
    psld_writer_put(writer, "x", 1);
    assert_int_equal(mkdir("becomes-a-folder", 0777), 0);
    assert_int_equal(psld_writer_commit(writer), PSLD_IO);
    assert_message("becomes-a-folder: cannot write: Is a directory");
    assert_int_equal(temporaries("."), 0);
}

static void writes_special_files_directly(void **state)
{
    (void)state;
    assert_int_equal(write_text("/dev/null", "x"), PSLD_OK);
    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(write_text("/dev/full", "x"), PSLD_IO);
        assert_message("/dev/full: cannot write: No space left on device");
    }
    int ends[2];
    char path[64], text[8] = "";
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    assert_int_equal(write_text(path, "piped"), PSLD_OK);
    assert_int_equal(read(ends[0], text, sizeof text), 5);
    assert_string_equal(text, "piped");
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(write_text(path, "closed"), PSLD_IO);
}

static void writes_to_where_standard_output_goes(void **state)
{
    (void)state;
    fflush(stdout);
    int before = dup(STDOUT_FILENO), fd = open("stdout.txt", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(fd, STDOUT_FILENO);
    assert_int_equal(write(STDOUT_FILENO, "one ", 4), 4);
    psld_status status = write_text("/dev/stdout", "two ");
    ssize_t more = write(STDOUT_FILENO, "three", 5);
    dup2(before, STDOUT_FILENO);
    close(before);
    close(fd);
    assert_int_equal(status, PSLD_OK);
    assert_int_equal(more, 5);
    assert_content("stdout.txt", "one two three");
}

/* ---- Out of memory ----------------------------------------------------------------------------------------------- */

static psld_status read_and_release(void)
{
    char *bytes = NULL;
    size_t size = 0;
    int fd = pipe_with(200000);
    char path[64];
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    psld_status status = psld_file_read(path, 1 << 20, &bytes, &size);
    psld_release(bytes);
    close(fd);
    wait(NULL);
    return status;
}

static psld_status read_short(void)
{
    char *bytes = NULL;
    size_t size = 0;
    psld_status status = psld_file_read("memory.txt", 1 << 20, &bytes, &size);
    if (status != PSLD_OK) assert_non_null(strstr(psld_error_text(), "memory.txt: out of memory"));
    psld_release(bytes);
    return status;
}

static psld_status write_and_commit(void)
{
    psld_status status = write_text("memory.txt", "text");
    if (status != PSLD_OK) assert_non_null(strstr(psld_error_text(), "memory.txt: out of memory"));
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    psld_status (*const calls[])(void) = {write_and_commit, read_short, read_and_release};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (long n = 1;; n++) {
            long live = psld_alloc_live();
            psld_alloc_fail_at(n);
            psld_status status = calls[i]();
            int failed = psld_alloc_failed();
            psld_alloc_fail_at(0);
            assert_int_equal(psld_alloc_live(), live);
            assert_int_equal(temporaries("."), 0);
            assert_int_equal(status, failed ? PSLD_NO_MEMORY : PSLD_OK);
            if (!failed) break;
        }
    }
}

/* ---- Numbers as text --------------------------------------------------------------------------------------------- */

static void numbers_are_read_whole(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},
                {"1e-9", 1e-9},
                {".5", 0.5},
                {"1.", 1},
                {"+3", 3},
                {"-0.25", -0.25},
                {"1.5E+2", 150},
                {"007", 7},
                {"2e0", 2},
                {"0.1", 0.1},
                {"1e400", HUGE_VAL},
                {"-1e400", -HUGE_VAL},
                {"inf", HUGE_VAL},
                {"-.INF", -HUGE_VAL},
                {"+Infinity", HUGE_VAL},
                {"1e-400", 0}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double value = -77;
        assert_true(psld_text_number(good[i].text, &value));
        assert_true(value == good[i].value);
    }
    double value = 0;
    assert_true(psld_text_number(".NaN", &value) && isnan(value));
    assert_true(psld_text_number("nan", &value) && isnan(value));
    static const char *const bad[] = {"",         " 1", "1 ",     "1x",  "0x10", "1e",    "1e+", ".",
                                      "+",        "-",  "e5",     "1,5", "--1",  "1.2.3", "1_0", "1e5.",
                                      "infinite", "in", "nan(1)", ".e1", "+-1",  "0x1p3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        value = -77;
        assert_false(psld_text_number(bad[i], &value));
        assert_true(value == -77);
    }
}

static void integers_are_read_whole(void **state)
{
    (void)state;
    int64_t value = 0;
    assert_true(psld_text_integer("9223372036854775807", &value) && value == INT64_MAX);
    assert_true(psld_text_integer("-9223372036854775808", &value) && value == INT64_MIN);
    assert_true(psld_text_integer("+12", &value) && value == 12);
    assert_true(psld_text_integer("-0", &value) && value == 0);
    static const char *const bad[] = {"",
                                      "-",
                                      "+",
                                      "1.0",
                                      "1e3",
                                      " 1",
                                      "1 ",
                                      "0x1",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999"};
    value = -77;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(psld_text_integer(bad[i], &value));
    assert_int_equal(value, -77);
}

static void case_does_not_matter(void **state)
{
    (void)state;
    assert_true(psld_text_same("TruE", "true"));
    assert_true(psld_text_same("", ""));
    assert_false(psld_text_same("true", "tru"));
    assert_false(psld_text_same("tru", "true"));
    assert_false(psld_text_same("@", "`")); /* 0x20 apart, but no letters */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_whole_files),
        cmocka_unit_test(enforces_the_limit),
        cmocka_unit_test(refuses_what_it_cannot_read),
        cmocka_unit_test(reads_pipes),
        cmocka_unit_test(reads_standard_input),
        cmocka_unit_test(readers_go_piece_by_piece),
        cmocka_unit_test(writes_and_replaces),
        cmocka_unit_test(abort_leaves_nothing),
        cmocka_unit_test(writes_large_files),
        cmocka_unit_test(two_writers_of_one_file_do_not_meet),
        cmocka_unit_test(keeps_permissions_and_links),
        cmocka_unit_test(own_names_follow_no_links),
        cmocka_unit_test(claims_of_folders),
        cmocka_unit_test(writes_the_longest_name),
        cmocka_unit_test(refuses_what_it_cannot_write),
        cmocka_unit_test(respects_permissions),
        cmocka_unit_test(survives_a_full_disk),
        cmocka_unit_test(survives_a_failed_rename),
        cmocka_unit_test(writes_special_files_directly),
        cmocka_unit_test(writes_to_where_standard_output_goes),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(numbers_are_read_whole),
        cmocka_unit_test(integers_are_read_whole),
        cmocka_unit_test(case_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
