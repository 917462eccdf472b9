#include "serve_url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- Text -------------------------------------------------------------------------------------------------------- */

/* The bytes of the UTF-8 character at `text`; 0 if there is none, or a control character. */
static size_t character_length(const unsigned char *text, size_t left)
{
    static const unsigned smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (text[0] < 0x80) return text[0] >= 0x20 && text[0] != 0x7f;
    size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4 || length > left) return 0;
    unsigned code = text[0] & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (text[i] & 0x3fU);
    }
    int surrogate = code >= 0xd800 && code < 0xe000, control = code < 0xa0;
    return code < smallest[length] || code > 0x10ffff || surrogate || control ? 0 : length;
}

int serve_text_is_clean(const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        size_t step = character_length((const unsigned char *)text + i, length - i);
        if (step == 0) return 0;
        i += step;
    }
    return 1;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes in place. Returns 0 where that gives no clean text. */
static int decode_escapes(char *text, int plus_is_space)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from == '%') {
            int high = hex_digit(from[1]), low = high < 0 ? -1 : hex_digit(from[2]);
            if (low < 0 || high * 16 + low == 0) return 0;
            *to++ = (char)(high * 16 + low);
            from += 2;
        } else {
            *to++ = plus_is_space && *from == '+' ? ' ' : *from;
        }
    }
    *to = 0;
    return serve_text_is_clean(text, (size_t)(to - text));
}

/* ---- The target -------------------------------------------------------------------------------------------------- */

static const char *parse_segments(char *path, serve_url *url)
{
    for (char *next = path; next && *next;) {
        char *segment = next;
        next = strchr(segment, '/');
        if (next) *next++ = 0;
        if (url->segment_count == SERVE_SEGMENTS) return "the path has too many parts";
        if (!decode_escapes(segment, 0)) return "the path is not well formed";
        if (!*segment || strcmp(segment, ".") == 0 || strcmp(segment, "..") == 0 || strchr(segment, '/'))
            return "the path has a part that is empty, . or ..";
        url->segments[url->segment_count++] = segment;
    }
    return NULL;
}

static const char *parse_parameters(char *query, serve_url *url)
{
    for (char *next = query; next && *next;) {
        char *name = next;
        next = strchr(name, '&');
        if (next) *next++ = 0;
        char *value = strchr(name, '=');
        if (value) *value++ = 0;
        if (!*name) continue;
        if (url->parameter_count == SERVE_PARAMETERS) return "too many parameters";
        if (!decode_escapes(name, 1) || (value && !decode_escapes(value, 1))) return "a parameter is not well formed";
        if (serve_url_get(url, name)) return "a parameter is given twice";
        url->names[url->parameter_count] = name;
        url->values[url->parameter_count++] = value ? value : "";
    }
    return NULL;
}

const char *serve_url_parse(const char *target, serve_url *url)
{
    *url = (serve_url){0};
    if (target[0] != '/') return "expected a path that begins with /";
    if (strlen(target) >= SERVE_URL_SIZE) return "the address is too long";
    url->text = strdup(target + 1);
    if (!url->text) return "out of memory";
    if (strchr(url->text, '#')) return "the path is not well formed";
    char *query = strchr(url->text, '?');
    if (query) *query++ = 0;
    const char *wrong = parse_segments(url->text, url);
    return wrong ? wrong : parse_parameters(query, url);
}

void serve_url_free(serve_url *url)
{
    free(url->text);
    *url = (serve_url){0};
}

const char *serve_url_get(const serve_url *url, const char *name)
{
    for (size_t i = 0; i < url->parameter_count; i++)
        if (strcmp(url->names[i], name) == 0) return url->values[i];
    return NULL;
}

int serve_path_is_plain(const char *path)
{
    if (!*path || strlen(path) >= SERVE_URL_SIZE || !serve_text_is_clean(path, strlen(path))) return 0;
    for (const char *part = path;;) {
        size_t length = strcspn(part, "/");
        if (length == 0 || *part == '.') return 0;
        part += length;
        if (!*part++) return 1;
    }
}

/* ---- Names of this server ---------------------------------------------------------------------------------------- */

enum { HOST = 256 };

static int is_numeric(const char *name)
{
    struct in6_addr address;
    size_t length = strlen(name);
    char inner[HOST];
    if (inet_pton(AF_INET, name, &address) == 1) return 1;
    if (length < 3 || name[0] != '[' || name[length - 1] != ']') return 0;
    snprintf(inner, sizeof inner, "%.*s", (int)length - 2, name + 1);
    return inet_pton(AF_INET6, inner, &address) == 1;
}

static int name_is_ours(const char *name, const serve_names *names)
{
    static const char *const loopback[] = {"127.0.0.1", "localhost", "[::1]"};
    char bracketed[HOST];
    for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++)
        if (strcasecmp(name, loopback[i]) == 0) return 1;
    if (names->any) return is_numeric(name) || strcasecmp(name, names->machine) == 0;
    snprintf(bracketed, sizeof bracketed, "[%s]", names->bound);
    return strcasecmp(name, names->bound) == 0 || strcasecmp(name, bracketed) == 0;
}

int serve_host_is_ours(const char *host, const serve_names *names)
{
    char name[HOST];
    const char *colon = strrchr(host, ':'), *bracket = strrchr(host, ']');
    if (colon && bracket && colon < bracket) colon = NULL;
    size_t length = colon ? (size_t)(colon - host) : strlen(host);
    long port = 80;
    if (length == 0 || length >= sizeof name) return 0;
    if (colon) {
        size_t digits = strspn(colon + 1, "0123456789");
        if (digits == 0 || digits > 5 || colon[1] == '0' || colon[1 + digits]) return 0;
        port = strtol(colon + 1, NULL, 10);
    }
    snprintf(name, sizeof name, "%.*s", (int)length, host);
    return port == names->port && name_is_ours(name, names);
}

int serve_origin_is_ours(const char *origin, const serve_names *names)
{
    static const char scheme[] = "http://";
    return strncmp(origin, scheme, sizeof scheme - 1) == 0 && serve_host_is_ours(origin + sizeof scheme - 1, names);
}

size_t serve_cookie_find(const char *header, const char *name, const char **value)
{
    size_t length = strlen(name);
    while (*header) {
        header += strspn(header, " ;");
        size_t size = strcspn(header, ";");
        if (size > length && strncmp(header, name, length) == 0 && header[length] == '=') {
            *value = header + length + 1;
            return size - length - 1;
        }
        header += size;
    }
    return 0;
}
