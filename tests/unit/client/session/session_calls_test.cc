// SPDX-License-Identifier: Apache-2.0
// Requests of several threads: they do not wait for each other's answers, and each gets its own.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests/unit/client/attached_test.h"

namespace rocegw::testing {
namespace {

class SessionCalls : public AttachedTest {
 protected:
  explicit SessionCalls(const FakeOptions& options = {}) : AttachedTest(options) {}
  template <typename Task>
  static void InThreads(int count, const Task& task) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(task);
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_F(SessionCalls, ManyAreUnderWayAtOnce) {
  constexpr int kThreads = 6;
  daemon_.HoldAnswers(kThreads);
  InThreads(kThreads, [this] {
    ibv_pd* const pd = ibv_alloc_pd(context_);
    ASSERT_NE(pd, nullptr);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  });
}

TEST_F(SessionCalls, EachGetsItsOwnAnswer) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 300;
  std::mutex mutex;
  std::set<uint32_t> handles;
  InThreads(kThreads, [&] {
    std::vector<uint32_t> mine;
    for (int i = 0; i < kRounds; ++i) {
      ibv_pd* const pd = ibv_alloc_pd(context_);
      ASSERT_NE(pd, nullptr);
      mine.push_back(pd->handle);
      ibv_port_attr port{};
      EXPECT_EQ(ibv_query_port(context_, 1, &port), 0);
      EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
      EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    }
    const std::lock_guard lock(mutex);
    handles.insert(mine.begin(), mine.end());
  });
  EXPECT_EQ(handles.size(), size_t{kThreads} * kRounds);
}

// Both ends begin to count messages when rings are asked for.
TEST_F(SessionCalls, RingsAreWanted_OneThreadAsksOnce) {
  InThreads(8, [&] {
    for (int i = 0; i < 60; ++i) {
      ibv_pd* const pd = ibv_alloc_pd(context_);
      ASSERT_NE(pd, nullptr);
      EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    }
  });
  EXPECT_EQ(daemon_.Requests(ROCEGW_MSG_USE_RINGS).size(), 1u) << "the fake daemon refuses them";
}

// A daemon before minor 18 ends a session that sends a request which it does not know.
class CallsToAnOlderDaemon : public SessionCalls {
 protected:
  static FakeOptions Older() {
    FakeOptions options;
    options.minor = 17;
    return options;
  }
  CallsToAnOlderDaemon() : SessionCalls(Older()) {}
};

TEST_F(CallsToAnOlderDaemon, NoRingsAreAskedFor) {
  InThreads(4, [&] {
    for (int i = 0; i < 400; ++i) {
      ibv_pd* const pd = ibv_alloc_pd(context_);
      ASSERT_NE(pd, nullptr);
      EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    }
  });
  EXPECT_TRUE(daemon_.Requests(ROCEGW_MSG_USE_RINGS).empty());
}

TEST_F(SessionCalls, DaemonGoes_AllThatWaitAreTold) {
  constexpr int kThreads = 5;
  daemon_.HoldAnswers(kThreads + 1);
  std::thread killer([this] {
    while (daemon_.Requests(ROCEGW_MSG_ALLOC_PD).size() < kThreads + 1) std::this_thread::yield();
    daemon_.Die();
  });
  InThreads(kThreads, [this] {
    EXPECT_EQ(ibv_alloc_pd(context_), nullptr);
    EXPECT_EQ(errno, EIO);
  });
  killer.join();
}

}  // namespace
}  // namespace rocegw::testing
