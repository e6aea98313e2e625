// SPDX-License-Identifier: Apache-2.0
// The functions that this library stands before: those of the next library in the program's order,
// which is the C library or one that stands before it as well.
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sys/types.h>

#include <cstddef>

namespace rocegw::far {

struct NextCalls {
  void* (*mmap)(void*, size_t, int, int, int, off_t);
  int (*munmap)(void*, size_t);
  void* (*mremap)(void*, size_t, size_t, int, ...);
  int (*madvise)(void*, size_t, int);
  int (*mprotect)(void*, size_t, int);
  int (*mlock)(const void*, size_t);
  int (*mlock2)(const void*, size_t, unsigned);
  int (*mlockall)(int);
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void (*free)(void*);
  void* (*aligned_alloc)(size_t, size_t);
  void* (*memalign)(size_t, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  size_t (*malloc_usable_size)(void*);
  int (*close)(int);
  int (*close_range)(unsigned, unsigned, int);
  int (*dup2)(int, int);
  int (*dup3)(int, int, int);
  int (*eventfd)(unsigned, int);
  rdma_event_channel* (*rdma_create_event_channel)();
  void (*rdma_destroy_event_channel)(rdma_event_channel*);
  ibv_comp_channel* (*ibv_create_comp_channel)(ibv_context*);
  int (*ibv_destroy_comp_channel)(ibv_comp_channel*);
  int (*pthread_create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
};

// Looks them up at the first call. Any thread.
const NextCalls& Next();
// Whether this thread is looking them up: it may call functions that stand before others.
bool IsLookingUp();

}  // namespace rocegw::far
