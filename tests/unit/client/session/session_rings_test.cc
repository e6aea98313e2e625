// SPDX-License-Identifier: Apache-2.0
// Requests and answers of the library in rings, against a real session server: each request is
// answered once while the rings are closed and made again, and when the server ends the session;
// forks and signals do no harm.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "gateway/session/attach/message_rings.h"
#include "tests/support/session/running_session.h"

namespace rocegw::testing {
namespace {

// More requests than the library makes before it asks for rings.
constexpr int kUntilRings = 100;

ibv_context* Open() {
  ibv_context* context = nullptr;
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  if (list == nullptr) return nullptr;
  if (count != 0) context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  return context;
}
bool CallOnce(ibv_context* context) {
  ibv_pd* const pd = ibv_alloc_pd(context);
  return pd != nullptr && ibv_dealloc_pd(pd) == 0;
}

class CallingThreads {
 public:
  CallingThreads(ibv_context* context, int threads, int calls) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, context, calls] {
        for (int n = 0; n < calls; ++n) ++(CallOnce(context) ? succeeded_ : failed_);
        ++ended_;
      });
    }
  }
  ~CallingThreads() { Join(); }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  bool all_ended() const { return ended_ == static_cast<int>(threads_.size()); }
  int succeeded() const { return succeeded_; }
  int failed() const { return failed_; }

 private:
  std::atomic<int> succeeded_{0}, failed_{0}, ended_{0};
  std::vector<std::thread> threads_;
};

class SessionRings : public ::testing::Test {
 protected:
  void SetUp() override {
    Attach();
    const uint64_t before = Memory();
    for (int i = 0; i < kUntilRings; ++i) ASSERT_TRUE(CallOnce(context_));
    ASSERT_EQ(Memory(), before + session::MessageRings::MemoryBytes()) << "no rings";
  }
  void TearDown() override {
    EXPECT_EQ(ibv_close_device(context_), 0);
    unsetenv("ROCEGW_SOCKET");
  }
  void Attach() {
    setenv("ROCEGW_SOCKET", running_->path().c_str(), 1);
    context_ = Open();
    ASSERT_NE(context_, nullptr);
  }
  // Runs a task on the control thread.
  template <typename F>
  void OnControl(F&& task) {
    std::atomic<bool> done{false};
    host_.loop.Post([&] {
      task();
      done = true;
    });
    while (!done) std::this_thread::yield();
  }
  uint64_t Memory() {
    uint64_t bytes = 0;
    OnControl([&] {
      bytes = host_.server->services()
                  .pools.FindPool(session::kDefaultPool)
                  ->used(session::Resource::kSegmentBytes);
    });
    return bytes;
  }

  SessionHost host_{1};
  std::unique_ptr<RunningSession> running_ = std::make_unique<RunningSession>(host_);
  ibv_context* context_ = nullptr;
};

TEST_F(SessionRings, ThreadsCall_EachGetsItsAnswer) {
  CallingThreads threads(context_, 8, 500);
  threads.Join();
  EXPECT_EQ(threads.succeeded(), 8 * 500);
}

// More threads than the rings have slots and futexes.
TEST_F(SessionRings, MoreThreadsThanSlots_EachGetsItsAnswer) {
  CallingThreads threads(context_, 2 * ROCEGW_RING_SLOTS + 10, 20);
  threads.Join();
  EXPECT_EQ(threads.failed(), 0);
}

// As before a take-over that is given up: the rings are closed, and the library asks for others.
TEST_F(SessionRings, RingsAreClosedAgainAndAgain_EachGetsItsAnswer) {
  CallingThreads threads(context_, 8, 1500);
  while (!threads.all_ended()) {
    OnControl([&] { host_.server->attach().SetReading(false); });
    for (int i = 0; i < 20; ++i) OnControl([] {});
    OnControl([&] { host_.server->attach().SetReading(true); });
    for (int i = 0; i < 200; ++i) OnControl([] {});
  }
  threads.Join();
  EXPECT_EQ(threads.failed(), 0);
  for (int i = 0; i < 1500; ++i) ASSERT_TRUE(CallOnce(context_));
  EXPECT_GE(Memory(), session::MessageRings::MemoryBytes());
}

TEST_F(SessionRings, SignalsArriveAllTheTime_EachGetsItsAnswer) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  const itimerval often{{0, 200}, {0, 200}};
  const itimerval never{};
  ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
  CallingThreads threads(context_, 4, 500);
  threads.Join();
  EXPECT_EQ(setitimer(ITIMER_REAL, &never, nullptr), 0);
  EXPECT_EQ(sigaction(SIGALRM, &before, nullptr), 0);
  EXPECT_EQ(threads.failed(), 0);
}

TEST_F(SessionRings, ProcessForks_ChildIsCutOffAndParentGoesOn) {
  CallingThreads threads(context_, 4, 500);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(ibv_alloc_pd(context_) == nullptr ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  threads.Join();
  EXPECT_EQ(threads.failed(), 0);
}

TEST_F(SessionRings, SessionEnds_AllThreadsLearnIt) {
  CallingThreads threads(context_, 8, 2000);
  while (threads.succeeded() < 100) std::this_thread::yield();
  OnControl([&] { host_.server->attach().EndAll("a test"); });
  threads.Join();
  EXPECT_FALSE(CallOnce(context_));
}

// Program whose pool has no memory for rings at first.
class SessionWithoutRings : public SessionRings {
 protected:
  void SetUp() override {
    Attach();
    OnControl([&] {
      settings_ = Pool().settings();
      tenant::PoolSettings narrow = settings_;
      narrow.quota.peak[session::Resource::kSegmentBytes] =
          Pool().used(session::Resource::kSegmentBytes) + 4096;
      host_.server->SetPool(narrow, {});
    });
  }
  tenant::Pool& Pool() { return *host_.server->services().pools.FindPool(session::kDefaultPool); }
  tenant::PoolSettings settings_;
};

TEST_F(SessionWithoutRings, RequestsUseTheSocket_UntilRingsAreGranted) {
  const uint64_t before = Memory();
  for (int i = 0; i < 2 * kUntilRings; ++i) ASSERT_TRUE(CallOnce(context_));
  EXPECT_EQ(Memory(), before);
  OnControl([&] { host_.server->SetPool(settings_, {}); });
  // The library asks again after 1024 requests.
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(CallOnce(context_));
  EXPECT_EQ(Memory(), before + session::MessageRings::MemoryBytes());
}

}  // namespace
}  // namespace rocegw::testing
