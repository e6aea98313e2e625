// SPDX-License-Identifier: Apache-2.0
// State in a file: it arrives whole, and a file that another process could change is refused.
#include "gateway/take_over/state_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace rocegw::take_over {
namespace {

TEST(StateFile, ArrivesWhole) {
  std::vector<uint8_t> bytes(1 << 20);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  const auto file = MakeStateFile(bytes);
  ASSERT_TRUE(file.ok()) << file.status().text();
  const auto read = StateFile::Map(file.value(), bytes.size());
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_TRUE(std::ranges::equal(read.value().bytes(), bytes));
  EXPECT_EQ(StateFile::Map(file.value(), bytes.size() - 1).status().error(), EPROTO);
  EXPECT_EQ(::pwrite(file.value().get(), "x", 1, 0), -1) << "it could be changed";
}

TEST(StateFile, Empty_HasNoBytes) {
  const auto file = MakeStateFile({});
  ASSERT_TRUE(file.ok());
  const auto read = StateFile::Map(file.value(), 1);
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read.value().bytes().empty());
}

TEST(StateFile, FileThatCanBeChanged_IsRefused) {
  const UniqueFd open(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open.get(), 4096), 0);
  EXPECT_EQ(StateFile::Map(open, 4096).status().error(), EPROTO);
}

}  // namespace
}  // namespace rocegw::take_over
