// SPDX-License-Identifier: Apache-2.0
// CRC kernels, one per source file; crc32.cc chooses. An x86 kernel may be called only if the CPU
// has the named instructions.
#pragma once

#include "gateway/wire/crc/crc32.h"

namespace rocegw::wire::crc32 {

extern const Kernel kTableKernel;  // slicing by eight; any CPU
#if defined(__x86_64__)
extern const Kernel kPclmulKernel;   // SSSE3, PCLMULQDQ
extern const Kernel kVpclmulKernel;  // AVX-512 F, BW, VL, VBMI, VPCLMULQDQ
#endif

// Parts of the table kernel, used by the others for short ends.
uint32_t TableUpdate(uint32_t state, const uint8_t* bytes, size_t length);
uint32_t TableCopy(uint32_t state, uint8_t* destination, const uint8_t* source, size_t length);

// Implements Kernel::cover with the other three functions, for kernels without a faster way.
inline uint32_t CoverBy(const Kernel& kernel, const FrameFields& fields, const uint8_t* bytes,
                        size_t length, size_t zeros) {
  const FrameWords frame = MakeFrame(fields);
  uint32_t state = kernel.update(0, reinterpret_cast<const uint8_t*>(frame.w), kFrameBytes);
  state = kernel.update(state, bytes, length);
  return zeros == 0 ? state : kernel.multiply(state, ShiftFactor(zeros));
}

}  // namespace rocegw::wire::crc32
