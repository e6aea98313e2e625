// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "controlplane/cli/views/object_views.h"

namespace rocegw::cli {
namespace {

using types::v1::DonorState;

types::v1::Donor DonorIn(DonorState::Health health, bool draining, uint64_t leases) {
  types::v1::Donor donor;
  donor.set_name("gateways/a/donors/d");
  donor.mutable_status()->set_health(health);
  donor.mutable_status()->set_draining(draining);
  donor.mutable_status()->set_leases(leases);
  return donor;
}

TEST(DonorWait, ADonorThatNobodyReportsIsNotTakenForDrained) {
  for (const auto health : {DonorState::ABSENT, DonorState::HEALTH_UNSPECIFIED}) {
    const types::v1::Donor donor = DonorIn(health, false, 0);
    EXPECT_FALSE(IsDrained(donor));
    EXPECT_NE(WhyNoWait(donor).find("does not report"), std::string::npos);
  }
}

TEST(DonorWait, WhatWasDrainedBeforeItEndedIsDrained) {
  const types::v1::Donor donor = DonorIn(DonorState::ABSENT, true, 0);
  EXPECT_TRUE(IsDrained(donor));
  EXPECT_EQ(WhyNoWait(donor), "");
}

TEST(DonorWait, GoesOnForADonorWithLeases) {
  for (const auto health : {DonorState::SERVING, DonorState::SILENT}) {
    const types::v1::Donor donor = DonorIn(health, true, 3);
    EXPECT_FALSE(IsDrained(donor));
    EXPECT_EQ(WhyNoWait(donor), "");
  }
}

}  // namespace
}  // namespace rocegw::cli
