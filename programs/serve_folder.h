/* The served folder, and the files that come with the program. Every path of a client is opened here, by a descriptor
 * that cannot point outside of the folder; the library then reads that descriptor, so the checked file is the one that
 * is read. */
#ifndef PSLD_PROGRAMS_SERVE_FOLDER_H
#define PSLD_PROGRAMS_SERVE_FOLDER_H

#include <stddef.h>
#include <sys/stat.h>

typedef struct serve_folder serve_folder;

typedef enum serve_found {
    SERVE_FOUND,
    SERVE_BAD_PATH,  /* not well formed */
    SERVE_OUTSIDE,   /* points outside of the folder */
    SERVE_NOT_THERE, /* no such file, or it may not be read */
    SERVE_EXISTS,    /* already */
    SERVE_NOT_WRITTEN,
} serve_found;
/* What is wrong, for a message. */
const char *serve_found_text(serve_found found);

/* NULL if it is not a folder. */
serve_folder *serve_folder_open(const char *path);
void serve_folder_close(serve_folder *folder);
/* Its whole path, and its last part. */
const char *serve_folder_path(const serve_folder *folder);
const char *serve_folder_name(const serve_folder *folder);

/* Opens what a client calls `path`, for reading; "shipped:NAME" too. Folders only where `want` is S_IFDIR, other files only
 * where it is S_IFREG; 0 takes both. */
serve_found serve_folder_find(const serve_folder *folder, const char *path, mode_t want, int *fd);
/* The whole file as a text; free(). At most `limit` bytes. */
serve_found serve_folder_read(const serve_folder *folder, const char *path, size_t limit, char **text, size_t *size);
/* Writes a file, whole or not at all. `replace`: one that is there. */
serve_found serve_folder_write(const serve_folder *folder, const char *path, const void *bytes, size_t size,
                               int replace);
/* The name on a command line, relative to the folder; shipped files by their whole path. */
void serve_folder_user_path(const char *path, char *text, size_t size);

/* Descriptors that stand for files while the library reads them, with the client's names. */
enum { SERVE_FILES = 8, SERVE_FD_PATH = 48 };
typedef struct serve_files {
    int count;
    struct serve_opened {
        int fd;
        char name[512];
        char path[SERVE_FD_PATH];
    } opened[SERVE_FILES];
} serve_files;
/* Opens a file as serve_folder_find does: *path is valid until serve_files_close. */
serve_found serve_files_add(serve_files *files, const serve_folder *folder, const char *name, mode_t want,
                            const char **path);
/* The same for bytes that are not a file; returns 0 if memory runs out. */
int serve_files_add_bytes(serve_files *files, const char *name, const void *bytes, size_t size, const char **path);
/* Takes over a descriptor. */
int serve_files_add_fd(serve_files *files, const char *name, int fd, const char **path);
void serve_files_close(serve_files *files);
/* A message of the library with names in place of descriptors. Returns `text`. */
const char *serve_files_rename(const serve_files *files, const char *message, char *text, size_t size);

#endif
