/* The records of a zip archive, for reading and for writing: what they begin with, and how long they are before names
 * and extra fields. Numbers are little-endian. */
#ifndef PSLD_IO_ZIP_FORMAT_H
#define PSLD_IO_ZIP_FORMAT_H

enum {
    LOCAL_MAGIC = 0x04034b50, /* an entry */
    LOCAL_SIZE = 30,
    CENTRAL_MAGIC = 0x02014b50, /* an entry of the directory */
    CENTRAL_SIZE = 46,
    END64_MAGIC = 0x06064b50, /* the end, with 64-bit numbers */
    END64_SIZE = 56,
    LOCATOR_MAGIC = 0x07064b50, /* where that is */
    LOCATOR_SIZE = 20,
    END_MAGIC = 0x06054b50,
    END_SIZE = 22,
    EXTRA_ZIP64 = 1, /* the extra field with 64-bit sizes and offset */
};

#endif
