// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1 without a GPU, for tests. Allocations are memfds behind addresses that fault when a
// processor touches them. Copies are done when their event is asked for, after as many "not ready"
// as a test wants, and from their last byte to their first; so a caller that uses memory too early
// gets wrong bytes. A handle names a descriptor of the process that made it. Tests inject errors,
// waits and the loss of the device (fake_cuda.h). An allocation that is freed fails copies of every
// process. Two devices.
#include "tests/support/fake_cuda/fake_cuda.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#define FAKE extern "C" __attribute__((visibility("default")))

// Functions of the leak sanitizer, where the program has it.
extern "C" void __lsan_disable() __attribute__((weak));
extern "C" void __lsan_enable() __attribute__((weak));

namespace {

// A driver's objects are not the program's: what a lost device keeps is no leak.
struct NoLeaks {
  NoLeaks() {
    if (__lsan_disable != nullptr) __lsan_disable();
  }
  ~NoLeaks() {
    if (__lsan_enable != nullptr) __lsan_enable();
  }
};

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kInvalidContext = 201;
constexpr int kNotReady = 600;
constexpr int kIllegalAddress = 700;
constexpr int kLaunchFailed = 719;
constexpr int kDevices = 2;

struct Handle {  // the first bytes of CUipcMemHandle
  int32_t process;
  int32_t descriptor;
  uint64_t length;
};

struct Allocation {
  int descriptor = -1;
  uint64_t length = 0;
  int device = 0;
};

struct Context {
  int device;
};

struct Copy {
  bool to_device;
  uint64_t device;
  uint8_t* host;
  size_t length;
};

struct Stream {
  std::vector<Copy> copies;
};

struct Event {
  Stream* stream = nullptr;
  int waits = 0;  // "not ready" still to be said; -1: for ever
};

std::mutex g_mutex;
std::map<uint64_t, Allocation> g_allocations;  // by address
std::set<Context*> g_contexts;
thread_local std::vector<Context*> g_current;
int g_fail_result = 0;
int g_fail_after = -1;
int g_waits = 3;
bool g_lost = false;
FakeCudaCounts g_counts;

const std::pair<const uint64_t, Allocation>* Find(uint64_t address, size_t length) {
  auto next = g_allocations.upper_bound(address);
  if (next == g_allocations.begin()) return nullptr;
  --next;
  const uint64_t offset = address - next->first;
  return offset < next->second.length && length <= next->second.length - offset ? &*next : nullptr;
}

uint64_t Reserve(uint64_t length) {
  void* const at = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return reinterpret_cast<uint64_t>(at);
}

int Do(const Copy& copy) {
  const auto* const found = Find(copy.device, copy.length);
  if (found == nullptr) return kIllegalAddress;
  // A short piece at a time, from the end.
  for (size_t left = copy.length; left != 0;) {
    const size_t piece = std::min<size_t>(left, 1000);
    left -= piece;
    const auto offset = static_cast<off_t>(copy.device + left - found->first);
    const ssize_t moved = copy.to_device
                              ? pwrite(found->second.descriptor, copy.host + left, piece, offset)
                              : pread(found->second.descriptor, copy.host + left, piece, offset);
    if (moved != static_cast<ssize_t>(piece)) return kIllegalAddress;
  }
  return kSuccess;
}

// A freed allocation has no bytes, and a write must not give it new ones.
bool IsFreed(const Allocation& allocation) {
  return lseek(allocation.descriptor, 0, SEEK_END) == 0;
}

int Usable() {
  if (g_lost) return kLaunchFailed;
  return g_current.empty() ? kInvalidContext : kSuccess;
}

int BeginCopy(const Copy& copy, Stream* stream) {
  const std::lock_guard lock(g_mutex);
  if (const int error = Usable()) return error;
  if (g_fail_after == 0) {
    g_fail_after = -1;
    return g_fail_result;
  }
  if (g_fail_after > 0) --g_fail_after;
  if (Find(copy.device, copy.length) == nullptr) return kInvalidValue;
  ++g_counts.copies;
  stream->copies.push_back(copy);
  return kSuccess;
}

int CopyNow(const Copy& copy) {
  const std::lock_guard lock(g_mutex);
  if (const int error = Usable()) return error;
  return Do(copy);
}

}  // namespace

