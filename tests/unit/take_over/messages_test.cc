// SPDX-License-Identifier: Apache-2.0
// Messages of a take-over: each arrives as it was sent, and malformed input is refused.
#include "gateway/take_over/messages.h"

#include <gtest/gtest.h>

namespace rocegw::take_over {
namespace {

template <typename T>
T Through(const T& message) {
  const auto decoded = Decode(Encode(message));
  EXPECT_TRUE(decoded.has_value());
  const T* const same = decoded ? std::get_if<T>(&*decoded) : nullptr;
  EXPECT_NE(same, nullptr);
  return same == nullptr ? T() : *same;
}

TEST(Messages, ArriveAsSent) {
  const Hello hello =
      Through(Hello{kProtocol, "0.2.0", {}, {"workers: 2", "port port0: udp on eth0"}});
  EXPECT_EQ(hello.version, "0.2.0");
  EXPECT_EQ(hello.shape.size(), 2u);
  EXPECT_EQ(hello.versions.Unwritable(), nullptr);

  const Refuse refuse = Through(Refuse{Refusal::kSessions, "3 programs"});
  EXPECT_EQ(refuse.refusal, Refusal::kSessions);
  EXPECT_EQ(refuse.text, "3 programs");

  EXPECT_EQ(Through(Offer{"0.1.0", 17}).descriptors, 17u);
  const Descriptors descriptors = Through(Descriptors{
      {{FdKind::kUdpReceive, "4791/0"}, {FdKind::kAttachListener, "/run/rocegw/attach.sock"}}});
  ASSERT_EQ(descriptors.labels.size(), 2u);
  EXPECT_EQ(descriptors.labels[1].kind, FdKind::kAttachListener);
  EXPECT_EQ(descriptors.labels[1].name, "/run/rocegw/attach.sock");

  (void)Through(State());
  EXPECT_EQ(Through(Serving{Milliseconds(12)}).blackout.ns, Milliseconds(12).ns);
  (void)Through(Prepared());
  (void)Through(Ready());
  (void)Through(Commit());
}

TEST(Messages, HelloOfAnotherProtocol_TellsItsNumber) {
  std::vector<uint8_t> bytes = Encode(Hello());
  bytes[1] = 9;
  bytes.push_back(0xFF);
  const auto decoded = Decode(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(std::get<Hello>(*decoded).protocol, 9);
}

TEST(Messages, Malformed_IsRefused) {
  EXPECT_FALSE(Decode({}).has_value());
  EXPECT_FALSE(Decode(std::vector<uint8_t>{99}).has_value());
  const std::vector<uint8_t> whole = Encode(Refuse{Refusal::kBusy, "text"});
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(Decode({whole.data(), length}).has_value()) << length;
  std::vector<uint8_t> longer = whole;
  longer.push_back(0);
  EXPECT_FALSE(Decode(longer).has_value());
  // A length that the message does not have.
  std::vector<uint8_t> lies = whole;
  lies[3] = lies[4] = lies[5] = lies[6] = 0xFF;
  EXPECT_FALSE(Decode(lies).has_value());
}

}  // namespace
}  // namespace rocegw::take_over
