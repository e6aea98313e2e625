// SPDX-License-Identifier: Apache-2.0
// Implementations of the CRC functions of icrc.h, and the choice between them. Any thread may call
// a kernel. UseKernel is for tests and benchmarks; no other thread may compute meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gateway/wire/crc/icrc_frame.h"

namespace rocegw::wire::crc32 {

struct Kernel {
  const char* name;
  // Returns the state after `length` bytes.
  uint32_t (*update)(uint32_t state, const uint8_t* bytes, size_t length);
  // Returns the same while copying the bytes. Reads each source byte once.
  uint32_t (*copy)(uint32_t state, uint8_t* destination, const uint8_t* source, size_t length);
  // Returns the state, from 0, after the masked headers of a datagram, `length` more bytes and
  // `zeros` zero bytes.
  uint32_t (*cover)(const FrameFields& fields, const uint8_t* bytes, size_t length, size_t zeros);
  // Returns a * b * x modulo the polynomial (the result of one carry-less multiplication).
  uint32_t (*multiply)(uint32_t a, uint32_t b);
};

// Returns the kernels that this CPU can run, fastest first; the last one is "table".
std::span<const Kernel* const> SupportedKernels();

const Kernel& ActiveKernel();
void UseKernel(const Kernel& kernel);

// Return the second factor of Kernel::multiply that appends `length` zero bytes to a state, or
// removes 32 bits and `length` bytes. Tabulated for lengths that fit a packet, computed beyond.
uint32_t ShiftFactor(size_t length);
uint32_t UnshiftFactor(size_t length);

}  // namespace rocegw::wire::crc32
