// SPDX-License-Identifier: Apache-2.0
// Limits per program for objects without a pool limit (options.h, SessionBounds).
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

class Bounds : public ::testing::Test {
 protected:
  Bounds() : host_(2, Small()) {}
  static session::Options Small() {
    session::Options options;
    options.session.contexts = 2;
    options.session.event_channels = 3;
    return options;
  }
  void SetUp() override { ASSERT_TRUE(client_.Hello()); }

  SessionHost host_;
  TestClient client_{host_};
};

TEST_F(Bounds, OneMoreOpenDevice_IsRefusedAndTold) {
  EXPECT_NE(client_.OpenContext(), 0u);
  EXPECT_NE(client_.OpenContext(), 0u);
  EXPECT_FALSE(host_.Told("open devices"));
  EXPECT_EQ(client_.OpenContext(), 0u);
  EXPECT_EQ(client_.error(), ENOMEM);
  EXPECT_TRUE(host_.Told("has 2 open devices, the most that one program may have"));
}

TEST_F(Bounds, OneMoreEventChannel_IsRefusedAndTold) {
  const uint32_t context = client_.OpenContext();
  const uint32_t first = client_.CreateChannel(context);
  EXPECT_NE(first, 0u);
  EXPECT_NE(client_.CreateChannel(context), 0u) << "an open device has one itself";
  EXPECT_EQ(client_.CreateChannel(context), 0u);
  EXPECT_EQ(client_.error(), ENOMEM);
  client_.Call<rocegw_object_reply>(
      TestClient::Request<rocegw_object_request>(ROCEGW_MSG_CM_CREATE_CHANNEL));
  EXPECT_EQ(client_.error(), ENOMEM) << "channels of both kinds count together";
  EXPECT_TRUE(host_.Told("has 3 event channels, the most"));
  client_.Object(ROCEGW_MSG_DESTROY_CHANNEL, first);
  EXPECT_NE(client_.CreateChannel(context), 0u);
}

TEST(SegmentBytes, OneProgramGetsAllOfThem_AndTheRefusalNamesThem) {
  session::Options options;
  options.limits.segment_bytes = uint64_t{45} << 20;
  SessionHost host(2, options);
  TestProgram program(host);
  int made = 0;
  while (program.client.CreateQp(program.pd, program.cq, ROCEGW_QPT_RC, 4096).handle != 0) ++made;
  EXPECT_GT(made, 8);
  EXPECT_EQ(program.client.error(), ENOMEM);
  EXPECT_TRUE(host.Told("segment_bytes"));
  const uint64_t used =
      host.server->services().pools.gateway().used(session::Resource::kSegmentBytes);
  EXPECT_GT(used, uint64_t{43} << 20) << "less than the smallest chunk is left";
  EXPECT_LE(used, options.limits.segment_bytes);
}

}  // namespace
}  // namespace rocegw::testing
