// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "gateway/far/program/swap/swap.h"

namespace rocegw::far {
namespace {

// linux/swap.h, union swap_header.
TEST(SwapHeader, IsThatOfTheKernel) {
  const auto header = SwapHeader(64 << 20);
  uint32_t fields[3];
  std::memcpy(fields, &header[1024], sizeof fields);
  EXPECT_EQ(fields[0], 1u);                      // version
  EXPECT_EQ(fields[1], (64u << 20) / 4096 - 1);  // last page
  EXPECT_EQ(fields[2], 0u);                      // bad pages
  EXPECT_EQ(std::string(header.end() - 10, header.end()), "SWAPSPACE2");
}

}  // namespace
}  // namespace rocegw::far
