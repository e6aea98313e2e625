// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU, by the driver's library without its header.
#pragma once

#include <functional>

#include "tests/interop/rdma_check/foreign_memory.h"

namespace rocegw::interop {

// Loads the driver's library of a kind. Throws Failure where there is none.
void LoadDeviceLibrary(MemoryKind kind);

// See WithMemory.
void WithDevice(MemoryKind kind, uint64_t seed, const std::function<void(ForeignMemory&)>& use);

}  // namespace rocegw::interop
