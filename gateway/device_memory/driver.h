// SPDX-License-Identifier: Apache-2.0
// Driver library of a maker of GPUs as the gateway uses it, loaded at the first registration of
// device memory: no gateway depends on it when it is built or started. The types are CUDA's,
// declared here because its header is not on the machines that build. HIP's functions take the same
// arguments in the same registers under other names. Calls may take seconds (cuInit) or wait for a
// device, so no thread that others need makes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "gateway/base/status.h"

namespace rocegw::device_memory {

using CuResult = int;  // enum CUresult
using CuDevice = int;
using CuPointer = unsigned long long;
using CuAllocation = unsigned long long;  // CUmemGenericAllocationHandle
using CuContext = struct CuContextObject*;
using CuStream = struct CuStreamObject*;
using CuEvent = struct CuEventObject*;
struct CuUuid {
  uint8_t bytes[16];
};
struct CuIpcHandle {
  uint8_t bytes[64];
};
struct CuAccess {     // CUmemAccessDesc
  int location_type;  // 1: a device
  int location;
  int rights;  // 3: reading and writing
};

inline constexpr CuResult kCuSuccess = 0;
inline constexpr CuResult kCuNotReady = 600;
inline constexpr unsigned kCuStreamNonBlocking = 1;
inline constexpr unsigned kCuEventDisableTiming = 2;
inline constexpr unsigned kCuIpcLazyPeerAccess = 1;
inline constexpr unsigned kCuHostPortable = 1;
inline constexpr int kCuPosixDescriptor = 1;
inline constexpr int kCuAttributeContext = 1;

// X(field, name in CUDA, name in HIP, parameters)
#define ROCEGW_DRIVER_FUNCTIONS(X)                                                                \
  X(init, cuInit, hipInit, (unsigned))                                                            \
  X(device_count, cuDeviceGetCount, hipGetDeviceCount, (int*))                                    \
  X(device, cuDeviceGet, hipDeviceGet, (CuDevice*, int))                                          \
  X(device_uuid, cuDeviceGetUuid, hipDeviceGetUuid, (CuUuid*, CuDevice))                          \
  X(create_context, cuCtxCreate_v2, hipCtxCreate, (CuContext*, unsigned, CuDevice))               \
  X(destroy_context, cuCtxDestroy_v2, hipCtxDestroy, (CuContext))                                 \
  X(push_context, cuCtxPushCurrent_v2, hipCtxPushCurrent, (CuContext))                            \
  X(pop_context, cuCtxPopCurrent_v2, hipCtxPopCurrent, (CuContext*))                              \
  X(open_handle, cuIpcOpenMemHandle_v2, hipIpcOpenMemHandle, (CuPointer*, CuIpcHandle, unsigned)) \
  X(close_handle, cuIpcCloseMemHandle, hipIpcCloseMemHandle, (CuPointer))                         \
  X(address_range, cuMemGetAddressRange_v2, hipMemGetAddressRange,                                \
    (CuPointer*, size_t*, CuPointer))                                                             \
  X(allocate_host, cuMemHostAlloc, hipHostMalloc, (void**, size_t, unsigned))                     \
  X(free_host, cuMemFreeHost, hipHostFree, (void*))                                               \
  X(create_stream, cuStreamCreate, hipStreamCreateWithFlags, (CuStream*, unsigned))               \
  X(destroy_stream, cuStreamDestroy_v2, hipStreamDestroy, (CuStream))                             \
  X(copy_to_device, cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync,                                     \
    (CuPointer, const void*, size_t, CuStream))                                                   \
  X(copy_to_host, cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync, (void*, CuPointer, size_t, CuStream)) \
  X(create_event, cuEventCreate, hipEventCreateWithFlags, (CuEvent*, unsigned))                   \
  X(destroy_event, cuEventDestroy_v2, hipEventDestroy, (CuEvent))                                 \
  X(record_event, cuEventRecord, hipEventRecord, (CuEvent, CuStream))                             \
  X(query_event, cuEventQuery, hipEventQuery, (CuEvent))

// Functions that an older library lacks: memory of another process by a descriptor (CUDA 10.2), and
// contexts of this process.
#define ROCEGW_DRIVER_OPTIONAL_FUNCTIONS(X)                                                      \
  X(import, cuMemImportFromShareableHandle, hipMemImportFromShareableHandle,                     \
    (CuAllocation*, void*, int))                                                                 \
  X(release, cuMemRelease, hipMemRelease, (CuAllocation))                                        \
  X(reserve, cuMemAddressReserve, hipMemAddressReserve,                                          \
    (CuPointer*, size_t, size_t, CuPointer, unsigned long long))                                 \
  X(free_reserved, cuMemAddressFree, hipMemAddressFree, (CuPointer, size_t))                     \
  X(map, cuMemMap, hipMemMap, (CuPointer, size_t, size_t, CuAllocation, unsigned long long))     \
  X(unmap, cuMemUnmap, hipMemUnmap, (CuPointer, size_t))                                         \
  X(set_access, cuMemSetAccess, hipMemSetAccess, (CuPointer, size_t, const CuAccess*, size_t))   \
  X(attribute, cuPointerGetAttribute, hipPointerGetAttribute, (void*, int, CuPointer))           \
  X(retain_primary, cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain, (CuContext*, CuDevice)) \
  X(release_primary, cuDevicePrimaryCtxRelease_v2, hipDevicePrimaryCtxRelease, (CuDevice))

enum class DriverKind : uint8_t { kCuda, kHip };
constexpr const char* NameOf(DriverKind kind) { return kind == DriverKind::kCuda ? "CUDA" : "HIP"; }

// Names of the drivers' libraries (Driver::Load), by kind.
struct DriverLibraries {
  std::string cuda = "libcuda.so.1";
  std::string hip = "libamdhip64.so.7,libamdhip64.so.6";
};
// Returns true if this process has loaded one of them.
bool IsLoaded(const DriverLibraries& libraries);

class Driver {
 public:
  // Loads and initialises a library by its names, which are divided by commas and tried one after
  // the other. ENODEV: there is none, or it finds no device; the text says why. The library stays
  // loaded.
  static StatusOr<std::shared_ptr<const Driver>> Load(DriverKind kind, const std::string& names);

