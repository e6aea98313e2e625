/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of kv_transfer: the process's own, or a GPU's by the driver's library, which is loaded
 * when it is asked for. The types are CUDA's; HIP's functions take the same arguments. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kv_memory;

/* kind: host, cuda, cuda-shared (cuMemCreate, exportable as a descriptor), hip. Prints what is
 * wrong and returns NULL if there is no such memory. Call before the first use of verbs. */
struct kv_memory* kv_memory_make(const char* kind, uint64_t bytes);
void* kv_memory_address(const struct kv_memory* memory);
/* Copies between the process's memory and this memory. False: the driver refuses. */
bool kv_memory_write(struct kv_memory* memory, uint64_t offset, const void* from, uint64_t bytes);
bool kv_memory_read(struct kv_memory* memory, uint64_t offset, void* to, uint64_t bytes);
