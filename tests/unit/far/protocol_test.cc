// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/link/protocol.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace rocegw::far {
namespace {

TEST(FarProtocol, WordsOfTheConnectionSurviveTheWire) {
  const auto hello = Encode(Hello{"tenant-1.a"});
  ASSERT_TRUE(DecodeHello(hello.data(), hello.size()));
  EXPECT_EQ(DecodeHello(hello.data(), hello.size())->tenant, "tenant-1.a");
  EXPECT_LE(hello.size(), 56u);  // private data of a request in RDMA_PS_TCP
  const auto welcome = Encode(Welcome{15, uint64_t{1} << 40});
  const auto read = DecodeWelcome(welcome.data(), welcome.size());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->lease_seconds, 15u);
  EXPECT_EQ(read->free_bytes, uint64_t{1} << 40);
  const auto refusal = Encode(Refusal{EDQUOT});
  ASSERT_TRUE(DecodeRefusal(refusal.data(), refusal.size()));
  EXPECT_EQ(DecodeRefusal(refusal.data(), refusal.size())->error, EDQUOT);
}

TEST(FarProtocol, ProofsSurviveTheWire_EarlierVersionsHaveNone) {
  const SessionProof proof{7, 0xfedcba9876543210};
  const auto hello = Encode(Hello{"a", proof});
  EXPECT_EQ(DecodeHello(hello.data(), hello.size())->earlier, proof);
  EXPECT_FALSE(DecodeHello(hello.data(), hello.size())->ends_earlier);
  const auto welcome = Encode(Welcome{15, 1, proof, true});
  EXPECT_EQ(DecodeWelcome(welcome.data(), welcome.size())->proof, proof);
  EXPECT_TRUE(DecodeWelcome(welcome.data(), welcome.size())->continued);
  // Words of earlier versions, with the padding of the connection manager and without.
  std::array<uint8_t, 196> padded{};
  std::copy_n(hello.begin(), 40, padded.begin());
  for (const size_t size : {size_t{40}, size_t{56}, padded.size()}) {
    ASSERT_TRUE(DecodeHello(padded.data(), size)) << size;
    EXPECT_EQ(DecodeHello(padded.data(), size)->earlier, SessionProof{}) << size;
    EXPECT_FALSE(DecodeHello(padded.data(), size)->ends_earlier) << size;
  }
  padded.fill(0);
  std::copy_n(welcome.begin(), 20, padded.begin());
  for (const size_t size : {size_t{20}, padded.size()}) {
    ASSERT_TRUE(DecodeWelcome(padded.data(), size)) << size;
    EXPECT_EQ(DecodeWelcome(padded.data(), size)->proof, SessionProof{}) << size;
    EXPECT_FALSE(DecodeWelcome(padded.data(), size)->continued) << size;
  }
}

TEST(FarProtocol, EndOfAnEarlierSessionSurvivesTheWireBesideTheLongestName) {
  const std::string longest(kTenantBytes - 1, 'x');
  const auto hello = Encode(Hello{longest, {7, 8}, true});
  const auto read = DecodeHello(hello.data(), hello.size());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->tenant, longest);
  EXPECT_EQ(read->earlier, (SessionProof{7, 8}));
  EXPECT_TRUE(read->ends_earlier);
  EXPECT_FALSE(read->brief);
  const auto brief = Encode(Hello{longest, {7, 8}, false, true});
  EXPECT_TRUE(DecodeHello(brief.data(), brief.size())->brief);
  EXPECT_FALSE(DecodeHello(brief.data(), brief.size())->ends_earlier);
  EXPECT_FALSE(DecodeHello(Encode(Hello{longest, {7, 8}}).data(), hello.size())->ends_earlier);
}

TEST(FarProtocol, MessageSurvivesTheWire) {
  Message message;
  message.type = MessageType::kLeased;
  message.error = ENOSPC;
  message.id = 1;
  message.bytes = 2;
  message.lease = 3;
  message.address = 0x7fffffffffffffff;
  message.free_bytes = 5;
  message.key = 0xfedcba98;
  message.draining = true;
  const auto bytes = Encode(message);
  const auto read = DecodeMessage(bytes.data(), bytes.size());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->type, message.type);
  EXPECT_EQ(read->error, ENOSPC);
  EXPECT_EQ(read->id, 1u);
  EXPECT_EQ(read->bytes, 2u);
  EXPECT_EQ(read->lease, 3u);
  EXPECT_EQ(read->address, message.address);
  EXPECT_EQ(read->free_bytes, 5u);
  EXPECT_EQ(read->key, message.key);
  EXPECT_TRUE(read->draining);
  EXPECT_FALSE(DecodeMessage(Encode(Message{}).data(), bytes.size())->draining);
}

TEST(FarProtocol, PrivateDataMayBePadded) {
  std::array<uint8_t, 196> padded{};
  const auto welcome = Encode(Welcome{1, 2});
  std::copy(welcome.begin(), welcome.end(), padded.begin());
  EXPECT_TRUE(DecodeWelcome(padded.data(), padded.size()));
}

TEST(FarProtocol, RefusesWhatIsNotItsOwn) {
  auto hello = Encode(Hello{"a"});
  EXPECT_FALSE(DecodeHello(hello.data(), 39));
  hello[0] ^= 1;  // another protocol
  EXPECT_FALSE(DecodeHello(hello.data(), hello.size()));
  auto message = Encode(Message{});
  message[7]++;  // another version
  EXPECT_FALSE(DecodeMessage(message.data(), message.size()));
  message = Encode(Message{});
  message[11] = 200;  // no such type
  EXPECT_FALSE(DecodeMessage(message.data(), message.size()));
}

TEST(FarProtocol, TenantIsAWordThatFitsALabel) {
  auto hello = Encode(Hello{"a\nb"});
  EXPECT_FALSE(DecodeHello(hello.data(), hello.size()));
  hello = Encode(Hello{std::string(100, 'a')});
  EXPECT_EQ(DecodeHello(hello.data(), hello.size())->tenant, std::string(31, 'a'));
}

}  // namespace
}  // namespace rocegw::far
