/* Answers: common headers, JSON, bytes, files, refusals. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve.h"

static const char *const headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

enum MHD_Result serve_answer(serve_request *request, unsigned status, struct MHD_Response *response)
{
    if (!response) return MHD_NO;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    if (!MHD_get_response_header(response, "Cache-Control"))
        MHD_add_response_header(response, "Cache-Control", "no-store");
    enum MHD_Result result = MHD_queue_response(request->connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* A name in a header: characters other than plain ASCII become '_'. */
static void add_disposition(struct MHD_Response *response, const char *name)
{
    char text[320], plain[256];
    if (!response || !name) return;
    snprintf(plain, sizeof plain, "%s", name);
    for (char *c = plain; *c; c++)
        if (*c < 0x20 || *c > 0x7e || strchr("\"\\/;", *c)) *c = '_';
    snprintf(text, sizeof text, "attachment; filename=\"%s\"", plain);
    MHD_add_response_header(response, "Content-Disposition", text);
}

enum MHD_Result serve_answer_bytes(serve_request *request, void *bytes, size_t size, void (*release)(void *),
                                   const char *type, const char *name)
{
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback(size, bytes, release);
    if (!response) {
        release(bytes);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", type);
    add_disposition(response, name);
    return serve_answer(request, 200, response);
}

enum MHD_Result serve_answer_file(serve_request *request, int fd, const char *type, const char *name)
{
    struct stat about;
    uint64_t size = fstat(fd, &about) == 0 ? (uint64_t)about.st_size : 0;
    struct MHD_Response *response = MHD_create_response_from_fd64(size, fd);
    if (!response) {
        close(fd);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", type);
    add_disposition(response, name);
    return serve_answer(request, 200, response);
}

char *serve_json_text(const json_t *json)
{
    return json_dumps(json, JSON_REAL_PRECISION(17) | JSON_COMPACT | JSON_ENCODE_ANY);
}

enum MHD_Result serve_answer_json(serve_request *request, unsigned status, json_t *json)
{
    char *text = json ? serve_json_text(json) : NULL;
    json_decref(json);
    struct MHD_Response *response =
        text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) : NULL;
    if (!response) {
        free(text);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", "application/json");
    return serve_answer(request, status, response);
}

enum MHD_Result serve_refuse(serve_request *request, unsigned status, const char *format, ...)
{
    char message[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    /* A message that was cut within a character, or that repeats bytes of a file, is no JSON text. */
    for (char *c = message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = ' ';
    if (!serve_text_is_clean(message, strlen(message)))
        for (char *c = message; *c; c++)
            if ((unsigned char)*c >= 0x80) *c = '?';
    return serve_answer_json(request, status, json_pack("{s:s}", "error", message));
}

enum MHD_Result serve_refuse_status(serve_request *request, psld_status status, const serve_files *files)
{
    char text[2048];
    const cli_listener *listener = cli_listener_get();
    const char *message = listener && *listener->message ? listener->message : psld_error_text();
    return serve_refuse(request, status == PSLD_NO_MEMORY ? 500 : 422, "%s",
                        serve_files_rename(files, message, text, sizeof text));
}

unsigned serve_http_status(serve_found found)
{
    static const unsigned statuses[] = {
        [SERVE_FOUND] = 200,     [SERVE_BAD_PATH] = 403, [SERVE_OUTSIDE] = 403,
        [SERVE_NOT_THERE] = 404, [SERVE_EXISTS] = 409,   [SERVE_NOT_WRITTEN] = 422,
    };
    return statuses[found];
}

const char *serve_json_unknown(const json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0) i++;
        if (!known[i]) return key;
    }
    return NULL;
}

int serve_number(const serve_request *request, const char *name, long least, long most, long *number)
{
    char *end;
    const char *text = serve_url_get(&request->url, name);
    if (!text) return 1;
    *number = strtol(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && *number >= least && *number <= most;
}
