// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/front/open_calls.h"

#include <gtest/gtest.h>

namespace rocegw::server {
namespace {

TEST(OpenCalls, OfOnePrincipal_AreBounded_AndOthersAreNotConcerned) {
  OpenCalls calls(2);
  EXPECT_TRUE(calls.Begin("a"));
  EXPECT_TRUE(calls.Begin("a"));
  EXPECT_FALSE(calls.Begin("a"));
  EXPECT_TRUE(calls.Begin("b"));
}

TEST(OpenCalls, ThatEnd_MakeRoom) {
  OpenCalls calls(1);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(calls.Begin("a"));
    calls.End("a", calls.Generation("a"));
  }
  EXPECT_EQ(calls.of("a"), 0u);
}

TEST(OpenCalls, OfAnEarlierGeneration_EndWithoutEffect) {
  OpenCalls calls(1);
  ASSERT_TRUE(calls.Begin("a"));
  const uint64_t before = calls.Generation("a");
  ASSERT_FALSE(calls.Begin("a"));
  ASSERT_TRUE(calls.Begin("a"));
  calls.End("a", before);
  EXPECT_EQ(calls.of("a"), 1u);
  calls.End("a", calls.Generation("a"));
  EXPECT_EQ(calls.of("a"), 0u);
}

}  // namespace
}  // namespace rocegw::server
