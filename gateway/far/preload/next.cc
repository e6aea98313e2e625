// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/preload/next.h"

#include <dlfcn.h>

#include <atomic>

namespace rocegw::far {
namespace {

NextCalls g_next;
std::atomic<bool> g_found{false};
// The first use of an initial-exec variable allocates nothing.
__attribute__((tls_model("initial-exec"))) thread_local bool t_looking_up = false;

template <typename Function>
void Find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

bool IsLookingUp() { return t_looking_up; }

const NextCalls& Next() {
  if (g_found.load(std::memory_order_acquire)) return g_next;
  // Several threads may do this: they find the same.
  t_looking_up = true;
  Find(g_next.mmap, "mmap");
  Find(g_next.munmap, "munmap");
  Find(g_next.mremap, "mremap");
  Find(g_next.madvise, "madvise");
  Find(g_next.mprotect, "mprotect");
  Find(g_next.mlock, "mlock");
  Find(g_next.mlock2, "mlock2");
  Find(g_next.mlockall, "mlockall");
  Find(g_next.malloc, "malloc");
  Find(g_next.calloc, "calloc");
  Find(g_next.realloc, "realloc");
  Find(g_next.free, "free");
  Find(g_next.aligned_alloc, "aligned_alloc");
  Find(g_next.memalign, "memalign");
  Find(g_next.posix_memalign, "posix_memalign");
  Find(g_next.malloc_usable_size, "malloc_usable_size");
  Find(g_next.close, "close");
  Find(g_next.close_range, "close_range");
  Find(g_next.dup2, "dup2");
  Find(g_next.dup3, "dup3");
  Find(g_next.eventfd, "eventfd");
  Find(g_next.rdma_create_event_channel, "rdma_create_event_channel");
  Find(g_next.rdma_destroy_event_channel, "rdma_destroy_event_channel");
  Find(g_next.ibv_create_comp_channel, "ibv_create_comp_channel");
  Find(g_next.ibv_destroy_comp_channel, "ibv_destroy_comp_channel");
  Find(g_next.pthread_create, "pthread_create");
  t_looking_up = false;
  g_found.store(true, std::memory_order_release);
  return g_next;
}

}  // namespace rocegw::far
