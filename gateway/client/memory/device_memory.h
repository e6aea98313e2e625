// SPDX-License-Identifier: Apache-2.0
// Memory of GPUs in this process, through CUDA's driver library if the program has loaded it. The
// library loads nothing itself and links nothing. Control path, and small receives; any thread.
#pragma once

#include <cstdint>

#include "gateway/client/session/session.h"

namespace rocegw::client {

// Returns true if the program has loaded CUDA.
bool HasDeviceLibrary();

// Result of a look at an address.
enum class MemoryPlace : uint8_t {
  kHost,
  kDevice,
  kUnreachable,  // device memory that cannot be handed to another process
};
// Fills in all of the request but its header if the address is of device memory.
MemoryPlace FindDeviceMemory(uint64_t address, rocegw_import_device* request);

// Copies to or from device memory with the program's own CUDA. Returns false if CUDA refuses.
bool CopyToDevice(uint8_t* to, const uint8_t* from, uint32_t length);

}  // namespace rocegw::client
