// SPDX-License-Identifier: Apache-2.0
#include "gateway/memory/region.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace rocegw::memory {
namespace {

constexpr uint64_t kBase = 0x7F0000000000;

TEST(Region, Create_OnlyWholePagesOfAnAddressSpace) {
  EXPECT_TRUE(Region::Create(kBase, 4096).ok());
  for (const auto& [address, length] : {std::pair<uint64_t, uint64_t>{kBase, 0},
                                        {kBase, 100},
                                        {kBase + 1, 4096},
                                        {~uint64_t{4095}, 8192},
                                        {0, uint64_t{1} << 63}}) {
    const auto refused = Region::Create(address, length);
    ASSERT_FALSE(refused.ok()) << address << " " << length;
    EXPECT_EQ(refused.status().error(), EINVAL);
  }
}

TEST(Region, Find_OnlyWhatLiesInside) {
  const auto made = Region::Create(kBase, 8192);
  ASSERT_TRUE(made.ok());
  const Region& region = *made.value();
  uint8_t* const start = region.Find(kBase, 8192);
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(region.Find(kBase + 100, 50), start + 100);
  EXPECT_EQ(region.Find(kBase + 8192, 0), start + 8192);
  EXPECT_EQ(region.Find(kBase + 1, 8192), nullptr);
  EXPECT_EQ(region.Find(kBase - 1, 2), nullptr);
  EXPECT_EQ(region.Find(kBase + 8193, 0), nullptr);
  EXPECT_EQ(region.Find(kBase + 4096, ~uint64_t{0}), nullptr);
  EXPECT_EQ(region.Find(0, 0), nullptr);
}

TEST(Region, Memory_IsSharedAndCannotBeCut) {
  const auto made = Region::Create(kBase, 8192);
  ASSERT_TRUE(made.ok());
  const int fd = made.value()->fd();
  EXPECT_EQ(::ftruncate(fd, 0), -1);
  EXPECT_EQ(::ftruncate(fd, 1 << 20), -1);
  EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
  ASSERT_EQ(::pwrite(fd, "abc", 3, 4096), 3);
  EXPECT_EQ(made.value()->Find(kBase + 4096, 3)[1], 'b');
}

TEST(Region, MappingThatGrows_FindsZeros) {
  const auto made = Region::Create(kBase, 4096);
  ASSERT_TRUE(made.ok());
  void* const shorter =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, made.value()->fd(), 0);
  ASSERT_NE(shorter, MAP_FAILED);
  auto* const longer = static_cast<uint8_t*>(::mremap(shorter, 4096, 16384, MREMAP_MAYMOVE));
  ASSERT_NE(longer, MAP_FAILED);
  EXPECT_EQ(longer[16383], 0);
  longer[4096] = 1;
  ::munmap(longer, 16384);
}

}  // namespace
}  // namespace rocegw::memory
