// SPDX-License-Identifier: Apache-2.0
// Requests for address handles at the daemon: numbers, as rarely as its answers allow.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/unit/client/attached_test.h"

namespace rocegw::testing {
namespace {

class AddressHandles : public AttachedTest {
 protected:
  void SetUp() override {
    AttachedTest::SetUp();
    if (HasFatalFailure()) return;
    daemon_.OnRequest(ROCEGW_MSG_TAKE_AHS, [this](const RecordedRequest& request) {
      ++asked_;
      rocegw_ahs_reply reply{};
      reply.count = std::min(request.As<rocegw_ahs>().count, most_at_once_.load());
      held_ += reply.count;
      return Bytes(reply);
    });
    daemon_.OnRequest(ROCEGW_MSG_GIVE_AHS, [this](const RecordedRequest& request) {
      ++asked_;
      held_ -= request.As<rocegw_ahs>().count;
      return Bytes(rocegw_reply{});
    });
  }
  template <typename T>
  static std::vector<uint8_t> Bytes(const T& reply) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(&reply);
    return {bytes, bytes + sizeof reply};
  }
  ibv_ah* Make() {
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.port_num = 1;
    attr.grh.dgid.raw[10] = attr.grh.dgid.raw[11] = 0xff;
    attr.grh.dgid.raw[12] = 10;
    return ibv_create_ah(pd_, &attr);
  }

  std::atomic<uint32_t> most_at_once_ = 64;
  std::atomic<int64_t> held_ = 0;
  std::atomic<uint32_t> asked_ = 0;
};

TEST_F(AddressHandles, Thousands_AreCountedByAFewRequests) {
  std::vector<ibv_ah*> handles(6400);
  for (ibv_ah*& ah : handles) {
    ah = Make();
    ASSERT_NE(nullptr, ah);
  }
  EXPECT_EQ(6400, held_);
  EXPECT_EQ(100u, asked_);
  for (ibv_ah* const ah : handles) ASSERT_EQ(0, ibv_destroy_ah(ah));
  EXPECT_LE(held_, 128) << "what is kept for the next ones";
  EXPECT_LE(asked_, 300u);
}

TEST_F(AddressHandles, OneMadeAndTakenAwayInTurn_AsksOnce) {
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(0, ibv_destroy_ah(Make()));
  EXPECT_EQ(1u, asked_);
}

TEST_F(AddressHandles, WhereTheyAreGrantedOneByOne_NoneIsKept) {
  most_at_once_ = 1;
  ibv_ah* const first = Make();
  ibv_ah* const second = Make();
  EXPECT_EQ(2, held_);
  EXPECT_EQ(0, ibv_destroy_ah(first));
  EXPECT_EQ(1, held_);
  EXPECT_EQ(0, ibv_destroy_ah(second));
  EXPECT_EQ(0, held_);
}

TEST_F(AddressHandles, NoneLeft_IsOutOfMemory) {
  daemon_.Fail(ROCEGW_MSG_TAKE_AHS, ENOMEM);
  errno = 0;
  EXPECT_EQ(nullptr, Make());
  EXPECT_EQ(ENOMEM, errno);
}

TEST_F(AddressHandles, ManyThreads_LoseNoneAndMakeNoneUncounted) {
  constexpr int kThreads = 4;
  static constexpr int kEach = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this] {
      std::vector<ibv_ah*> handles;
      for (int i = 0; i < kEach; ++i) handles.push_back(Make());
      EXPECT_EQ(0, std::count(handles.begin(), handles.end(), nullptr));
      EXPECT_GE(held_, kEach);
      for (ibv_ah* const ah : handles) EXPECT_EQ(0, ibv_destroy_ah(ah));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(held_, 0);
  EXPECT_LE(held_, 128);
}

class OlderDaemon : public AttachedTest {
 protected:
  OlderDaemon() : AttachedTest({.minor = 12}) {}
};

TEST_F(OlderDaemon, HearsOfNoAddressHandles) {
  daemon_.Fail(ROCEGW_MSG_TAKE_AHS, ENOSYS);
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  ibv_ah* const ah = ibv_create_ah(pd_, &attr);
  ASSERT_NE(nullptr, ah);
  EXPECT_EQ(0, ibv_destroy_ah(ah));
}

}  // namespace
}  // namespace rocegw::testing
