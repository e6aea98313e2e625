// SPDX-License-Identifier: Apache-2.0
// rocegw-memory swap: swap of this host in the memory of other hosts, until the program is asked to
// stop. The kernel swaps to a network block device, or to a loop device over a file of a mount;
// this process serves either.
#pragma once

#include <array>
#include <cstdint>

#include "gateway/far/program/remote_files.h"

namespace rocegw::far {

enum class SwapDevice : uint8_t { kAuto, kNbd, kLoop };

struct SwapArguments {
  SwapDevice device = SwapDevice::kAuto;
  FilesArguments files;  // size: of the swap
  int priority = -1;     // 0 to 32767; -1: the kernel chooses
};

// Returns the exit status.
int Swap(SwapArguments arguments);

// First page of a swap area of so many bytes (mkswap(8), version 1).
std::array<uint8_t, 4096> SwapHeader(uint64_t bytes);

}  // namespace rocegw::far
