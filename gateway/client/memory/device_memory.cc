// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/memory/device_memory.h"

#include <dlfcn.h>

#include <cstring>

#include "gateway/client/process/in_process.h"
#include "gateway/client/process/libc_symbols.h"
#include "gateway/client/process/report.h"

namespace rocegw::client {

namespace {

// Part of cuda.h, which is not on the machines that build.
using Pointer = unsigned long long;
struct ContextObject;
constexpr int kSuccess = 0;
constexpr unsigned kDeviceMemory = 2;  // CU_MEMORYTYPE_DEVICE
enum Attribute : int {
  kContext = 1,
  kMemoryType = 2,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kRangeStart = 11,
  kRangeSize = 12,
};

struct Cuda {
  int (*attributes)(unsigned count, const int* attributes, void** values, Pointer address);
  int (*device)(int* device, int ordinal);
  int (*uuid)(void* uuid, int device);
  int (*push)(ContextObject* context);
  int (*pop)(ContextObject** context);
  int (*ipc_handle)(void* handle, Pointer address);
  int (*copy_to_device)(Pointer to, const void* from, size_t length);
};

template <typename Function>
bool LookUp(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(LibcDlsym()(library, name));
  return *function != nullptr;
}

// Returns false if the program has not loaded CUDA.
bool Load(Cuda* cuda) {
  void* const library = OpenLibrary("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library != nullptr && LookUp(library, "cuPointerGetAttributes", &cuda->attributes) &&
         LookUp(library, "cuDeviceGet", &cuda->device) &&
         LookUp(library, "cuDeviceGetUuid", &cuda->uuid) &&
         LookUp(library, "cuCtxPushCurrent_v2", &cuda->push) &&
         LookUp(library, "cuCtxPopCurrent_v2", &cuda->pop) &&
         LookUp(library, "cuIpcGetMemHandle", &cuda->ipc_handle) &&
         LookUp(library, "cuMemcpyHtoD_v2", &cuda->copy_to_device);
}

// Context of an allocation as the calling thread's current one.
class Current {
 public:
  Current(const Cuda& cuda, ContextObject* context)
      : cuda_(cuda), pushed_(context != nullptr && cuda.push(context) == kSuccess) {}
  ~Current() {
    ContextObject* popped = nullptr;
    if (pushed_) cuda_.pop(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Cuda& cuda_;
  const bool pushed_;
};

struct Described {
  ContextObject* context;
  unsigned type;
  unsigned managed;
  int ordinal;
  Pointer start;
  size_t size;
};

bool Describe(const Cuda& cuda, Pointer address, Described* about) {
  *about = {};
  const int asked[] = {kContext, kMemoryType, kIsManaged, kDeviceOrdinal, kRangeStart, kRangeSize};
  void* values[] = {&about->context, &about->type,  &about->managed,
                    &about->ordinal, &about->start, &about->size};
  return cuda.attributes(sizeof asked / sizeof *asked, asked, values, address) == kSuccess;
}

}  // namespace

bool HasDeviceLibrary() { return OpenLibrary("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr; }

MemoryPlace FindDeviceMemory(uint64_t address, rocegw_import_device* request) {
  Cuda cuda;
  Described about;
  if (!Load(&cuda) || !Describe(cuda, address, &about) || about.type != kDeviceMemory) {
    return MemoryPlace::kHost;
  }
  int device = 0;
  const Current current(cuda, about.context);
  request->kind = ROCEGW_DEVICE_CUDA;
  request->address = about.start;
  request->length = about.size;
  // The threads of a gateway in this process have a descriptor table of their own
  // (gateway/inprocess/own_descriptors.h), in which CUDA does not find its devices.
  if (GatewayIsInProcess()) return MemoryPlace::kUnreachable;
  const bool handed = about.managed == 0 && cuda.device(&device, about.ordinal) == kSuccess &&
                      cuda.uuid(request->device, device) == kSuccess &&
                      cuda.ipc_handle(request->handle, about.start) == kSuccess;
  if (handed) return MemoryPlace::kDevice;
  Debug("device memory at %#llx has no IPC handle (managed, or of cuMemCreate)",
        static_cast<unsigned long long>(address));
  return MemoryPlace::kUnreachable;
}

bool CopyToDevice(uint8_t* to, const uint8_t* from, uint32_t length) {
  Cuda cuda;
  Described about;
  const auto address = reinterpret_cast<Pointer>(to);
  if (!Load(&cuda) || !Describe(cuda, address, &about) || about.type != kDeviceMemory) return false;
  const Current current(cuda, about.context);
  return cuda.copy_to_device(address, from, length) == kSuccess;
}

}  // namespace rocegw::client
