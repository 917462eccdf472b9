/* The order of items: a shuffle for each epoch, by address. */
#ifndef PSLD_DATA_ORDER_H
#define PSLD_DATA_ORDER_H

#include <stdint.h>

/* Which of `count` items is at `place` (< count) in shuffle number `epoch` of a seed. Each item has one place; nothing
 * is stored. */
uint64_t psld_order_at(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t place);

/* The shuffle that splits training from held-out items; no epoch has this number. */
#define PSLD_ORDER_OF_SPLIT UINT64_MAX

#endif
