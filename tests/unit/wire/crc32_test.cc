// SPDX-License-Identifier: Apache-2.0
// Fixed values of every CRC kernel that this CPU supports; tests/property/wire compares the kernels
// at random lengths.
#include "gateway/wire/crc/crc32.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "gateway/wire/crc/icrc.h"

namespace rocegw::wire {
namespace {

const uint8_t* Bytes(const char* text) { return reinterpret_cast<const uint8_t*>(text); }

TEST(Crc32Kernel, CheckValue_IsThatOfTheStandard) {
  const std::string check = "123456789";
  for (const crc32::Kernel* kernel : crc32::SupportedKernels()) {
    EXPECT_EQ(~kernel->update(~0u, Bytes(check.data()), check.size()), 0xCBF43926u) << kernel->name;
  }
}

TEST(Crc32Kernel, EightOnes_GiveTheSeedOfTheIcrc) {
  uint8_t ones[8];
  std::memset(ones, 0xFF, sizeof ones);
  for (const crc32::Kernel* kernel : crc32::SupportedKernels()) {
    EXPECT_EQ(kernel->update(~0u, ones, sizeof ones), 0xDEBB20E3u) << kernel->name;
    // The first four cancel the initial state; icrc.cc relies on that.
    EXPECT_EQ(kernel->update(~0u, ones, 4), 0u) << kernel->name;
  }
}

TEST(Crc32Kernel, NoBytes_KeepTheState) {
  for (const crc32::Kernel* kernel : crc32::SupportedKernels()) {
    EXPECT_EQ(kernel->update(0x12345678, nullptr, 0), 0x12345678u) << kernel->name;
    EXPECT_EQ(kernel->copy(0x12345678, nullptr, nullptr, 0), 0x12345678u) << kernel->name;
  }
}

TEST(Crc32Kernel, TableIsAlwaysThere) {
  ASSERT_FALSE(crc32::SupportedKernels().empty());
  EXPECT_STREQ(crc32::SupportedKernels().back()->name, "table");
  EXPECT_STREQ(CrcImplementation(), crc32::SupportedKernels().front()->name);
}

TEST(Crc32Kernel, Forced_IsTheOneInUse) {
  const crc32::Kernel& best = crc32::ActiveKernel();
  for (const crc32::Kernel* kernel : crc32::SupportedKernels()) {
    crc32::UseKernel(*kernel);
    EXPECT_STREQ(CrcImplementation(), kernel->name);
    EXPECT_EQ(~CrcUpdate(~0u, {Bytes("123456789"), 9}), 0xCBF43926u);
  }
  crc32::UseKernel(best);
}

TEST(CrcShift, MatchesZeroBytes) {
  const std::vector<uint8_t> zeros(9000);
  for (const crc32::Kernel* kernel : crc32::SupportedKernels()) {
    for (size_t length = 0; length <= zeros.size(); length += length < 5000 ? 1 : 97) {
      ASSERT_EQ(kernel->multiply(0x89ABCDEF, crc32::ShiftFactor(length)),
                crc32::SupportedKernels().back()->update(0x89ABCDEF, zeros.data(), length))
          << kernel->name << ' ' << length;
    }
  }
}

TEST(CrcShift, HugeLength_IsASumOfParts) {
  constexpr size_t kHuge = (size_t{1} << 61) + 12345;
  EXPECT_EQ(CrcShift(CrcShift(0xCAFE1234, kHuge), 7), CrcShift(0xCAFE1234, kHuge + 7));
}

TEST(UnshiftFactor, UndoesAShift) {
  for (const crc32::Kernel* kernel : crc32::SupportedKernels()) {
    for (const size_t length :
         {size_t{0}, size_t{1}, size_t{34}, size_t{4136}, size_t{5000}, size_t{70000}}) {
      // 32 bits more than the shift: a shift by four more bytes restores the value.
      const uint32_t undone = kernel->multiply(0x13572468, crc32::UnshiftFactor(length));
      EXPECT_EQ(kernel->multiply(undone, crc32::ShiftFactor(length + 4)), 0x13572468u)
          << kernel->name << ' ' << length;
    }
  }
}

}  // namespace
}  // namespace rocegw::wire
