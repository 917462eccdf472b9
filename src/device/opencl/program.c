/* Kernels from the sources of kernels/. A program is its files with its options; it is compiled when the first of its
 * kernels is asked for and kept until the device is closed, and in the cache beyond that. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "device/opencl/opencl.h"

enum { MOST_FILES = 8, LONGEST_OPTIONS = 512, VERSION = 1 };

struct psld_cl_program {
    psld_cl_program *next;
    uint64_t key;
    cl_program program;
};

/* ---- Sources ----------------------------------------------------------------------------------------------------- */

typedef struct sources {
    const char *text[MOST_FILES];
    cl_uint count;
} sources;

static psld_status add_source(sources *s, const char *name, size_t length)
{
    for (const psld_cl_source *source = psld_cl_sources; source->name; source++) {
        if (strncmp(source->name, name, length) != 0 || source->name[length] || s->count == MOST_FILES) continue;
        s->text[s->count++] = source->text;
        return PSLD_OK;
    }
    return psld_fail(PSLD_DEVICE_FAILED, "opencl: this build has no kernels '%.*s'", (int)length, name);
}

static psld_status find_sources(const char *files, sources *s)
{
    *s = (sources){.count = 0};
    PSLD_TRY(add_source(s, "common.cl", strlen("common.cl")));
    for (const char *at = files; *at;) {
        size_t length = strcspn(at, " ");
        PSLD_TRY(add_source(s, at, length));
        at += length + strspn(at + length, " ");
    }
    return PSLD_OK;
}

static uint64_t key_of(const psld_cl_device *device, const sources *s, const char *options)
{
    uint64_t key = psld_hash_bytes(device->key + VERSION, options, strlen(options) + 1);
    for (cl_uint i = 0; i < s->count; i++) key = psld_hash_bytes(key, s->text[i], strlen(s->text[i]) + 1);
    return key;
}

/* ---- Compiling --------------------------------------------------------------------------------------------------- */

/* The line of a compiler's log that says most: the first with "error", or the first at all. */
static void pick_line(const char *log, char *line, size_t size)
{
    const char *found = strstr(log, "error");
    while (found && found > log && found[-1] != '\n') found--;
    if (!found) found = log + strspn(log, " \n\t");
    snprintf(line, size, "%.*s", (int)strcspn(found, "\n"), found);
}

static psld_status does_not_compile(psld_cl_device *device, cl_program program, cl_int error, const char *files,
                                    const char *options)
{
    char line[256] = "";
    size_t size = 0;
    device->cl->GetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    char *log = size > 0 && size < (1u << 24) ? psld_alloc(size + 1, 1) : NULL;
    if (log &&
        device->cl->GetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, size, log, NULL) == CL_SUCCESS)
        pick_line(log, line, sizeof line);
    psld_release(log);
    return psld_fail(PSLD_DEVICE_FAILED, "%s: %s does not compile with '%s': %s", device->device.facts.id, files,
                     options, *line ? line : psld_cl_code_name(error));
}

static void name_of(uint64_t key, char *name, size_t size)
{
    snprintf(name, size, "%016llx.bin", (unsigned long long)key);
}

/* NULL: there is none, or the driver does not take it any more. */
static cl_program from_cache(psld_cl_device *device, uint64_t key, const char *options)
{
    char name[32];
    void *bytes;
    size_t size;
    cl_int error = CL_SUCCESS, state = CL_SUCCESS;
    name_of(key, name, sizeof name);
    psld_cl_cache_get(name, &bytes, &size);
    if (!bytes) return NULL;
    const unsigned char *binary = bytes;
    cl_program program =
        device->cl->CreateProgramWithBinary(device->context, 1, &device->id, &size, &binary, &state, &error);
    if (program &&
        (state != CL_SUCCESS || device->cl->BuildProgram(program, 1, &device->id, options, NULL, NULL) != CL_SUCCESS)) {
        device->cl->ReleaseProgram(program);
        program = NULL;
    }
    psld_release(bytes);
    return program;
}

static void to_cache(psld_cl_device *device, uint64_t key, cl_program program)
{
    char name[32];
    size_t size = 0;
    if (!psld_cl_cache_is_on()) return; /* making the binary may take long */
    if (device->cl->GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) != CL_SUCCESS) return;
    unsigned char *binary = size ? psld_alloc(size, 1) : NULL;
    name_of(key, name, sizeof name);
    if (binary && device->cl->GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == CL_SUCCESS)
        psld_cl_cache_put(name, binary, size);
    psld_release(binary);
}

static psld_status compile(psld_cl_device *device, const sources *s, const char *files, const char *options,
                           cl_program *program)
{
    cl_int error;
    const char *texts[MOST_FILES];
    memcpy(texts, s->text, sizeof texts);
    *program = device->cl->CreateProgramWithSource(device->context, s->count, texts, NULL, &error);
    if (!*program) return psld_cl_result(device, error, "take the source of a program");
    error = device->cl->BuildProgram(*program, 1, &device->id, options, NULL, NULL);
    if (error == CL_SUCCESS) return PSLD_OK;
    psld_status status = does_not_compile(device, *program, error, files, options);
    device->cl->ReleaseProgram(*program);
    *program = NULL;
    return status;
}

static psld_status make_program(psld_cl_device *device, const sources *s, const char *files, const char *options,
                                uint64_t key, psld_cl_program **made)
{
    psld_cl_program *p = psld_alloc(1, sizeof *p);
    if (!p) return PSLD_NO_MEMORY;
    p->key = key;
    p->program = from_cache(device, key, options);
    if (!p->program) {
        psld_status status = compile(device, s, files, options, &p->program);
        if (status != PSLD_OK) {
            psld_release(p);
            return status;
        }
        to_cache(device, key, p->program);
    }
    p->next = device->programs;
    device->programs = p;
    *made = p;
    return PSLD_OK;
}

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

static psld_status find_kernel(psld_cl_device *device, const sources *s, const char *files, const char *name,
                               const char *options, cl_kernel *kernel)
{
    uint64_t key = key_of(device, s, options);
    cl_int error = CL_SUCCESS;
    psld_cl_program *program = device->programs;
    while (program && program->key != key) program = program->next;
    if (!program) PSLD_TRY(make_program(device, s, files, options, key, &program));
    *kernel = device->cl->CreateKernel(program->program, name, &error);
    if (*kernel) return PSLD_OK;
    return psld_fail(PSLD_DEVICE_FAILED, "%s: %s has no kernel %s: %s (%d)", device->device.facts.id, files, name,
                     psld_cl_code_name(error), (int)error);
}

psld_status psld_cl_kernel(psld_cl_device *device, const char *files, const char *name, const char *options,
                           cl_kernel *kernel)
{
    char all[LONGEST_OPTIONS];
    sources s;
    *kernel = NULL;
    PSLD_TRY(psld_cl_check(device));
    PSLD_TRY(find_sources(files, &s));
    snprintf(all, sizeof all, "-cl-std=CL1.2 %s", options ? options : "");
    pthread_mutex_lock(&device->lock);
    psld_status status = find_kernel(device, &s, files, name, all, kernel);
    pthread_mutex_unlock(&device->lock);
    return status;
}

void psld_cl_kernel_free(psld_cl_device *device, cl_kernel *kernel)
{
    if (*kernel) device->cl->ReleaseKernel(*kernel);
    *kernel = NULL;
}

void psld_cl_programs_free(psld_cl_device *device)
{
    for (psld_cl_program *p = device->programs, *next; p; p = next) {
        next = p->next;
        device->cl->ReleaseProgram(p->program);
        psld_release(p);
    }
    device->programs = NULL;
}
