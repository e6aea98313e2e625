// SPDX-License-Identifier: Apache-2.0
// The implementations behind the CRC functions of icrc.h, and which of them is in use. Any thread
// may call a kernel; UseKernel is for tests and benchmarks, while no other thread computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gateway/wire/crc/icrc_frame.h"

namespace rocegw::wire::crc32 {

struct Kernel {
  const char* name;
  // State after `length` bytes.
  uint32_t (*update)(uint32_t state, const uint8_t* bytes, size_t length);
  // The same, of bytes copied in the same pass. Each byte is read once from the source.
  uint32_t (*copy)(uint32_t state, uint8_t* destination, const uint8_t* source, size_t length);
  // State, from 0, after the masked headers of a datagram, `length` more bytes and `zeros` zero
  // bytes.
  uint32_t (*cover)(const FrameFields& fields, const uint8_t* bytes, size_t length, size_t zeros);
  // a * b * x modulo the polynomial (what one carry-less multiplication yields).
  uint32_t (*multiply)(uint32_t a, uint32_t b);
};

// Those that this CPU can run, fastest first; the last one is "table".
std::span<const Kernel* const> SupportedKernels();

const Kernel& ActiveKernel();
void UseKernel(const Kernel& kernel);

// The second factor of Kernel::multiply that stands for `length` zero bytes behind a state, and for
// 32 bits and `length` bytes taken away again. Tabulated for what fits a packet, computed beyond.
uint32_t ShiftFactor(size_t length);
uint32_t UnshiftFactor(size_t length);

}  // namespace rocegw::wire::crc32
