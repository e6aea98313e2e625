// SPDX-License-Identifier: Apache-2.0
// Memory of the fake drivers: allocations, handles for other processes, memory of cuMemCreate.
#include <fcntl.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "tests/support/fake_cuda/fake_state.h"

using namespace rocegw::fake_cuda;  // NOLINT: the state is this library's own

namespace {

uint64_t Reserve(uint64_t length) {
  void* const at = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return reinterpret_cast<uint64_t>(at);
}

std::shared_ptr<Physical> MakePhysical(size_t length) {
  const int descriptor = memfd_create(kFileName, MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(length)) != 0) return nullptr;
  auto made = std::make_shared<Physical>();
  made->descriptor = descriptor;
  made->length = length;
  return made;
}

}  // namespace

FAKE int NAME(cuMemAlloc_v2, hipMalloc)(uint64_t* address, size_t length) {
  const std::lock_guard lock(g_mutex);
  const NoLeaks no_leaks;
  if (const int error = Usable()) return error;
  auto memory = MakePhysical(length);
  if (memory == nullptr) return 2;
  *address = Reserve(length);
  g_mappings[*address] = {memory, length, g_current.back()->device, g_current.back()};
  return kSuccess;
}
FAKE int NAME(cuMemFree_v2, hipFree)(uint64_t address) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_mappings.find(address);
  if (found == g_mappings.end() || found->second.of_create) return kInvalidValue;
  (void)!ftruncate(found->second.memory->descriptor, 0);
  Drop(found);
  return kSuccess;
}
FAKE int NAME(cuMemAllocManaged, hipMallocManaged)(uint64_t* address, size_t length, unsigned) {
  const std::lock_guard lock(g_mutex);
  void* const at =
      mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *address = reinterpret_cast<uint64_t>(at);
  g_managed[*address] = length;
  return kSuccess;
}
FAKE int NAME(cuMemGetAddressRange_v2, hipMemGetAddressRange)(uint64_t* base, size_t* length,
                                                              uint64_t address) {
  const std::lock_guard lock(g_mutex);
  const auto* const found = Find(address, 1);
  if (found == nullptr) return kInvalidValue;
  *base = found->first;
  *length = found->second.length;
  return kSuccess;
}
FAKE int NAME(cuIpcGetMemHandle, hipIpcGetMemHandle)(uint8_t* handle, uint64_t address) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_mappings.find(address);
  if (found == g_mappings.end() || found->second.of_create) return kInvalidValue;
  const Handle its{getpid(), found->second.memory->descriptor, found->second.length};
  memset(handle, 0, 64);
  memcpy(handle, &its, sizeof its);
  return kSuccess;
}
struct IpcHandle {
  uint8_t bytes[64];
};
FAKE int NAME(cuIpcOpenMemHandle_v2, hipIpcOpenMemHandle)(uint64_t* address, IpcHandle handle,
                                                          unsigned) {
  const std::lock_guard lock(g_mutex);
  const NoLeaks no_leaks;
  if (const int error = Usable()) return error;
  Context* const context = g_current.back();
  Handle its;
  memcpy(&its, handle.bytes, sizeof its);
  for (const auto& [at, mapping] : g_mappings) {
    if (mapping.exporter == its.process && mapping.device == context->device &&
        mapping.context != context)
      return kInvalidContext;
  }
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", its.process, its.descriptor);
  const int descriptor = its.process > 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (descriptor < 0) return kInvalidValue;
  auto memory = std::make_shared<Physical>();
  memory->descriptor = descriptor;
  memory->length = its.length;
  *address = Reserve(its.length);
  g_mappings[*address] = {memory, its.length, context->device, context, its.process};
  ++g_counts.opened;
  return kSuccess;
}
FAKE int NAME(cuIpcCloseMemHandle, hipIpcCloseMemHandle)(uint64_t address) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_mappings.find(address);
  if (found == g_mappings.end() || found->second.exporter == 0) return kInvalidValue;
  Drop(found);
  return kSuccess;
}