FAKE void FakeCudaFail(int result, int after) {
  const std::lock_guard lock(g_mutex);
  g_fail_result = result;
  g_fail_after = after;
}
FAKE void FakeCudaWaits(int queries) {
  const std::lock_guard lock(g_mutex);
  g_waits = queries;
}
FAKE void FakeCudaLose(int lost) {
  const std::lock_guard lock(g_mutex);
  g_lost = lost != 0;
}
FAKE FakeCudaCounts FakeCudaCount() {
  const std::lock_guard lock(g_mutex);
  g_counts.contexts = static_cast<int>(g_contexts.size());
  return g_counts;
}

FAKE int cuInit(unsigned) {
  if (const char* const waits = getenv("FAKE_CUDA_WAITS")) g_waits = atoi(waits);
  return kSuccess;
}
FAKE int cuDeviceGetCount(int* count) {
  *count = kDevices;
  return kSuccess;
}
FAKE int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < kDevices ? kSuccess : kInvalidValue;
}
FAKE int cuDeviceGetUuid(uint8_t* uuid, int device) {
  memset(uuid, 0x40 + device, 16);
  return kSuccess;
}
FAKE int cuCtxCreate_v2(Context** made, unsigned, int device) {
  const std::lock_guard lock(g_mutex);
  if (g_lost) return kLaunchFailed;
  const NoLeaks no_leaks;
  *made = new Context{device};
  g_contexts.insert(*made);
  g_current.push_back(*made);
  return kSuccess;
}
FAKE int cuCtxDestroy_v2(Context* context) {
  const std::lock_guard lock(g_mutex);
  if (g_contexts.erase(context) == 0) return kInvalidContext;
  delete context;
  return kSuccess;
}
FAKE int cuCtxPushCurrent_v2(Context* context) {
  const std::lock_guard lock(g_mutex);
  if (!g_contexts.contains(context)) return kInvalidContext;
  g_current.push_back(context);
  return kSuccess;
}
FAKE int cuCtxPopCurrent_v2(Context** context) {
  if (g_current.empty()) return kInvalidContext;
  *context = g_current.back();
  g_current.pop_back();
  return kSuccess;
}
FAKE int cuMemAlloc_v2(uint64_t* address, size_t length) {
  const std::lock_guard lock(g_mutex);
  if (const int error = Usable()) return error;
  const int descriptor = memfd_create("fake-cuda", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(length)) != 0) return 2;
  *address = Reserve(length);
  g_allocations[*address] = {descriptor, length, g_current.back()->device};
  return kSuccess;
}
FAKE int cuMemFree_v2(uint64_t address) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_allocations.find(address);
  if (found == g_allocations.end()) return kInvalidValue;
  (void)!ftruncate(found->second.descriptor, 0);
  close(found->second.descriptor);
  munmap(reinterpret_cast<void*>(address), found->second.length);
  g_allocations.erase(found);
  return kSuccess;
}
FAKE int cuMemGetAddressRange_v2(uint64_t* base, size_t* length, uint64_t address) {
  const std::lock_guard lock(g_mutex);
  const auto* const found = Find(address, 1);
  if (found == nullptr) return kInvalidValue;
  *base = found->first;
  *length = found->second.length;
  return kSuccess;
}
FAKE int cuIpcGetMemHandle(uint8_t* handle, uint64_t address) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_allocations.find(address);
  if (found == g_allocations.end()) return kInvalidValue;
  const Handle its{getpid(), found->second.descriptor, found->second.length};
  memset(handle, 0, 64);
  memcpy(handle, &its, sizeof its);
  return kSuccess;
}
struct IpcHandle {
  uint8_t bytes[64];
};
FAKE int cuIpcOpenMemHandle_v2(uint64_t* address, IpcHandle handle, unsigned) {
  const std::lock_guard lock(g_mutex);
  if (const int error = Usable()) return error;
  Handle its;
  memcpy(&its, handle.bytes, sizeof its);
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", its.process, its.descriptor);
  const int descriptor = its.process > 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (descriptor < 0) return kInvalidValue;
  *address = Reserve(its.length);
  g_allocations[*address] = {descriptor, its.length, g_current.back()->device};
  ++g_counts.opened;
  return kSuccess;
}
FAKE int cuIpcCloseMemHandle(uint64_t address) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_allocations.find(address);
  if (found == g_allocations.end()) return kInvalidValue;
  close(found->second.descriptor);
  munmap(reinterpret_cast<void*>(address), found->second.length);
  g_allocations.erase(found);
  --g_counts.opened;
  return kSuccess;
}
FAKE int cuMemHostAlloc(void** memory, size_t length, unsigned) {
  const NoLeaks no_leaks;
  *memory = malloc(length);
  return *memory == nullptr ? 2 : kSuccess;
}
FAKE int cuMemFreeHost(void* memory) {
  free(memory);
  return kSuccess;
}
FAKE int cuStreamCreate(Stream** stream, unsigned) {
  const NoLeaks no_leaks;
  *stream = new Stream;
  return kSuccess;
}
FAKE int cuStreamDestroy_v2(Stream* stream) {
  delete stream;
  return kSuccess;
}
FAKE int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t length, Stream* stream) {
  return BeginCopy({true, to, static_cast<uint8_t*>(const_cast<void*>(from)), length}, stream);
}
FAKE int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t length, Stream* stream) {
  return BeginCopy({false, from, static_cast<uint8_t*>(to), length}, stream);
}
FAKE int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t length) {
  return CopyNow({true, to, static_cast<uint8_t*>(const_cast<void*>(from)), length});
}
FAKE int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t length) {
  return CopyNow({false, from, static_cast<uint8_t*>(to), length});
}
FAKE int cuEventCreate(Event** event, unsigned) {
  const NoLeaks no_leaks;
  *event = new Event;
  return kSuccess;
}
FAKE int cuEventDestroy_v2(Event* event) {
  delete event;
  return kSuccess;
}
FAKE int cuEventRecord(Event* event, Stream* stream) {
  const std::lock_guard lock(g_mutex);
  if (const int error = Usable()) return error;
  ++g_counts.events;
  event->stream = stream;
  event->waits = g_waits;
  return kSuccess;
}
FAKE int cuEventQuery(Event* event) {
  const std::lock_guard lock(g_mutex);
  if (const int error = Usable()) return error;
  if (event->waits != 0) {
    if (event->waits > 0) --event->waits;
    return kNotReady;
  }
  int result = kSuccess;
  for (const Copy& copy : event->stream->copies) {
    const auto* const found = Find(copy.device, copy.length);
    if (found == nullptr || IsFreed(found->second)) result = kIllegalAddress;
    if (result == kSuccess) result = Do(copy);
  }
  event->stream->copies.clear();
  if (result != kSuccess) g_lost = true;  // such an error sticks
  return result;
}
// Attributes: 1 context, 2 type of memory, 8 managed, 9 device, 11 start of the range, 12 its size.
FAKE int cuPointerGetAttributes(unsigned count, const int* attributes, void** values,
                                uint64_t address) {
  const std::lock_guard lock(g_mutex);
  const auto* const found = Find(address, 1);
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case 1:
        *static_cast<void**>(values[i]) =
            found == nullptr || g_contexts.empty() ? nullptr : *g_contexts.begin();
        break;
      case 2:
        *static_cast<unsigned*>(values[i]) = found == nullptr ? 0 : 2;
        break;
      case 8:
        *static_cast<unsigned*>(values[i]) = 0;
        break;
      case 9:
        *static_cast<int*>(values[i]) = found == nullptr ? -2 : found->second.device;
        break;
      case 11:
        *static_cast<uint64_t*>(values[i]) = found == nullptr ? 0 : found->first;
        break;
      case 12:
        *static_cast<size_t*>(values[i]) = found == nullptr ? 0 : found->second.length;
        break;
      default:
        return kInvalidValue;
    }
  }
  return kSuccess;
}
