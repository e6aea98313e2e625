// SPDX-License-Identifier: Apache-2.0
// CUDA's driver library as the gateway uses it, loaded at the first registration of device memory:
// no gateway depends on it when it is built or started. Its types are declared here, since its
// header is not on the machines that build. Calls may take seconds (cuInit) or wait for a device,
// so no thread that others need makes them.
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
using CuContext = struct CuContextObject*;
using CuStream = struct CuStreamObject*;
using CuEvent = struct CuEventObject*;
struct CuUuid {
  uint8_t bytes[16];
};
struct CuIpcHandle {
  uint8_t bytes[64];
};

inline constexpr CuResult kCuSuccess = 0;
inline constexpr CuResult kCuNotReady = 600;
inline constexpr unsigned kCuStreamNonBlocking = 1;
inline constexpr unsigned kCuEventDisableTiming = 2;
inline constexpr unsigned kCuIpcLazyPeerAccess = 1;
inline constexpr unsigned kCuHostPortable = 1;

// X(field, name in the library, parameters)
#define ROCEGW_CUDA_FUNCTIONS(X)                                                      \
  X(init, cuInit, (unsigned))                                                         \
  X(device_count, cuDeviceGetCount, (int*))                                           \
  X(device, cuDeviceGet, (CuDevice*, int))                                            \
  X(device_uuid, cuDeviceGetUuid, (CuUuid*, CuDevice))                                \
  X(create_context, cuCtxCreate_v2, (CuContext*, unsigned, CuDevice))                 \
  X(destroy_context, cuCtxDestroy_v2, (CuContext))                                    \
  X(push_context, cuCtxPushCurrent_v2, (CuContext))                                   \
  X(pop_context, cuCtxPopCurrent_v2, (CuContext*))                                    \
  X(open_handle, cuIpcOpenMemHandle_v2, (CuPointer*, CuIpcHandle, unsigned))          \
  X(close_handle, cuIpcCloseMemHandle, (CuPointer))                                   \
  X(address_range, cuMemGetAddressRange_v2, (CuPointer*, size_t*, CuPointer))         \
  X(allocate_host, cuMemHostAlloc, (void**, size_t, unsigned))                        \
  X(free_host, cuMemFreeHost, (void*))                                                \
  X(create_stream, cuStreamCreate, (CuStream*, unsigned))                             \
  X(destroy_stream, cuStreamDestroy_v2, (CuStream))                                   \
  X(copy_to_device, cuMemcpyHtoDAsync_v2, (CuPointer, const void*, size_t, CuStream)) \
  X(copy_to_host, cuMemcpyDtoHAsync_v2, (void*, CuPointer, size_t, CuStream))         \
  X(create_event, cuEventCreate, (CuEvent*, unsigned))                                \
  X(destroy_event, cuEventDestroy_v2, (CuEvent))                                      \
  X(record_event, cuEventRecord, (CuEvent, CuStream))                                 \
  X(query_event, cuEventQuery, (CuEvent))

class Cuda {
 public:
  // Loads and initialises a library by its name. ENODEV: there is none, or it finds no device;
  // the text says why. The library stays loaded.
  static StatusOr<std::shared_ptr<const Cuda>> Load(const std::string& library);

// NOLINTNEXTLINE(bugprone-macro-parentheses): a list of parameters
#define ROCEGW_CUDA_MEMBER(field, name, parameters) CuResult(*field) parameters = nullptr;
  ROCEGW_CUDA_FUNCTIONS(ROCEGW_CUDA_MEMBER)
#undef ROCEGW_CUDA_MEMBER

  // Returns the device with that UUID. ENODEV: this process has none.
  StatusOr<CuDevice> Find(const CuUuid& uuid) const;
};

// Makes a context the calling thread's current one. `ok`: it is.
class CurrentContext {
 public:
  CurrentContext(const Cuda& cuda, CuContext context)
      : cuda_(cuda), result_(cuda.push_context(context)) {}
  ~CurrentContext() {
    CuContext popped = nullptr;
    if (ok()) cuda_.pop_context(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  bool ok() const { return result_ == kCuSuccess; }

 private:
  const Cuda& cuda_;
  CuResult result_;
};

}  // namespace rocegw::device_memory
