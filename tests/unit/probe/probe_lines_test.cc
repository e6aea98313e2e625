// SPDX-License-Identifier: Apache-2.0
#include "agent/probe_program/probe_lines.h"

#include <gtest/gtest.h>

namespace rocegw::probe {
namespace {

std::optional<Line> ThereAndBack(const Line& line) {
  const std::string text = TextOf(line);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  return ReadLine(std::string_view(text).substr(0, text.size() - 1));
}

TEST(ProbeLines, EachKind_IsReadAsItWasWritten) {
  const Measured measured{.qpn = 0x40012,
                          .connect_ns = 3'000'000,
                          .round_trips = 1000,
                          .min_ns = 1,
                          .median_ns = 22,
                          .p99_ns = UINT64_MAX,
                          .bulk_bytes = 1ULL << 32,
                          .bulk_bytes_per_second = 7};
  const PlainPath plain{.sent = 400,
                        .received = 399,
                        .reordered = 3,
                        .dscp_kept = 399,
                        .ecn_kept = 398,
                        .ecn_marked = 1,
                        .tcp_median_ns = 50'000,
                        .tcp_bytes_per_second = 1'000'000'000,
                        .clock_ahead_ns = -7,
                        .problem = "TCP to 192.0.2.1 port 7: Connection refused"};
  for (const Line& line :
       {Line(Listening{"fd77::2", 65535}), Line(measured), Line(plain), Line(PlainPath{}),
        Line(Failed{Fault::kTimedOut, "no way"}), Line(Failed{Fault::kFailed, ""})}) {
    const auto read = ThereAndBack(line);
    ASSERT_TRUE(read.has_value()) << TextOf(line);
    EXPECT_TRUE(*read == line) << TextOf(line);
  }
  for (const Fault fault :
       {Fault::kAttachRefused, Fault::kNoAddress, Fault::kUnreachable, Fault::kConnectionRefused,
        Fault::kTimedOut, Fault::kConnectionLost, Fault::kCorrupted, Fault::kFailed}) {
    const auto read = ThereAndBack(Failed{fault, "x y"});
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(std::get<Failed>(*read).fault, fault);
    EXPECT_EQ(std::get<Failed>(*read).message, "x y");
  }
}

TEST(ProbeLines, AnythingElse_IsNothing) {
  for (const char* text : {"",
                           " ",
                           "listening",
                           "listening 1.2.3.4",
                           "listening 1.2.3.4 0",
                           "listening 1.2.3.4 65536",
                           "listening 1.2.3.4 x",
                           "listening  77",
                           "listening 1.2.3.4 77 more",
                           "measured",
                           "measured 1 2 3 4 5 6 7",
                           "measured 1 2 3 4 5 6 7 8 9",
                           "measured 1 2 3 4 5 6 7 -8",
                           "measured 1 2 3 4 5 6 7 18446744073709551616",
                           "plain",
                           "plain 1 1 1 1 1 1 1 1",
                           "plain 1 1 1 1 1 1 1 1 x no",
                           "plain 1 1 1 1 1 1 1 1 9223372036854775808 no",
                           "plain 1 2 1 1 1 1 1 1 0 more than sent",
                           "failed",
                           "failed so",
                           "failed timed",
                           "FAILED"})
    EXPECT_FALSE(ReadLine(text).has_value()) << text;
}

}  // namespace
}  // namespace rocegw::probe
