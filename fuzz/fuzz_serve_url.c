/* The input is the target of a request to psld serve, a line each for its Host, its Origin and its cookies. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
    if (!holds) abort();
}

/* What is taken is clean text, and no part of a path leads anywhere else. */
static void check_target(const char *target)
{
    serve_url url;
    if (!serve_url_parse(target, &url)) {
        for (size_t i = 0; i < url.segment_count; i++) {
            const char *part = url.segments[i];
            require(*part && !strchr(part, '/') && strcmp(part, ".") != 0 && strcmp(part, "..") != 0);
            require(serve_text_is_clean(part, strlen(part)));
        }
        require(!url.segments[url.segment_count]);
        for (size_t i = 0; i < url.parameter_count; i++) {
            const char *value = url.values[i];
            require(serve_text_is_clean(value, strlen(value)) && serve_url_get(&url, url.names[i]) == value);
            if (serve_path_is_plain(value)) {
                char slashed[SERVE_URL_SIZE + 2];
                snprintf(slashed, sizeof slashed, "/%s/", value);
                require(!strstr(slashed, "/../") && !strstr(slashed, "//") && !strstr(slashed, "/."));
            }
        }
    }
    serve_url_free(&url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const serve_names one = {.bound = "127.0.0.1", .machine = "machine", .port = 8477},
                             all = {.bound = "0.0.0.0", .machine = "machine", .port = 80, .any = 1};
    const char *value = NULL;
    char *text = malloc(size + 1), *line;
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    line = text;
    for (int i = 0; line; i++) {
        char *next = strchr(line, '\n');
        if (next) *next++ = 0;
        if (i == 0) check_target(line);
        int ours = serve_host_is_ours(line, &one);
        if (ours) require(strstr(line, ":8477") != NULL);
        serve_host_is_ours(line, &all);
        if (serve_origin_is_ours(line, &one)) require(strncmp(line, "http://", 7) == 0);
        serve_origin_is_ours(line, &all);
        size_t length = serve_cookie_find(line, "psld_8477", &value);
        if (length) require(value > line && value + length <= line + strlen(line) && !memchr(value, ';', length));
        line = next;
    }
    free(text);
    return 0;
}
