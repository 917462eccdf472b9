/* How each kind of data set is opened. */
#ifndef PSLD_DATA_KINDS_H
#define PSLD_DATA_KINDS_H

#include "data/items.h"
#include "io/archives/files.h"

/* By path. */
psld_status psld_toy_open(const char *path, const psld_data_options *options, psld_items **items);
psld_status psld_idx_set_open(const char *path, const psld_data_options *options, psld_items **items);
psld_status psld_cifar_open(const char *path, const psld_data_options *options, psld_items **items);
psld_status psld_npy_set_open(const char *path, const psld_data_options *options, psld_items **items);
psld_status psld_npz_set_open(const char *path, const psld_data_options *options, psld_items **items);

/* A folder or archive, told by the names in it; on success the files belong to the items. */
int psld_idx_files_are(const psld_files *files);
psld_status psld_idx_files_open(psld_files *files, const psld_data_options *options, psld_items **items);
int psld_cifar_files_are(const psld_files *files);
psld_status psld_cifar_files_open(psld_files *files, const psld_data_options *options, psld_items **items);
psld_status psld_images_open(psld_files *files, const psld_data_options *options, psld_items **items);

#endif
