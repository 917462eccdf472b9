/* A request from its first line to its answer. */
#include <stdlib.h>
#include <string.h>

#include "serve_server.h"

enum { LARGEST_GROWTH = 1 << 20 };

void *serve_request_begin(void *user, const char *target, struct MHD_Connection *connection)
{
    (void)user;
    serve_request *request = calloc(1, sizeof *request);
    if (!request) return NULL;
    request->connection = connection;
    request->wrong = serve_url_parse(target, &request->url);
    return request;
}

void serve_request_end(void *user, struct MHD_Connection *connection, void **context,
                       enum MHD_RequestTerminationCode code)
{
    serve_request *request = *context;
    (void)user;
    (void)code;
    if (!request) return;
    serve_connection_is(connection, SERVE_IDLES);
    serve_url_free(&request->url);
    json_decref(request->json);
    free(request->body);
    free(request);
    *context = NULL;
}

/* ---- The body ---------------------------------------------------------------------------------------------------- */

static void take_body(serve_request *request, const char *data, size_t size)
{
    if (request->is_too_large || size > request->body_limit - request->body_size) {
        request->is_too_large = 1;
        return;
    }
    if (request->body_room - request->body_size < size) {
        size_t more = request->body_room < LARGEST_GROWTH ? request->body_room : LARGEST_GROWTH;
        size_t room = request->body_size + size + more;
        char *body = realloc(request->body, room);
        if (!body) {
            request->is_too_large = 1;
            return;
        }
        request->body = body;
        request->body_room = room;
    }
    memcpy(request->body + request->body_size, data, size);
    request->body_size += size;
}

/* Checks the headers that describe the body. 0: it is accepted. */
static unsigned check_body(serve_request *request, const char **why)
{
    const char *length = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Content-Length");
    const char *type = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Content-Type");
    int takes = request->route->takes;
    request->body_limit = takes == SERVE_BYTES_BODY ? SERVE_UPLOAD : takes == SERVE_JSON_BODY ? SERVE_BODY : 0;
    *why = "the body is too large";
    if (length && strtoull(length, NULL, 10) > request->body_limit) return 413;
    *why = "expected Content-Type: application/json";
    if (takes == SERVE_JSON_BODY && (!type || strncasecmp(type, "application/json", 16) != 0)) return 415;
    return 0;
}

static enum MHD_Result parse_body(serve_request *request)
{
    json_error_t error;
    if (request->body_size == 0) return serve_refuse(request, 400, "the body is empty: expected a JSON object");
    request->json = json_loadb(request->body, request->body_size, JSON_REJECT_DUPLICATES, &error);
    if (!request->json) return serve_refuse(request, 400, "the body is no JSON: line %d: %s", error.line, error.text);
    if (!json_is_object(request->json)) return serve_refuse(request, 400, "the body is no JSON object");
    return request->route->handle(request);
}

/* ---- The request ------------------------------------------------------------------------------------------------- */

/* All decisions by the request line and headers, before the body is read. 0: continue. */
static unsigned check_request(serve_request *request, const char **why)
{
    unsigned status = serve_access_check(request, why);
    if (status) return status;
    *why = request->wrong;
    if (request->wrong) return 400;
    request->route = serve_route_find(&request->url, request->method, &status);
    *why = status == 405 ? "no such method here" : "there is nothing of that name";
    return request->route ? check_body(request, why) : status;
}

enum MHD_Result serve_request_handle(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                                     const char *version, const char *data, size_t *size, void **context)
{
    serve_request *request = *context;
    (void)user;
    (void)url;
    (void)version;
    if (!request) return MHD_NO;
    if (!request->began) {
        const char *why = NULL;
        request->began = 1;
        request->method = method;
        serve_connection_is(connection, SERVE_RECEIVES);
        unsigned status = check_request(request, &why);
        return status ? serve_refuse(request, status, "%s", why) : MHD_YES;
    }
    if (*size > 0) {
        take_body(request, data, *size);
        *size = 0;
        /* Without a length in the headers, the body could be endless. */
        return request->is_too_large && request->body_limit == 0 ? MHD_NO : MHD_YES;
    }
    serve_connection_is(connection, SERVE_ANSWERS);
    if (request->is_too_large) return serve_refuse(request, 413, "the body is too large");
    return request->route->takes == SERVE_JSON_BODY ? parse_body(request) : request->route->handle(request);
}
