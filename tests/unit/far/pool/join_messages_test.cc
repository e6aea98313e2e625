// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/pool/join_messages.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/far/pool/fake_table.h"

namespace rocegw::far {
namespace {

const PoolSecret& Other() {
  static const PoolSecret other(std::vector<uint8_t>(16, 7));
  return other;
}

const Join kJoin{{1, 2}, {3, 4}, PoolPath::kEndpoint};

TEST(JoinMessages, AJoinProvesTheSecret) {
  const PoolSecret secret = TestSecret();
  JoinBytes bytes = Encode(kJoin, secret);
  EXPECT_TRUE(Proves(bytes, secret));
  EXPECT_FALSE(Proves(bytes, Other()));
  const auto join = DecodeJoin(bytes);
  ASSERT_TRUE(join);
  EXPECT_EQ(join->process, kJoin.process);
  EXPECT_EQ(join->path, PoolPath::kEndpoint);
  for (uint8_t& byte : bytes) {
    byte ^= 1;
    EXPECT_FALSE(DecodeJoin(bytes) && Proves(bytes, secret));
    byte ^= 1;
  }
}

TEST(JoinMessages, AGrantHoldsForItsJoinAlone) {
  const PoolSecret secret = TestSecret();
  const PoolGrant grant{PoolPath::kEndpoint, 0x1000, 5, 6, 7, {8, 65536}};
  std::vector<uint8_t> padded(148);
  const GrantBytes bytes = Encode(grant, kJoin, secret);
  std::copy(bytes.begin(), bytes.end(), padded.begin());
  const auto decoded = DecodeGrant(padded, kJoin, secret);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->address, grant.address);
  EXPECT_EQ(decoded->endpoint_key, grant.endpoint_key);
  EXPECT_EQ(decoded->shape.block_bytes, 65536u);
  EXPECT_FALSE(DecodeGrant(bytes, kJoin, Other()));
  EXPECT_FALSE(DecodeGrant(bytes, {{1, 2}, {3, 5}, PoolPath::kEndpoint}, secret));
}

TEST(JoinMessages, OtherMessagesAreRefused) {
  const AskBytes ask = Encode(Ask{{1, 2}});
  ASSERT_TRUE(DecodeAsk(ask));
  EXPECT_EQ(DecodeAsk(ask)->process, (Nonce{1, 2}));
  EXPECT_FALSE(DecodeChallenge(ask));
  EXPECT_FALSE(DecodeAsk(std::span(ask).first(23)));
  EXPECT_FALSE(DecodeJoin(ask));
  EXPECT_FALSE(DecodeAsk({}));
  EXPECT_EQ(DecodePoolRefusal(Encode(PoolRefusal{13}))->error, 13);
  EXPECT_FALSE(DecodePoolRefusal(ask));
}

TEST(Challenger, AChallengeHoldsForItsProcessHostAndTime) {
  const Challenger challenger({5, 6});
  Join join{{1, 2}, challenger.Make({1, 2}, "10.0.0.1", 100), PoolPath::kQueuePair};
  EXPECT_TRUE(challenger.Holds(join, "10.0.0.1", 100));
  EXPECT_TRUE(challenger.Holds(join, "10.0.0.1", 100 + Challenger::kSeconds));
  EXPECT_FALSE(challenger.Holds(join, "10.0.0.1", 101 + Challenger::kSeconds));
  EXPECT_FALSE(challenger.Holds(join, "10.0.0.1", 99));
  EXPECT_FALSE(challenger.Holds(join, "10.0.0.2", 100));
  EXPECT_FALSE(Challenger({5, 7}).Holds(join, "10.0.0.1", 100));
  join.process[0]++;
  EXPECT_FALSE(challenger.Holds(join, "10.0.0.1", 100));
}

}  // namespace
}  // namespace rocegw::far
