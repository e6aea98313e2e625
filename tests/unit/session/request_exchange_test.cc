// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/exchange/request_exchange.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "gateway/session/attach/message_rings.h"

namespace rocegw::session {
namespace {

// Call queue whose calls the test runs.
class HeldCalls final : public ClientCallQueue {
 public:
  void Run(std::function<void()> call) override { calls_.push_back(std::move(call)); }
  size_t held() const override { return calls_.size(); }
  void RunAll() {
    for (; !calls_.empty(); calls_.pop_front()) calls_.front()();
  }

 private:
  std::deque<std::function<void()>> calls_;
};

class RequestExchangeTest : public ::testing::Test, protected RequestOwner, protected MessageSink {
 protected:
  RequestExchangeTest() {
    exchange_.on_ready = [this] { events_.emplace_back("ready"); };
  }

  void Execute(Request& request) override {
    events_.push_back("execute " + std::to_string(request.header.type));
  }
  void OnUnanswered(uint32_t type, uint32_t subject, int error) override {
    events_.push_back("unanswered " + std::to_string(type) + " of " + std::to_string(subject) +
                      ": " + std::to_string(error));
  }
  void BeforeReply() override { events_.emplace_back("before"); }
  void AfterReply(TimePoint) override { events_.emplace_back("after"); }
  void End(const std::string& reason) override {
    events_.push_back("end: " + reason);
    exchange_.Close();
  }
  void Send(std::span<const uint8_t> message, int) override {
    events_.emplace_back("send");
    ASSERT_GE(message.size(), sizeof reply_);
    std::memcpy(&reply_, message.data(), sizeof reply_);
  }
  void UseRings(std::unique_ptr<MessageRings>) override { events_.emplace_back("rings"); }
  bool has_rings() const override { return false; }

  void Receive(uint32_t type, uint64_t id, uint32_t handle = 0) {
    rocegw_object_request request{};
    request.header = {.type = type, .length = sizeof request, .request_id = id};
    request.handle = handle;
    exchange_.OnMessage({reinterpret_cast<const uint8_t*>(&request), sizeof request}, -1);
  }
  void Greet() {
    Receive(ROCEGW_MSG_HELLO, 0);
    exchange_.SetGreeted();
    exchange_.Done();
    events_.clear();
  }

  using Events = std::vector<std::string>;
  Events events_;
  rocegw_reply reply_{};
  const std::shared_ptr<HeldCalls> calls_ = std::make_shared<HeldCalls>();
  const std::shared_ptr<ReturnedCalls> returned_ = std::make_shared<ReturnedCalls>();
  RequestExchange exchange_{*this, *this, calls_, returned_, std::make_shared<ReceiverHere>()};
};

TEST_F(RequestExchangeTest, FirstRequestIsNoGreeting_EndsTheSession) {
  Receive(ROCEGW_MSG_ALLOC_PD, 1);
  EXPECT_EQ(events_, (Events{"end: first message was not a greeting"}));
}

TEST_F(RequestExchangeTest, SecondGreeting_EndsTheSession) {
  Greet();
  Receive(ROCEGW_MSG_HELLO, 2);
  EXPECT_EQ(events_, (Events{"end: second greeting"}));
}

TEST_F(RequestExchangeTest, Reply_NamesItsRequestAndFollowsTheOwnersMessages) {
  Greet();
  Receive(ROCEGW_MSG_ALLOC_PD, 7);
  EXPECT_TRUE(exchange_.busy());
  exchange_.Object(3, 0);
  EXPECT_FALSE(exchange_.busy());
  EXPECT_EQ(events_, (Events{"execute " + std::to_string(ROCEGW_MSG_ALLOC_PD), "before", "send",
                             "after", "ready"}));
  EXPECT_EQ(reply_.type, uint32_t{ROCEGW_MSG_ALLOC_PD});
  EXPECT_EQ(reply_.request_id, 7u);
  EXPECT_EQ(reply_.length, sizeof(rocegw_object_reply));
  EXPECT_EQ(reply_.error, 0);
}

TEST_F(RequestExchangeTest, ErrorOfAnUnawaitedRequest_GoesToTheOwner) {
  Greet();
  Receive(ROCEGW_MSG_CM_CONNECT, 0, 5);
  exchange_.Error(EINVAL);
  EXPECT_EQ(events_, (Events{"execute " + std::to_string(ROCEGW_MSG_CM_CONNECT),
                             "unanswered " + std::to_string(ROCEGW_MSG_CM_CONNECT) +
                                 " of 5: " + std::to_string(EINVAL),
                             "before", "after", "ready"}));
}

TEST_F(RequestExchangeTest, Violation_EndsWithoutAReply) {
  Greet();
  Receive(ROCEGW_MSG_ALLOC_PD, 7);
  events_.clear();
  exchange_.Violation("nonsense");
  EXPECT_EQ(events_, (Events{"end: nonsense"}));
  EXPECT_FALSE(exchange_.busy());
}

TEST_F(RequestExchangeTest, RequestInProgressAtTheEnd_HoldsTheEndUpUntilItsReply) {
  Greet();
  Receive(ROCEGW_MSG_ALLOC_PD, 7);
  events_.clear();
  bool over = false;
  exchange_.Close();
  exchange_.HoldUntilSettled(JoinThen([&] { over = true; }));
  EXPECT_FALSE(over);
  exchange_.Done();
  EXPECT_TRUE(over);
  EXPECT_EQ(events_, Events{}) << "neither sent nor ready for more";
}

TEST_F(RequestExchangeTest, NothingInProgressAtTheEnd_HoldsNothingUp) {
  Greet();
  bool over = false;
  exchange_.Close();
  exchange_.HoldUntilSettled(JoinThen([&] { over = true; }));
  EXPECT_TRUE(over);
  Receive(ROCEGW_MSG_ALLOC_PD, 8);
  EXPECT_EQ(events_, Events{}) << "no more requests";
}

TEST_F(RequestExchangeTest, BlockingCall_AnswersAfterItsReturn) {
  Greet();
  Receive(ROCEGW_MSG_ALLOC_PD, 7);
  exchange_.RunBlocking([] {}, [this] { exchange_.Done(); });
  EXPECT_FALSE(exchange_.settled());
  calls_->RunAll();
  EXPECT_TRUE(exchange_.busy()) << "the return is not known yet";
  returned_->TakeAll();
  EXPECT_TRUE(exchange_.settled());
  EXPECT_EQ(reply_.request_id, 7u);
}

TEST_F(RequestExchangeTest, BlockingCallAtTheEnd_IsAbandoned) {
  Greet();
  Receive(ROCEGW_MSG_ALLOC_PD, 7);
  exchange_.RunBlocking([] {}, [] { ADD_FAILURE() << "continued after the end"; });
  bool over = false;
  exchange_.Close();
  exchange_.HoldUntilSettled(JoinThen([&] { over = true; }));
  EXPECT_TRUE(over);
  calls_->RunAll();
  returned_->TakeAll();
}

TEST_F(RequestExchangeTest, DescriptorThatTheRequestLacks_IsAnError) {
  Greet();
  Receive(ROCEGW_MSG_ALLOC_PD, 7);
  Request request;
  int error = 0;
  exchange_.TakeDescriptor(request, {}, [&](const PassedDescriptor& passed) {
    error = passed.status.error();
    exchange_.Error(error);
  });
  EXPECT_EQ(error, EBADF);
  EXPECT_EQ(reply_.error, EBADF);
}

}  // namespace
}  // namespace rocegw::session
