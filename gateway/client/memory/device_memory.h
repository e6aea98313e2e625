// SPDX-License-Identifier: Apache-2.0
// Memory of GPUs in this process, through the driver's library (CUDA, HIP) if the program has
// loaded one. Loads nothing itself and links nothing. Control path, and small receives; any thread.
#pragma once

#include <cstdint>

#include "gateway/client/session/session.h"

namespace rocegw::client {

// Returns true if the program has loaded a driver's library.
bool HasDeviceLibrary();

// Result of a look at an address.
enum class MemoryPlace : uint8_t {
  kHost,
  kDevice,
  kUnreachable,  // memory that cannot be handed to another process, or that moves (managed memory)
};
// Fills in all of the request but its header if the address is of device memory. *descriptor: the
// descriptor that must come with the request, which the caller closes with CloseDeviceDescriptor;
// -1: none.
MemoryPlace FindDeviceMemory(uint64_t address, rocegw_import_device* request, int* descriptor);
void CloseDeviceDescriptor(int descriptor);

// Copies to device memory with the program's own driver. Returns false if the driver refuses.
bool CopyToDevice(uint8_t* to, const uint8_t* from, uint32_t length);

}  // namespace rocegw::client
