/* SPDX-License-Identifier: Apache-2.0 */
#include "examples/kv_memory.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct kv_memory {
  uint64_t address;
  int (*to_device)(uint64_t to, const void* from, size_t bytes); /* NULL: own memory */
  int (*to_host)(void* to, uint64_t from, size_t bytes);
};

static const struct names {
  const char *kind, *library, *init, *context, *allocate, *to_device, *to_host;
} known[] = {{"cuda", "libcuda.so.1", "cuInit", "cuCtxCreate_v2", "cuMemAlloc_v2",
              "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2"},
             {"cuda-shared", "libcuda.so.1", "cuInit", "cuCtxCreate_v2", NULL, "cuMemcpyHtoD_v2",
              "cuMemcpyDtoH_v2"},
             {"hip", "libamdhip64.so.7", "hipInit", "hipCtxCreate", "hipMalloc", "hipMemcpyHtoD",
              "hipMemcpyDtoH"},
             {"hip", "libamdhip64.so.6", "hipInit", "hipCtxCreate", "hipMalloc", "hipMemcpyHtoD",
              "hipMemcpyDtoH"}};

static void* find(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == NULL) fprintf(stderr, "kv_transfer: the library lacks %s\n", name);
  return found;
}

/* Memory of cuMemCreate with a descriptor as its shareable handle. */
static int make_shared(void* library, uint64_t bytes, uint64_t* address) {
  struct {
    int type, handle_types, location_type, location;
    uint64_t rest[3];
  } properties = {1, 1, 1, 0, {0}};
  struct {
    int location_type, location, rights;
  } access = {1, 0, 3};
  uint64_t allocation = 0;
  size_t unit = 0;
  int (*granularity)(size_t*, const void*, int) = find(library, "cuMemGetAllocationGranularity");
  int (*create)(uint64_t*, size_t, const void*, unsigned long long) = find(library, "cuMemCreate");
  int (*reserve)(uint64_t*, size_t, size_t, uint64_t, unsigned long long) =
      find(library, "cuMemAddressReserve");
  int (*map)(uint64_t, size_t, size_t, uint64_t, unsigned long long) = find(library, "cuMemMap");
  int (*set_access)(uint64_t, size_t, const void*, size_t) = find(library, "cuMemSetAccess");
  if (!granularity || !create || !reserve || !map || !set_access) return -1;
  int result = granularity(&unit, &properties, 0);
  if (result != 0) return result;
  const uint64_t whole = (bytes + unit - 1) / unit * unit;
  if ((result = create(&allocation, whole, &properties, 0)) != 0) return result;
  if ((result = reserve(address, whole, 0, 0, 0)) != 0) return result;
  if ((result = map(*address, whole, 0, allocation, 0)) != 0) return result;
  return set_access(*address, whole, &access, 1);
}

static bool make_on_device(const struct names* names, void* library, uint64_t bytes,
                           struct kv_memory* memory) {
  void* context = NULL;
  int (*init)(unsigned) = find(library, names->init);
  int (*make)(void**, unsigned, int) = find(library, names->context);
  memory->to_device = find(library, names->to_device);
  memory->to_host = find(library, names->to_host);
  if (!init || !make || !memory->to_device || !memory->to_host) return false;
  int result = init(0);
  if (result == 0) result = make(&context, 0, 0);
  if (result == 0 && names->allocate == NULL) {
    result = make_shared(library, bytes, &memory->address);
  } else if (result == 0) {
    int (*allocate)(uint64_t*, size_t) = find(library, names->allocate);
    result = allocate == NULL ? -1 : allocate(&memory->address, bytes);
  }
  if (result != 0) fprintf(stderr, "kv_transfer: no memory of kind %s (%d)\n", names->kind, result);
  return result == 0;
}

struct kv_memory* kv_memory_make(const char* kind, uint64_t bytes) {
  struct kv_memory* memory = calloc(1, sizeof *memory);
  if (memory == NULL) return NULL;
  if (strcmp(kind, "host") == 0) {
    void* at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED) {
      memory->address = (uint64_t)(uintptr_t)at;
      return memory;
    }
  }
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    void* library = NULL;
    if (strcmp(known[i].kind, kind) != 0) continue;
    if ((library = dlopen(known[i].library, RTLD_NOW)) == NULL) continue;
    if (make_on_device(&known[i], library, bytes, memory)) return memory;
    free(memory);
    return NULL;
  }
  fprintf(stderr, "kv_transfer: this host has no memory of kind %s\n", kind);
  free(memory);
  return NULL;
}

void* kv_memory_address(const struct kv_memory* memory) {
  return (void*)(uintptr_t)memory->address;
}

bool kv_memory_write(struct kv_memory* memory, uint64_t offset, const void* from, uint64_t bytes) {
  if (memory->to_device != NULL)
    return memory->to_device(memory->address + offset, from, bytes) == 0;
  memcpy((char*)kv_memory_address(memory) + offset, from, bytes);
  return true;
}

bool kv_memory_read(struct kv_memory* memory, uint64_t offset, void* to, uint64_t bytes) {
  if (memory->to_host != NULL) return memory->to_host(to, memory->address + offset, bytes) == 0;
  memcpy(to, (char*)kv_memory_address(memory) + offset, bytes);
  return true;
}
