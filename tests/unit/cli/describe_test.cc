// SPDX-License-Identifier: Apache-2.0
// Complete texts of objects.
#include "controlplane/cli/views/describe.h"

#include <gtest/gtest.h>

#include "rocegw/types/v1/gateway.pb.h"

namespace rocegw::cli {
namespace {

TEST(Description, TakeOversOfAGatewayHaveTheirPauseAndRefusals) {
  types::v1::Gateway gateway;
  gateway.set_name("gateways/left");
  types::v1::TakeOverSummary& take_overs = *gateway.mutable_status()->mutable_take_overs();
  take_overs.set_count(3);
  take_overs.mutable_last_blackout()->set_nanos(2'318'000);
  (*take_overs.mutable_refusals())["sessions"] = 2;
  (*take_overs.mutable_refusals())["configuration"] = 1;
  EXPECT_EQ(Description(gateway, 1'800'000'000),
            "Name: gateways/left\n"
            "Status:\n"
            "  Take overs:\n"
            "    Count:         3\n"
            "    Last blackout: 2.3ms\n"
            "    Refusals:      configuration=1, sessions=2\n");
}

TEST(Description, LabelsAreTexts) {
  types::v1::Gateway gateway;
  (*gateway.mutable_meta()->mutable_labels())["zone"] = "a";
  EXPECT_EQ(Description(gateway, 1'800'000'000), "Meta:\n  Labels: zone=a\n");
}

}  // namespace
}  // namespace rocegw::cli
