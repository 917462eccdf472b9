/* The path and the parameters of a request's target, as the client sent it. */
#ifndef PSLD_PROGRAMS_SERVE_URL_H
#define PSLD_PROGRAMS_SERVE_URL_H

#include <stddef.h>

enum { SERVE_PARAMETERS = 16, SERVE_SEGMENTS = 8, SERVE_URL_SIZE = 8192 };

typedef struct serve_url {
    char *text;                               /* owned: all that follows points into it */
    const char *segments[SERVE_SEGMENTS + 1]; /* of the path, decoded; NULL ends them */
    size_t segment_count;
    const char *names[SERVE_PARAMETERS], *values[SERVE_PARAMETERS];
    size_t parameter_count;
} serve_url;

/* Takes "/api/files?kind=model" apart. Returns NULL, or what is wrong with it. Every escape must be %XX, and what it stands
 * for UTF-8 without control characters. Free it in both cases. */
const char *serve_url_parse(const char *target, serve_url *url);
void serve_url_free(serve_url *url);
/* The value of a parameter; NULL: it is not there. */
const char *serve_url_get(const serve_url *url, const char *name);

/* Whether bytes are UTF-8 without control characters. */
int serve_text_is_clean(const char *text, size_t length);

/* A path within the folder: parts between '/', none of them empty, ".", ".." or hidden. */
int serve_path_is_plain(const char *path);

/* Whether the Host of a request, "name:port", names us: our port, and `bound`, "localhost" or a loopback address; with
 * `any`, every numeric address, and `machine`. */
typedef struct serve_names {
    const char *bound, *machine;
    int port, any;
} serve_names;
int serve_host_is_ours(const char *host, const serve_names *names);
/* The same for an Origin, "http://name:port". */
int serve_origin_is_ours(const char *origin, const serve_names *names);

/* The value of a cookie in a Cookie header: its length, and where it begins; 0: it is not there. */
size_t serve_cookie_find(const char *header, const char *name, const char **value);

#endif
