// SPDX-License-Identifier: Apache-2.0
// Numbers of two hosts about the network between them: either may send any.
#include "controlplane/api/questions/bounded_plain.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace rocegw::api {
namespace {

types::v1::PlainPath Measured() {
  types::v1::PlainPath path;
  path.set_sent(400);
  path.set_received(399);
  path.set_reordered(399);
  path.set_dscp_kept(399);
  path.set_ecn_kept(390);
  path.set_ecn_marked(9);
  path.set_tcp_round_trip_median_ns(7);
  path.set_clock_ahead_ns(-5);
  path.set_problem("no TCP");
  return path;
}

TEST(BoundedPlain, WhatCanBeStays) {
  EXPECT_EQ(Bounded(Measured()).SerializeAsString(), Measured().SerializeAsString());
  EXPECT_FALSE(Bounded({}).has_clock_ahead_ns());
  EXPECT_EQ(Bounded({}).problem(), "");
}

TEST(BoundedPlain, CountsThatContradictEachOtherAreLeftOut) {
  void (types::v1::PlainPath::*const counts[])(uint32_t) = {
      &types::v1::PlainPath::set_received, &types::v1::PlainPath::set_reordered,
      &types::v1::PlainPath::set_dscp_kept, &types::v1::PlainPath::set_ecn_kept,
      &types::v1::PlainPath::set_ecn_marked};
  for (const auto set : counts) {
    for (const uint32_t number : {401U, UINT32_MAX}) {
      types::v1::PlainPath path = Measured();
      (path.*set)(number);
      types::v1::PlainPath left;
      left.set_tcp_round_trip_median_ns(7);
      left.set_clock_ahead_ns(-5);
      left.set_problem("the hosts' counts of datagrams contradict each other");
      EXPECT_EQ(Bounded(path).SerializeAsString(), left.SerializeAsString());
    }
  }
}

TEST(BoundedPlain, ClocksHaveNoNumberWhoseOppositeOverflows) {
  types::v1::PlainPath path = Measured();
  path.set_clock_ahead_ns(INT64_MIN);
  EXPECT_LT(Bounded(path).clock_ahead_ns(), -INT64_MAX / 4);
  EXPECT_GT(Bounded(path).clock_ahead_ns(), -INT64_MAX);
  path.set_clock_ahead_ns(INT64_MAX);
  EXPECT_LT(Bounded(path).clock_ahead_ns(), INT64_MAX);
}

}  // namespace
}  // namespace rocegw::api
