// SPDX-License-Identifier: Apache-2.0
// Drivers of GPUs without a GPU, for tests: libcuda.so.1, and with FAKE_HIP libamdhip64.so.6.
//
// Allocations are memfds behind addresses that fault when a processor touches them. Copies are done
// when their event is asked for, after as many "not ready" as a test wants, and from their last
// byte to their first; so a caller that uses memory too early gets wrong bytes. A handle names a
// descriptor of the process that made it. As with the real libraries, one context alone of a
// process opens handles of another process on a device, an error of a copy sticks to its context,
// and the end of a context frees what it had. An allocation that is freed fails copies of every
// process. Two devices, whose file is a descriptor of the program: threads with another table of
// descriptors get errors. Tests inject errors, waits and the loss of the device (fake_cuda.h).
#include "tests/support/fake_cuda/fake_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/support/fake_cuda/fake_state.h"

using namespace rocegw::fake_cuda;  // NOLINT: the state is this library's own

namespace {

int Do(const Copy& copy) {
  const auto* const found = Find(copy.device, copy.length);
  if (found == nullptr || !found->second.reachable) return kIllegalAddress;
  const int descriptor = found->second.memory->descriptor;
  // A short piece at a time, from the end.
  for (size_t left = copy.length; left != 0;) {
    const size_t piece = std::min<size_t>(left, 1000);
    left -= piece;
    const auto offset = static_cast<off_t>(copy.device + left - found->first);
    const ssize_t moved = copy.to_device ? pwrite(descriptor, copy.host + left, piece, offset)
                                         : pread(descriptor, copy.host + left, piece, offset);
    if (moved != static_cast<ssize_t>(piece)) return kIllegalAddress;
  }
  return kSuccess;
}

// A freed allocation has no bytes, and a write must not give it new ones.
bool IsFreed(const Mapping& mapping) { return lseek(mapping.memory->descriptor, 0, SEEK_END) == 0; }

int BeginCopy(const Copy& copy, Stream* stream) {
  const std::lock_guard lock(g_mutex);
  if (const int error = Usable()) return error;
  if (const int error = Usable(stream->context)) return error;
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

Context* MakeContext(int device) {
  const NoLeaks no_leaks;
  auto* const made = new Context{device, false, {}};
  g_contexts.insert(made);
  return made;
}

// Frees what a context has. Its address stays unused, so that a late user is found.
void End(Context* context) {
  g_contexts.erase(context);
  for (void* const memory : context->pinned) free(memory);
  g_counts.pinned -= static_cast<int>(context->pinned.size());
  context->pinned.clear();
  for (auto next = g_mappings.begin(); next != g_mappings.end();) {
    const auto mapping = next++;
    if (mapping->second.context == context && !mapping->second.of_create) Drop(mapping);
  }
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

FAKE int NAME(cuInit, hipInit)(unsigned) {
  const std::lock_guard lock(g_mutex);
  if (const char* const waits = getenv("FAKE_CUDA_WAITS")) g_waits = atoi(waits);
  if (g_file < 0) {
    struct stat file {};
    g_file = memfd_create("fake-gpu", MFD_CLOEXEC);
    if (fstat(g_file, &file) != 0) return kNoFile;
    g_inode = file.st_ino;
  }
  return HasFile() ? kSuccess : kNoFile;
}
FAKE int NAME(cuDeviceGetCount, hipGetDeviceCount)(int* count) {
  *count = kDevices;
  return kSuccess;
}
FAKE int NAME(cuDeviceGet, hipDeviceGet)(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < kDevices ? kSuccess : kInvalidValue;
}
FAKE int NAME(cuDeviceGetUuid, hipDeviceGetUuid)(uint8_t* uuid, int device) {
  memset(uuid, 0x40 + device, 16);
  return kSuccess;
}
FAKE int NAME(cuCtxCreate_v2, hipCtxCreate)(Context** made, unsigned, int device) {
  const std::lock_guard lock(g_mutex);
  if (g_lost) return kLaunchFailed;
  if (!HasFile()) return kNoFile;
  *made = MakeContext(device);
  g_current.push_back(*made);
  return kSuccess;
}
FAKE int NAME(cuCtxDestroy_v2, hipCtxDestroy)(Context* context) {
  const std::lock_guard lock(g_mutex);
  if (!g_contexts.contains(context)) return kInvalidContext;
  End(context);
  return kSuccess;
}
FAKE void FakeCudaEndOthers() {
  const std::lock_guard lock(g_mutex);
  const std::set<Context*> all = g_contexts;
  for (Context* const context : all) {
    if (std::find(g_current.begin(), g_current.end(), context) == g_current.end()) End(context);
  }
  std::fill(std::begin(g_primary), std::end(g_primary), nullptr);
}
FAKE int NAME(cuCtxPushCurrent_v2, hipCtxPushCurrent)(Context* context) {
  const std::lock_guard lock(g_mutex);
  if (!HasFile()) return kNoFile;
  if (!g_contexts.contains(context)) return kContextIsDestroyed;
  g_current.push_back(context);
  return kSuccess;
}
FAKE int NAME(cuCtxPopCurrent_v2, hipCtxPopCurrent)(Context** context) {
  if (g_current.empty()) return kInvalidContext;
  *context = g_current.back();
  g_current.pop_back();
  return kSuccess;
}
FAKE int NAME(cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain)(Context** context, int device) {
  const std::lock_guard lock(g_mutex);
  if (device >= kDevices) return kInvalidValue;
  if (!HasFile()) return kNoFile;
  if (g_primary[device] == nullptr) g_primary[device] = MakeContext(device);
  *context = g_primary[device];
  return kSuccess;
}
FAKE int NAME(cuDevicePrimaryCtxRelease_v2, hipDevicePrimaryCtxRelease)(int) { return kSuccess; }

FAKE int NAME(cuMemHostAlloc, hipHostMalloc)(void** memory, size_t length, unsigned) {
  const std::lock_guard lock(g_mutex);
  const NoLeaks no_leaks;
  if (const int error = Usable()) return error;
  *memory = malloc(length);
  if (*memory == nullptr) return 2;
  g_current.back()->pinned.insert(*memory);
  ++g_counts.pinned;
  return kSuccess;
}
FAKE int NAME(cuMemFreeHost, hipHostFree)(void* memory) {
  const std::lock_guard lock(g_mutex);
  if (const int error = Usable()) return error;
  if (g_current.back()->pinned.erase(memory) == 0) return kInvalidValue;
  --g_counts.pinned;
  free(memory);
  return kSuccess;
}
FAKE int NAME(cuStreamCreate, hipStreamCreateWithFlags)(Stream** stream, unsigned) {
  const std::lock_guard lock(g_mutex);
  const NoLeaks no_leaks;
  if (const int error = Usable()) return error;
  *stream = new Stream{g_current.back(), {}};
  return kSuccess;
}
FAKE int NAME(cuStreamDestroy_v2, hipStreamDestroy)(Stream* stream) {
  delete stream;
  return kSuccess;
}
FAKE int NAME(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(uint64_t to, const void* from,
                                                        size_t length, Stream* stream) {
  return BeginCopy({true, to, static_cast<uint8_t*>(const_cast<void*>(from)), length}, stream);
}
FAKE int NAME(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void* to, uint64_t from, size_t length,
                                                        Stream* stream) {
  return BeginCopy({false, from, static_cast<uint8_t*>(to), length}, stream);
}
FAKE int NAME(cuMemcpyHtoD_v2, hipMemcpyHtoD)(uint64_t to, const void* from, size_t length) {
  return CopyNow({true, to, static_cast<uint8_t*>(const_cast<void*>(from)), length});
}
FAKE int NAME(cuMemcpyDtoH_v2, hipMemcpyDtoH)(void* to, uint64_t from, size_t length) {
  return CopyNow({false, from, static_cast<uint8_t*>(to), length});
}
FAKE int NAME(cuEventCreate, hipEventCreateWithFlags)(Event** event, unsigned) {
  const NoLeaks no_leaks;
  *event = new Event;
  return kSuccess;
}
FAKE int NAME(cuEventDestroy_v2, hipEventDestroy)(Event* event) {
  delete event;
  return kSuccess;
}
FAKE int NAME(cuEventRecord, hipEventRecord)(Event* event, Stream* stream) {
  const std::lock_guard lock(g_mutex);
  if (const int error = Usable(stream->context)) return error;
  ++g_counts.events;
  event->stream = stream;
  event->waits = g_waits;
  return kSuccess;
}
FAKE int NAME(cuEventQuery, hipEventQuery)(Event* event) {
  const std::lock_guard lock(g_mutex);
  Context* const context = event->stream == nullptr ? nullptr : event->stream->context;
  if (const int error = Usable(context)) return error;
  // Other waits from now on count for copies that are under way.
  if (event->waits < 0) event->waits = g_waits;
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
  if (result != kSuccess) context->failed = true;  // such an error sticks
  return result;
}

namespace {

// Attributes: 1 context, 2 type of memory, 8 managed, 9 device, 11 start of the range, 12 its size.
int Attribute(void* value, int attribute, uint64_t address) {
  const auto* const found = Find(address, 1);
  const bool managed = IsManaged(address);
  switch (attribute) {
    case 1:
      *static_cast<void**>(value) = found == nullptr ? nullptr : found->second.context;
      return kSuccess;
    case 2:
      *static_cast<unsigned*>(value) = found != nullptr ? 2 : managed ? 1 : 0;
      return kSuccess;
    case 8:
      *static_cast<unsigned*>(value) = managed ? 1 : 0;
      return kSuccess;
    case 9:
      *static_cast<int*>(value) = found == nullptr ? -2 : found->second.device;
      return kSuccess;
    case 11:
      *static_cast<uint64_t*>(value) = found == nullptr ? 0 : found->first;
      return kSuccess;
    case 12:
      *static_cast<size_t*>(value) = found == nullptr ? 0 : found->second.length;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

}  // namespace

FAKE int NAME(cuPointerGetAttribute, hipPointerGetAttribute)(void* value, int attribute,
                                                             uint64_t address) {
  const std::lock_guard lock(g_mutex);
  return Attribute(value, attribute, address);
}
FAKE int NAME(cuPointerGetAttributes, hipDrvPointerGetAttributes)(unsigned count,
                                                                  const int* attributes,
                                                                  void** values, uint64_t address) {
  const std::lock_guard lock(g_mutex);
  for (unsigned i = 0; i < count; ++i) {
    if (const int error = Attribute(values[i], attributes[i], address)) return error;
  }
  return kSuccess;
}