  DriverKind kind = DriverKind::kCuda;
// NOLINTNEXTLINE(bugprone-macro-parentheses): a list of parameters
#define ROCEGW_DRIVER_MEMBER(field, cuda, hip, parameters) CuResult(*field) parameters = nullptr;
  ROCEGW_DRIVER_FUNCTIONS(ROCEGW_DRIVER_MEMBER)
  ROCEGW_DRIVER_OPTIONAL_FUNCTIONS(ROCEGW_DRIVER_MEMBER)
#undef ROCEGW_DRIVER_MEMBER

  // Returns a status whose text begins with the library's name.
  Status Error(int error, const std::string& text) const {
    return {error, std::string(NameOf(kind)) + ": " + text};
  }
  // Returns true if the library opens descriptors of other processes' memory.
  bool opens_descriptors() const {
    return import != nullptr && release != nullptr && reserve != nullptr &&
           free_reserved != nullptr && map != nullptr && unmap != nullptr && set_access != nullptr;
  }
  // Returns true if the library tells about memory of this process.
  bool knows_own_memory() const {
    return attribute != nullptr && retain_primary != nullptr && release_primary != nullptr;
  }
  // Returns the device with that UUID. ENODEV: this process has none.
  StatusOr<CuDevice> Find(const CuUuid& uuid) const;
};

// Makes a context the calling thread's current one. `ok`: it is.
class CurrentContext {
 public:
  CurrentContext(const Driver& driver, CuContext context)
      : driver_(driver), result_(driver.push_context(context)) {}
  ~CurrentContext() {
    CuContext popped = nullptr;
    if (ok()) driver_.pop_context(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  bool ok() const { return result_ == kCuSuccess; }

 private:
  const Driver& driver_;
  CuResult result_;
};

}  // namespace rocegw::device_memory
