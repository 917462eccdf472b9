/* How each kind of data set is opened. */
#ifndef PSLD_DATA_KINDS_H
#define PSLD_DATA_KINDS_H

#include "data/items.h"
#include "io/files.h"

/* "toy:NAME" */
psld_status psld_toy_open(const char *name, const psld_data_options *options, psld_items **items);
/* Image files in a folder or archive, which it takes over: with success they belong to the items. */
psld_status psld_images_open(psld_files *files, const psld_data_options *options, psld_items **items);

#endif
