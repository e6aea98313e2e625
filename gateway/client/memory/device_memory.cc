// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/memory/device_memory.h"

#include <dlfcn.h>

#include <cstring>

#include "gateway/client/process/in_process.h"
#include "gateway/client/process/libc_symbols.h"
#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/process/report.h"

namespace rocegw::client {

namespace {

// Part of cuda.h, which is not on the machines that build. HIP's functions take the same arguments.
using Pointer = unsigned long long;
using Allocation = unsigned long long;
struct ContextObject;
constexpr int kSuccess = 0;
constexpr unsigned kDeviceMemory = 2;  // CU_MEMORYTYPE_DEVICE, hipMemoryTypeDevice
constexpr int kPosixDescriptor = 1;
enum Attribute : int {
  kContext = 1,
  kMemoryType = 2,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kRangeStart = 11,
  kRangeSize = 12,
};

struct Driver {
  rocegw_device_kind kind;
  int (*attributes)(unsigned count, const int* attributes, void** values, Pointer address);
  int (*device)(int* device, int ordinal);
  int (*uuid)(void* uuid, int device);
  int (*push)(ContextObject* context);
  int (*pop)(ContextObject** context);
  int (*ipc_handle)(void* handle, Pointer address);
  int (*copy_to_device)(Pointer to, const void* from, size_t length);
  // nullptr in older libraries:
  int (*retain)(Allocation* allocation, void* address);
  int (*release)(Allocation allocation);
  int (*export_to)(void* descriptor, Allocation allocation, int type, unsigned long long flags);
};

// Names of the functions in the order of Driver.
struct Names {
  rocegw_device_kind kind;
  rocegw_device_kind with_descriptor;
  const char* libraries[2];
  const char* functions[10];
};
constexpr Names kDrivers[] = {
    {ROCEGW_DEVICE_CUDA,
     ROCEGW_DEVICE_CUDA_DESCRIPTOR,
     {"libcuda.so.1", nullptr},
     {"cuPointerGetAttributes", "cuDeviceGet", "cuDeviceGetUuid", "cuCtxPushCurrent_v2",
      "cuCtxPopCurrent_v2", "cuIpcGetMemHandle", "cuMemcpyHtoD_v2", "cuMemRetainAllocationHandle",
      "cuMemRelease", "cuMemExportToShareableHandle"}},
    // Earlier releases have other numbers for kinds of memory.
    {ROCEGW_DEVICE_HIP,
     ROCEGW_DEVICE_HIP_DESCRIPTOR,
     {"libamdhip64.so.7", "libamdhip64.so.6"},
     {"hipDrvPointerGetAttributes", "hipDeviceGet", "hipDeviceGetUuid", "hipCtxPushCurrent",
      "hipCtxPopCurrent", "hipIpcGetMemHandle", "hipMemcpyHtoD", "hipMemRetainAllocationHandle",
      "hipMemRelease", "hipMemExportToShareableHandle"}}};

// Returns nullptr if the program has not loaded such a library.
void* Loaded(const Names& names) {
  for (const char* const name : names.libraries) {
    void* const library = name == nullptr ? nullptr : OpenLibrary(name, RTLD_NOW | RTLD_NOLOAD);
    if (library != nullptr) return library;
  }
  return nullptr;
}

template <typename Function>
bool LookUp(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(LibcDlsym()(library, name));
  return *function != nullptr;
}

// Returns false if the program has not loaded the library.
bool Load(const Names& names, Driver* driver) {
  void* const library = Loaded(names);
  if (library == nullptr) return false;
  driver->kind = names.kind;
  LookUp(library, names.functions[7], &driver->retain);
  LookUp(library, names.functions[8], &driver->release);
  LookUp(library, names.functions[9], &driver->export_to);
  return LookUp(library, names.functions[0], &driver->attributes) &&
         LookUp(library, names.functions[1], &driver->device) &&
         LookUp(library, names.functions[2], &driver->uuid) &&
         LookUp(library, names.functions[3], &driver->push) &&
         LookUp(library, names.functions[4], &driver->pop) &&
         LookUp(library, names.functions[5], &driver->ipc_handle) &&
         LookUp(library, names.functions[6], &driver->copy_to_device);
}

// Context of an allocation as the calling thread's current one.
class Current {
 public:
  Current(const Driver& driver, ContextObject* context)
      : driver_(driver), pushed_(context != nullptr && driver.push(context) == kSuccess) {}
  ~Current() {
    ContextObject* popped = nullptr;
    if (pushed_) driver_.pop(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Driver& driver_;
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

bool Describe(const Driver& driver, Pointer address, Described* about) {
  *about = {};
  const int asked[] = {kContext, kMemoryType, kIsManaged, kDeviceOrdinal, kRangeStart, kRangeSize};
  void* values[] = {&about->context, &about->type,  &about->managed,
                    &about->ordinal, &about->start, &about->size};
  return driver.attributes(sizeof asked / sizeof *asked, asked, values, address) == kSuccess;
}

// Finds the library that the address belongs to. Managed memory is a driver's, wherever it is now.
bool FindDriver(Pointer address, Driver* driver, const Names** names, Described* about) {
  for (const Names& one : kDrivers) {
    if (!Load(one, driver) || !Describe(*driver, address, about)) continue;
    *names = &one;
    if (about->managed != 0 || about->type == kDeviceMemory) return true;
  }
  return false;
}

// Exports memory of cuMemCreate that is mapped at the range. Returns -1 if it is none, if the
// program did not ask for exportable memory, or if the range has several allocations.
int Export(const Driver& driver, const Described& about) {
  if (driver.retain == nullptr || driver.release == nullptr || driver.export_to == nullptr) {
    return -1;
  }
  Allocation allocation = 0;
  if (driver.retain(&allocation, reinterpret_cast<void*>(about.start)) != kSuccess) return -1;
  int descriptor = -1;
  const int result = driver.export_to(&descriptor, allocation, kPosixDescriptor, 0);
  driver.release(allocation);
  return result == kSuccess ? descriptor : -1;
}

}  // namespace

bool HasDeviceLibrary() {
  for (const Names& names : kDrivers) {
    if (Loaded(names) != nullptr) return true;
  }
  return false;
}

MemoryPlace FindDeviceMemory(uint64_t address, rocegw_import_device* request, int* descriptor) {
  *descriptor = -1;
  Driver driver;
  const Names* names = nullptr;
  Described about;
  if (!FindDriver(address, &driver, &names, &about)) return MemoryPlace::kHost;
  if (about.managed != 0) {
    Debug("managed memory at %#llx moves between processor and GPU, and is not registered",
          static_cast<unsigned long long>(address));
    return MemoryPlace::kUnreachable;
  }
  int device = 0;
  const Current current(driver, about.context);
  request->kind = static_cast<uint32_t>(names->kind);
  request->address = about.start;
  request->length = about.size;
  const bool known = driver.device(&device, about.ordinal) == kSuccess &&
                     driver.uuid(request->device, device) == kSuccess;
  if (known && GatewayIsInProcess()) return MemoryPlace::kDevice;
  if (known && driver.ipc_handle(request->handle, about.start) == kSuccess) {
    return MemoryPlace::kDevice;
  }
  if (known) *descriptor = Export(driver, about);
  if (*descriptor >= 0) {
    request->kind = static_cast<uint32_t>(names->with_descriptor);
    return MemoryPlace::kDevice;
  }
  Debug("device memory at %#llx has neither an IPC handle nor an exportable one",
        static_cast<unsigned long long>(address));
  return MemoryPlace::kUnreachable;
}

void CloseDeviceDescriptor(int descriptor) {
  if (descriptor >= 0) RawSyscall(SYS_close, static_cast<long>(descriptor));
}

bool CopyToDevice(uint8_t* to, const uint8_t* from, uint32_t length) {
  Driver driver;
  const Names* names = nullptr;
  Described about;
  const auto address = reinterpret_cast<Pointer>(to);
  if (!FindDriver(address, &driver, &names, &about) || about.type != kDeviceMemory) return false;
  const Current current(driver, about.context);
  return driver.copy_to_device(address, from, length) == kSuccess;
}

}  // namespace rocegw::client
