// SPDX-License-Identifier: Apache-2.0
// A gateway is replaced while a program has requests in its ring: each is answered exactly once, by
// the old gateway if it was in the ring, by the successor if it came to the socket behind that.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "tests/support/session/ring_program.h"
#include "tests/unit/session/hand_over_fixture.h"

namespace rocegw::testing {
namespace {

class RingsHandOver : public SessionHandOver {
 protected:
  struct Plain {
    rocegw_request header;
  };
  void SetUp() override {
    client_ = AttachToOld();
    ASSERT_TRUE(client_->Hello());
    context_ = client_->OpenContext();
    AskForRings();
  }
  void AskForRings() {
    client_->Call<rocegw_rings_reply>(TestClient::Request<Plain>(ROCEGW_MSG_USE_RINGS));
    ASSERT_EQ(client_->error(), 0);
    memory_ = std::make_unique<MappedRings>(client_->received_fd.get());
    ASSERT_TRUE(memory_->valid());
    rings_.emplace();
    rings_->SetUp(*client_, sizeof(rocegw_message_rings));
  }
  rocegw_alloc_pd AllocPd(uint64_t id) const {
    auto request = TestClient::Request<rocegw_alloc_pd>(ROCEGW_MSG_ALLOC_PD);
    request.header.request_id = id;
    request.context = context_;
    return request;
  }
  // Sends a request as the library does: into the ring, or over the socket if that is refused.
  bool SendAsLibrary(uint64_t id) {
    const rocegw_alloc_pd request = AllocPd(id);
    const auto put = rings_->rings.PutRequest(&request, sizeof request);
    if (put != client::MessageRings::Put::kNot) return true;
    rings_->rings.CountSocketRequest();
    EXPECT_TRUE(client_->SendRaw({reinterpret_cast<const uint8_t*>(&request), sizeof request}));
    return false;
  }
  // Numbers of the answers of the ring, and then those of the socket.
  std::vector<uint64_t> Answers() {
    std::vector<uint64_t> numbers;
    rocegw_message_rings& all = *memory_->operator->();
    while (all.answers_taken != all.answers) {
      rocegw_reply reply{};
      std::memcpy(&reply, all.answer[all.answers_taken++ % ROCEGW_RING_SLOTS].message,
                  sizeof reply);
      EXPECT_EQ(reply.error, 0);
      numbers.push_back(reply.request_id);
    }
    while (const auto message = client_->Receive()) {
      EXPECT_EQ(message->header().error, 0);
      numbers.push_back(message->header().request_id);
    }
    return numbers;
  }
  static uint32_t Pds(SessionHost& host) {
    uint32_t pds = 0;
    host.server->attach().ForEach([&](const session::ClientSession& one) { pds += one.Row().pds; });
    return pds;
  }

  // The library's end of the rings.
  struct ProgramRings {
    ~ProgramRings() { rings.Unmap(); }
    void SetUp(TestClient& client, uint32_t bytes) {
      int wake = client.rings_wake.Release();
      rings.RestartCount();
      ASSERT_TRUE(rings.SetWake(&wake));
      ASSERT_TRUE(rings.Map(client.received_fd.get(), bytes));
      rings.Open();
    }
    client::MessageRings rings;
  };

  std::unique_ptr<TestClient> client_;
  uint32_t context_ = 0;
  std::unique_ptr<MappedRings> memory_;
  std::optional<ProgramRings> rings_;
};

TEST_F(RingsHandOver, RequestsBeforeAndBehindTheEndOfTheRing_AreAnsweredOnce) {
  for (uint64_t id = 101; id <= 140; ++id) ASSERT_TRUE(SendAsLibrary(id)) << "into the ring";
  // The take-over begins: the gateway has not looked at the ring yet.
  old_.server->attach().SetReading(false);
  for (uint64_t id = 141; id <= 150; ++id) ASSERT_FALSE(SendAsLibrary(id)) << "to the socket";
  for (int i = 0; i < 20; ++i) old_.RunControl();
  ASSERT_EQ(old_.server->attach().Unsettled(), "");
  EXPECT_EQ(Pds(old_), 40u);
  ASSERT_EQ(HandOver(), "");
  fresh_->Settle();
  EXPECT_EQ(Pds(*fresh_), 50u);
  std::vector<uint64_t> expected;
  for (uint64_t id = 101; id <= 150; ++id) expected.push_back(id);
  EXPECT_EQ(Answers(), expected);
  // The successor gives new rings.
  AskForRings();
  EXPECT_TRUE(SendAsLibrary(151));
  rings_->rings.WakeDaemon();
  fresh_->Settle();
  EXPECT_EQ(Answers(), std::vector<uint64_t>{151});
  EXPECT_EQ(Pds(*fresh_), 51u);
}

TEST_F(RingsHandOver, TakeOverFails_TheOldGatewayAnswersAll) {
  for (uint64_t id = 1; id <= 10; ++id) ASSERT_TRUE(SendAsLibrary(id));
  old_.server->attach().SetReading(false);
  for (uint64_t id = 11; id <= 20; ++id) ASSERT_FALSE(SendAsLibrary(id));
  for (int i = 0; i < 20; ++i) old_.RunControl();
  EXPECT_EQ(Pds(old_), 10u);
  old_.server->attach().SetReading(true);
  old_.Settle();
  EXPECT_EQ(Pds(old_), 20u);
  std::vector<uint64_t> expected;
  for (uint64_t id = 1; id <= 20; ++id) expected.push_back(id);
  EXPECT_EQ(Answers(), expected);
}

}  // namespace
}  // namespace rocegw::testing
