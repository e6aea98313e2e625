// SPDX-License-Identifier: Apache-2.0
// Choice of the CRC kernel, powers of x that shift states, and the CRC functions of icrc.h.
#include "gateway/wire/crc/crc32.h"

#include <algorithm>
#include <array>

#include "gateway/wire/channel_header.h"
#include "gateway/wire/crc/crc32_kernels.h"
#include "gateway/wire/crc/crc32_polynomial.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/headers.h"

namespace rocegw::wire {
namespace crc32 {
namespace {

// Length that the tables cover: IP and UDP headers behind the ID, the longest headers of RoCE or of
// a channel, payload.
constexpr size_t kTabulated =
    22 + std::max(kMaxHeaderLength, kMaxPayloadHeaderLength) + kMaxPayload + 1;
using Powers = std::array<uint32_t, kTabulated>;

constexpr uint32_t TimesByte(uint32_t a) {
  for (int bit = 0; bit < 8; ++bit) a = TimesX(a);
  return a;
}
constexpr uint32_t DividedByByte(uint32_t a) {
  for (int bit = 0; bit < 8; ++bit) a = DividedByX(a);
  return a;
}

// Computes x^(8 n - 1); Kernel::multiply adds the missing x.
constexpr Powers MakeShifts() {
  Powers powers{};
  uint32_t power = DividedByX(kOne);
  for (uint32_t& p : powers) {
    p = power;
    power = TimesByte(power);
  }
  return powers;
}
// Computes x^(-8 n - 32 - 1).
constexpr Powers MakeUnshifts() {
  Powers powers{};
  uint32_t power = PowerOfX(kOrder - 33);
  for (uint32_t& p : powers) {
    p = power;
    power = DividedByByte(power);
  }
  return powers;
}

constexpr Powers kShifts = MakeShifts();
constexpr Powers kUnshifts = MakeUnshifts();

#if defined(__x86_64__)
constexpr std::array kAll = {&kVpclmulKernel, &kPclmulKernel, &kTableKernel};

size_t CountUnsupported() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("ssse3")) return 2;
  if (!__builtin_cpu_supports("vpclmulqdq") || !__builtin_cpu_supports("avx512f") ||
      !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512vbmi")) {
    return 1;
  }
  return 0;
}
#else
constexpr std::array kAll = {&kTableKernel};

size_t CountUnsupported() { return 0; }
#endif

// Kernel in use before the constructor below runs: static objects of other files may compute a CRC
// earlier.
constinit const Kernel* active = &kTableKernel;

[[gnu::constructor]] void ChooseKernel() { active = SupportedKernels().front(); }

}  // namespace

std::span<const Kernel* const> SupportedKernels() {
  static const size_t unsupported = CountUnsupported();
  return std::span<const Kernel* const>(kAll).subspan(unsupported);
}

const Kernel& ActiveKernel() { return *active; }
void UseKernel(const Kernel& kernel) { active = &kernel; }

uint32_t ShiftFactor(size_t length) {
  if (length < kTabulated) [[likely]]
    return kShifts[length];
  return PowerOfX(length % kOrder * 8 + kOrder - 1);
}

uint32_t UnshiftFactor(size_t length) {
  if (length < kTabulated) [[likely]]
    return kUnshifts[length];
  return PowerOfX(9 * kOrder - length % kOrder * 8 % kOrder - 33);
}

}  // namespace crc32

uint32_t CrcUpdate(uint32_t state, std::span<const uint8_t> bytes) {
  return crc32::ActiveKernel().update(state, bytes.data(), bytes.size());
}

uint32_t CrcCopy(uint32_t state, uint8_t* destination, const uint8_t* source, size_t length) {
  return crc32::ActiveKernel().copy(state, destination, source, length);
}

uint32_t CrcShift(uint32_t state, size_t length) {
  return crc32::ActiveKernel().multiply(state, crc32::ShiftFactor(length));
}

const char* CrcImplementation() { return crc32::ActiveKernel().name; }

}  // namespace rocegw::wire
