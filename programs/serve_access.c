/* Access control: the names of this machine, the token, and the page that a request comes from. Web pages may attack a
 * local server: they can send requests to it, but they cannot choose their Host or Origin, and do not know the
 * token. */
#define _GNU_SOURCE /* getrandom */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "serve.h"

void serve_access_make_token(char token[SERVE_TOKEN])
{
    unsigned char bytes[(SERVE_TOKEN - 1) / 2];
    token[0] = 0;
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) return;
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(token + 2 * i, 3, "%02x", bytes[i]);
}

/* In a time that does not depend on where they differ. */
static int is_token(const char *text, size_t length)
{
    unsigned char differs = length != SERVE_TOKEN - 1;
    for (size_t i = 0; i < SERVE_TOKEN - 1; i++)
        differs |= (unsigned char)((i < length ? text[i] : 0) ^ serve.token[i]);
    return !differs;
}

static const char *header_of(const serve_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

int serve_access_has_token(const serve_request *request)
{
    static const char bearer[] = "Bearer ";
    const char *cookies = header_of(request, "Cookie"), *value = NULL;
    const char *authorization = header_of(request, "Authorization"), *parameter = serve_url_get(&request->url, "token");
    size_t length = cookies ? serve_cookie_find(cookies, serve.cookie, &value) : 0;
    if (length && is_token(value, length)) return 1;
    if (parameter && is_token(parameter, strlen(parameter))) return 1;
    if (!authorization || strncmp(authorization, bearer, sizeof bearer - 1) != 0) return 0;
    return is_token(authorization + sizeof bearer - 1, strlen(authorization + sizeof bearer - 1));
}

static int may_change(const serve_request *request)
{
    const char *origin = header_of(request, "Origin"), *site = header_of(request, "Sec-Fetch-Site");
    if (origin && !serve_origin_is_ours(origin, &serve.names)) return 0;
    return !site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

static int count_header(void *count, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    (void)value;
    *(int *)count += strcasecmp(name, "Host") == 0;
    return MHD_YES;
}

unsigned serve_access_check(const serve_request *request, const char **why)
{
    const char *host = header_of(request, "Host");
    int hosts = 0;
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, (MHD_KeyValueIterator)count_header, &hosts);
    *why = "the Host is not one of this server";
    if (hosts != 1 || !host || !serve_host_is_ours(host, &serve.names)) return 403;
    *why = "the token is missing: open the address that psld serve printed";
    if (!serve_access_has_token(request)) return 401;
    *why = "the request comes from another site";
    if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0 && !may_change(request)) return 403;
    return 0;
}
