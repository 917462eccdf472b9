/* The page: the files of web/, which are part of the program. */
#include <string.h>

#include "serve.h"
#include "serve_web.h"

static const char *type_of(const char *name)
{
    static const char *const types[][2] = {
        {".html", "text/html; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".mjs", "text/javascript; charset=utf-8"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".ico", "image/x-icon"},
        {".webmanifest", "application/manifest+json"},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (cli_ends_in(name, types[i][0])) return types[i][1];
    return "application/octet-stream";
}

/* The token leaves the address, where it could be seen or sent on, for a cookie. */
static enum MHD_Result set_cookie(serve_request *request)
{
    char cookie[128];
    struct MHD_Response *response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (!response) return MHD_NO;
    snprintf(cookie, sizeof cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict", serve.cookie, serve.token);
    MHD_add_response_header(response, "Set-Cookie", cookie);
    MHD_add_response_header(response, "Location", "/");
    return serve_answer(request, 303, response);
}

enum MHD_Result serve_page(serve_request *request)
{
    const char *name = request->url.segment_count ? request->url.segments[0] : "index.html";
    const char *known = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "If-None-Match");
    if (!request->url.segment_count && serve_url_get(&request->url, "token")) return set_cookie(request);
    for (const serve_web_file *file = serve_web_files; file->name; file++) {
        if (strcmp(file->name, name) != 0) continue;
        int same = known && strcmp(known, file->tag) == 0;
        struct MHD_Response *response = MHD_create_response_from_buffer(
            same ? 0 : file->size, (void *)(uintptr_t)file->bytes, MHD_RESPMEM_PERSISTENT);
        if (!response) return MHD_NO;
        MHD_add_response_header(response, "Content-Type", type_of(name));
        MHD_add_response_header(response, "ETag", file->tag);
        MHD_add_response_header(response, "Cache-Control", "no-cache");
        return serve_answer(request, same ? 304 : 200, response);
    }
    return serve_refuse(request, 404, "there is nothing of that name");
}