// Properties as CUmemAllocationProp begins.
struct Properties {
  int type;
  int handle_types;
  int location_type;
  int location;
};
FAKE int NAME(cuMemGetAllocationGranularity,
              hipMemGetAllocationGranularity)(size_t* unit, const Properties*, int) {
  *unit = kGranularity;
  return kSuccess;
}
FAKE int NAME(cuMemCreate, hipMemCreate)(uint64_t* handle, size_t length,
                                         const Properties* properties, unsigned long long) {
  const std::lock_guard lock(g_mutex);
  const NoLeaks no_leaks;
  if (!HasFile()) return kNoFile;
  if (length == 0 || length % kGranularity != 0) return kInvalidValue;
  auto memory = MakePhysical(length);
  if (memory == nullptr) return 2;
  memory->exportable = (properties->handle_types & 1) != 0;
  *handle = g_next_handle++;
  g_physical[*handle] = memory;
  return kSuccess;
}
FAKE int NAME(cuMemRelease, hipMemRelease)(uint64_t handle) {
  const std::lock_guard lock(g_mutex);
  return g_physical.erase(handle) == 1 ? kSuccess : kInvalidValue;
}
FAKE int NAME(cuMemExportToShareableHandle,
              hipMemExportToShareableHandle)(void* descriptor, uint64_t handle, int type,
                                             unsigned long long) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_physical.find(handle);
  if (found == g_physical.end() || !found->second->exportable || type != 1) return kInvalidValue;
  const int made = fcntl(found->second->descriptor, F_DUPFD_CLOEXEC, 3);
  memcpy(descriptor, &made, sizeof made);
  return made >= 0 ? kSuccess : kInvalidValue;
}
FAKE int NAME(cuMemImportFromShareableHandle,
              hipMemImportFromShareableHandle)(uint64_t* handle, void* descriptor, int type) {
  const std::lock_guard lock(g_mutex);
  const NoLeaks no_leaks;
  const int given = static_cast<int>(reinterpret_cast<intptr_t>(descriptor));
  char link[128] = {};
  const std::string path = "/proc/self/fd/" + std::to_string(given);
  if (type != 1 || readlink(path.c_str(), link, sizeof link - 1) < 0 ||
      strstr(link, kFileName) == nullptr) {
    return kInvalidValue;
  }
  auto memory = std::make_shared<Physical>();
  memory->descriptor = fcntl(given, F_DUPFD_CLOEXEC, 3);
  memory->length = static_cast<uint64_t>(lseek(given, 0, SEEK_END));
  *handle = g_next_handle++;
  g_physical[*handle] = memory;
  return kSuccess;
}
FAKE int NAME(cuMemRetainAllocationHandle, hipMemRetainAllocationHandle)(uint64_t* handle,
                                                                         void* address) {
  const std::lock_guard lock(g_mutex);
  const auto* const found = Find(reinterpret_cast<uint64_t>(address), 1);
  if (found == nullptr || !found->second.of_create) return kInvalidValue;
  *handle = g_next_handle++;
  g_physical[*handle] = found->second.memory;
  return kSuccess;
}
FAKE int NAME(cuMemAddressReserve, hipMemAddressReserve)(uint64_t* address, size_t length, size_t,
                                                         uint64_t, unsigned long long) {
  const std::lock_guard lock(g_mutex);
  if (length == 0 || length % kGranularity != 0) return kInvalidValue;
  *address = Reserve(length);
  g_reserved[*address] = length;
  return kSuccess;
}
FAKE int NAME(cuMemAddressFree, hipMemAddressFree)(uint64_t address, size_t length) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_reserved.find(address);
  if (found == g_reserved.end() || found->second != length) return kInvalidValue;
  munmap(reinterpret_cast<void*>(address), length);
  g_reserved.erase(found);
  return kSuccess;
}
FAKE int NAME(cuMemMap, hipMemMap)(uint64_t address, size_t length, size_t offset, uint64_t handle,
                                   unsigned long long) {
  const std::lock_guard lock(g_mutex);
  const NoLeaks no_leaks;
  const auto found = g_physical.find(handle);
  if (found == g_physical.end() || offset != 0 || length > found->second->length ||
      length % kGranularity != 0) {
    return kInvalidValue;
  }
  Mapping mapping{found->second, length};
  mapping.of_create = true;
  mapping.reachable = false;
  g_mappings[address] = mapping;
  ++g_counts.opened;
  return kSuccess;
}
FAKE int NAME(cuMemUnmap, hipMemUnmap)(uint64_t address, size_t) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_mappings.find(address);
  if (found == g_mappings.end() || !found->second.of_create) return kInvalidValue;
  --g_counts.opened;
  Drop(found);
  return kSuccess;
}
struct Access {
  int location_type;
  int location;
  int rights;
};
FAKE int NAME(cuMemSetAccess, hipMemSetAccess)(uint64_t address, size_t length,
                                               const Access* access, size_t count) {
  const std::lock_guard lock(g_mutex);
  auto* const found = Find(address, length);
  if (found == nullptr || count != 1 || access->location_type != 1 || access->rights != 3) {
    return kInvalidValue;
  }
  found->second.device = access->location;
  found->second.reachable = true;
  return kSuccess;
}
