/* Pictures and arrays that clients have sent: in memory, the newest SERVE_UPLOADS of them. */
#ifndef PSLD_PROGRAMS_SERVE_UPLOADS_H
#define PSLD_PROGRAMS_SERVE_UPLOADS_H

/* A descriptor of its own of an upload, at its beginning; -1: there is none of that number. */
int serve_upload_open(unsigned long number);
void serve_uploads_free(void);

#endif
