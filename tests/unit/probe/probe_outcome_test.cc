// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/probe_outcome.h"

#include <gtest/gtest.h>

#include <csignal>

namespace rocegw::agent {
namespace {

int Exited(int code) { return code << 8; }

TEST(ProbeOutcome, GatewaysOwnReason_IsWhatIsTold) {
  const auto report = ReportOf(
      probe::Failed{probe::Fault::kAttachRefused, "programs see no device of the gateway"},
      "rocegw[77]: the gateway at /run/x refuses this program: Permission denied: no rule for it");
  EXPECT_EQ(report.fault(), types::v1::ATTACH_REFUSED);
  EXPECT_EQ(report.message(),
            "the gateway at /run/x refuses this program: Permission denied: no rule for it");
  EXPECT_EQ(ReportOf(probe::Failed{probe::Fault::kAttachRefused, "no device"}, "").message(),
            "no device");
  EXPECT_EQ(ReportOf(probe::Failed{probe::Fault::kTimedOut, "too late"}, "rocegw: x").message(),
            "too late");
}

TEST(ProbeOutcome, EndWithoutAWord_IsExplainedAsFarAsItCanBe) {
  auto report = ReportOfEnd(
      Exited(125), "rocegw-run: no gateway at /run/x (Permission denied): may you use it?");
  EXPECT_EQ(report.fault(), types::v1::ATTACH_REFUSED);
  EXPECT_EQ(report.message(), "no gateway at /run/x (Permission denied): may you use it?");
  report = ReportOfEnd(Exited(127), "rocegw-run: /usr/bin/rocegw-probe: no such program");
  EXPECT_EQ(report.fault(), types::v1::NO_PROBE);
  EXPECT_NE(report.message().find("no such program"), std::string::npos);
  report = ReportOfEnd(SIGKILL, "");
  EXPECT_EQ(report.fault(), types::v1::PROBE_FAILED);
  EXPECT_EQ(report.message(), "the probe was ended: Killed");
  report = ReportOfEnd(Exited(1), "");
  EXPECT_EQ(report.fault(), types::v1::PROBE_FAILED);
  EXPECT_EQ(report.message(), "the probe ended with status 1");
}

TEST(ProbeOutcome, Measurement_HasAllItsNumbers) {
  const auto report = ReportOf(probe::Measured{.qpn = 1,
                                               .connect_ns = 2,
                                               .round_trips = 3,
                                               .min_ns = 4,
                                               .median_ns = 5,
                                               .p99_ns = 6,
                                               .bulk_bytes = 7,
                                               .bulk_bytes_per_second = 8},
                               "");
  EXPECT_EQ(report.connectivity().ShortDebugString(),
            "connect_ns: 2 round_trips: 3 round_trip_min_ns: 4 round_trip_median_ns: 5 "
            "round_trip_p99_ns: 6 bulk_bytes: 7 bulk_bytes_per_second: 8");
}

TEST(ProbeOutcome, ThePlainPath_HasAllItsNumbers) {
  const auto path = PlainOf({.sent = 1,
                             .received = 2,
                             .reordered = 3,
                             .dscp_kept = 4,
                             .ecn_kept = 5,
                             .ecn_marked = 6,
                             .tcp_median_ns = 7,
                             .tcp_bytes_per_second = 8,
                             .clock_ahead_ns = -9,
                             .problem = "no"});
  EXPECT_EQ(path.ShortDebugString(),
            "sent: 1 received: 2 reordered: 3 dscp_kept: 4 ecn_kept: 5 ecn_marked: 6 "
            "tcp_round_trip_median_ns: 7 tcp_bytes_per_second: 8 clock_ahead_ns: -9 problem: "
            "\"no\"");
}

}  // namespace
}  // namespace rocegw::agent
