// SPDX-License-Identifier: Apache-2.0
// Counts of a queue pair: split into a hot and a cold part, and still exact.
#include <gtest/gtest.h>

#include <cstdint>

#include "gateway/transport/qp_context.h"

namespace rocegw::testing::qp_counts {
namespace {

TEST(QpCounts, BytesBeyondThirtyTwoBits) {
  transport::QpContext qp;
  constexpr uint64_t kMost = UINT32_MAX;
  uint64_t sent = 0;
  for (const uint64_t bytes : {uint64_t{0}, kMost, uint64_t{1}, kMost, kMost, uint64_t{2}}) {
    qp.CountBytesSent(bytes);
    qp.CountBytesReceived(bytes + 7);
    sent += bytes;
    EXPECT_EQ(qp.bytes_sent(), sent);
  }
  EXPECT_EQ(qp.bytes_received(), sent + 6 * 7);
}

}  // namespace
}  // namespace rocegw::testing::qp_counts
