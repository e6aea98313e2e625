// SPDX-License-Identifier: Apache-2.0
// Programs that are killed (SIGKILL) while they post. Producers are real processes, each with its
// own segment as every attached program has; the reader takes doorbells and requests as a worker
// does. Whatever instruction a producer dies at: published requests arrive whole and in order, no
// others do, and other programs neither lose nor wait.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/support/qp/send_queues.h"
#include "tests/support/random.h"

namespace rocegw::testing {
namespace {

using Slot = SendQueues::Slot;

// Posts a request whose fields all follow from its number, so that a torn request is detected.
int Post(client::SendRing& ring, uint32_t number) {
  ibv_sge sge{0x100000000u + number, 65536 + number, ~number};
  ibv_send_wr wr{};
  wr.wr_id = (uint64_t{number} << 32) | ~number;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.imm_data = number ^ 0x5A5A5A5Au;
  wr.wr.rdma.remote_addr = 0x7000000000u - number;
  wr.wr.rdma.rkey = number * 3;
  ibv_send_wr* bad;
  return client::PostSend(ring, &wr, &bad);
}

bool IsRequest(const Slot& slot, uint32_t number) {
  rocegw_send_wqe wqe;
  rocegw_sge sge;
  std::memcpy(&wqe, slot.data(), sizeof wqe);
  std::memcpy(&sge, slot.data() + sizeof wqe, sizeof sge);
  return wqe.wr_id == ((uint64_t{number} << 32) | static_cast<uint32_t>(~number)) &&
         wqe.opcode == IBV_WR_RDMA_WRITE_WITH_IMM && wqe.num_sge == 1 &&
         wqe.imm_or_rkey == (number ^ 0x5A5A5A5Au) &&
         wqe.u.rdma.remote_address == 0x7000000000u - number && wqe.u.rdma.rkey == number * 3 &&
         sge.address == 0x100000000u + number && sge.length == 65536 + number &&
         sge.lkey == static_cast<uint32_t>(~number);
}

// Attached program, and the requests that arrived from it.
class Session {
 public:
  Session(uint32_t queues, uint32_t entries) : queues_(queues, entries), next_(queues, 0) {}

  // Runs one iteration of the worker, each later than a doorbell pause.
  void Read() {
    now_ = now_ + Microseconds(2);
    queues_.Read(now_, [&](uint32_t queue, const Slot& slot) {
      whole_ &= IsRequest(slot, next_[queue]);
      ++next_[queue];
    });
  }
  // Reads long enough to include the scan of every leaf, which finds bits without a summary bit.
  void ReadForLong() {
    for (int i = 0; i < 5000; ++i) Read();
  }
  bool good(uint32_t queue = 0) const { return whole_ && !queues_.failed(queue); }
  uint32_t arrived(uint32_t queue = 0) const { return next_[queue]; }
  SendQueues& queues() { return queues_; }

 private:
  SendQueues queues_;
  std::vector<uint32_t> next_;
  TimePoint now_;
  bool whole_ = true;
};

class KilledProducer : public ::testing::Test {
 protected:
  // Starts a program that posts one request by itself (which binds symbols lazily) and kPosts while
  // its parent traces it.
  static pid_t StartTraced(Session& session) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    SendQueues::ClientMapping mapping(session.queues());
    if (Post(mapping.ring(0), 0) != 0) _exit(2);
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(3);
    raise(SIGSTOP);
    for (uint32_t i = 1; i <= kPosts; ++i) {
      if (Post(mapping.ring(0), i) != 0) _exit(2);
    }
    raise(SIGSTOP);
    _exit(0);
  }

  // Executes that many instructions of a stopped program. Returns false when its posts are
  // finished.
  static bool Step(pid_t pid, uint64_t instructions, uint64_t* done = nullptr) {
    for (uint64_t i = 0; i < instructions; ++i) {
      int status = 0;
      if (ptrace(PTRACE_SINGLESTEP, pid, nullptr, nullptr) != 0) return false;
      if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
        ADD_FAILURE() << status;
        return false;
      }
      if (WSTOPSIG(status) == SIGSTOP) return false;
      if (done != nullptr) ++*done;
    }
    return true;
  }

  static void AwaitStop(pid_t pid) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSTOPPED(status)) << status;
  }

  static void Kill(pid_t pid) {
    ASSERT_EQ(kill(pid, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
  }

  static constexpr uint32_t kPosts = 2;
};

// Kills at each instruction of two posts in turn; under instrumentation, which multiplies them, at
// random ones.
TEST_F(KilledProducer, AtAnyInstruction_PublishedArrivesAndOthersDoNotWait) {
  uint64_t instructions = 0;
  {
    Session session(1, 8);
    const pid_t pid = StartTraced(session);
    AwaitStop(pid);
    while (Step(pid, 1000, &instructions)) ASSERT_LT(instructions, 10000000u);
    Kill(pid);
    session.Read();
    ASSERT_EQ(session.arrived(), 1 + kPosts);
  }
  constexpr uint64_t kEach = 700;
  ASSERT_GT(instructions, 100u);
  std::vector<uint64_t> deaths;
  const bool each = instructions <= kEach;
  if (each) {
    for (uint64_t at = 0; at < instructions; ++at) deaths.push_back(at);
  } else {
    // Kills in each of equal parts, and behind the last instruction. The number of instrumented
    // instructions varies.
    Random random(TestSeed(21));
    const uint64_t parts = std::max<uint64_t>(32, kEach * kEach / instructions);
    for (uint64_t i = 0; i < parts; ++i) {
      deaths.push_back(instructions * i / parts + random.Below(instructions / parts));
    }
    deaths.push_back(instructions * 2);
  }
  std::printf("%llu instructions, %zu deaths\n", static_cast<unsigned long long>(instructions),
              deaths.size());

  Session other(2, 8);
  SendQueues::ClientMapping other_mapping(other.queues());
  uint32_t other_posted = 0;
  uint32_t arrived_by[kPosts + 2] = {};
  uint32_t without_bell = 0;
  for (const uint64_t at : deaths) {
    SCOPED_TRACE(at);
    Session session(1, 8);
    const pid_t pid = StartTraced(session);
    AwaitStop(pid);
    // The worker polls in between, as it does while a program posts.
    const bool halfway = Step(pid, at / 2);
    session.Read();
    const bool whole = halfway && Step(pid, at - at / 2);
    ASSERT_TRUE(whole || !each);
    Kill(pid);

    for (uint32_t queue = 0; queue < 2; ++queue) {
      ASSERT_EQ(Post(other_mapping.ring(queue), other_posted), 0);
    }
    ++other_posted;
    session.Read();
    other.Read();
    for (uint32_t queue = 0; queue < 2; ++queue) {
      ASSERT_EQ(other.arrived(queue), other_posted);
      ASSERT_TRUE(other.good(queue));
    }
    const uint32_t published = session.arrived() + session.queues().Waiting(0);
    ASSERT_LE(published, 1 + kPosts);
    without_bell += session.queues().Waiting(0) != 0;
    session.ReadForLong();
    ASSERT_TRUE(session.good());
    // An index without its doorbell is a request that was never posted: the program did not see its
    // post return.
    ASSERT_LE(session.arrived(), published);
    ASSERT_LE(published - session.arrived(), 1u);
    ++arrived_by[session.arrived()];
  }
  std::printf("died with one, two, three requests taken: %u %u %u; index without its bell: %u\n",
              arrived_by[1], arrived_by[2], arrived_by[3], without_bell);
  EXPECT_EQ(arrived_by[0], 0u);
  for (uint32_t count = 1; count <= 1 + kPosts; ++count) EXPECT_GT(arrived_by[count], 0u);
}

// Programs run freely, and some of them are killed repeatedly.
TEST_F(KilledProducer, AtAnyTime_SurvivorsLoseNothing) {
  constexpr int kSurvivors = 2;
  constexpr int kDeaths = 200;
  constexpr uint32_t kEntries = 16;
  auto* stop = static_cast<uint32_t*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(stop), MAP_FAILED);
  // Posts until stopped; exits with 0 if every post was accepted.
  const auto start = [stop](Session& session) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    SendQueues::ClientMapping mapping(session.queues());
    for (uint32_t number = 0; __atomic_load_n(stop, __ATOMIC_ACQUIRE) == 0;) {
      const int error = Post(mapping.ring(0), number);
      if (error == 0) {
        ++number;
      } else if (error == ENOMEM) {
        sched_yield();
      } else {
        _exit(2);
      }
    }
    _exit(0);
  };

  std::vector<std::unique_ptr<Session>> survivors;
  std::vector<pid_t> pids;
  for (int i = 0; i < kSurvivors; ++i) {
    survivors.push_back(std::make_unique<Session>(1, kEntries));
    pids.push_back(start(*survivors.back()));
    ASSERT_GT(pids.back(), 0);
  }
  Random random(TestSeed(22));
  uint64_t taken_from_dead = 0;
  for (int death = 0; death < kDeaths; ++death) {
    SCOPED_TRACE(death);
    Session session(1, kEntries);
    const pid_t victim = start(session);
    ASSERT_GT(victim, 0);
    const uint32_t enough = static_cast<uint32_t>(random.Below(200));
    while (session.arrived() < enough) {
      session.Read();
      for (const auto& survivor : survivors) survivor->Read();
    }
    Kill(victim);
    session.ReadForLong();
    ASSERT_TRUE(session.good());
    ASSERT_LE(session.queues().Waiting(0), 1u);
    taken_from_dead += session.arrived();
    // The other programs continue.
    for (const auto& survivor : survivors) {
      const uint32_t before = survivor->arrived();
      while (survivor->arrived() < before + 50) {
        survivor->Read();
        sched_yield();
        ASSERT_TRUE(survivor->good());
      }
    }
  }
  __atomic_store_n(stop, 1u, __ATOMIC_RELEASE);
  for (int i = 0; i < kSurvivors; ++i) {
    int status = 0;
    ASSERT_EQ(waitpid(pids[static_cast<size_t>(i)], &status, 0), pids[static_cast<size_t>(i)]);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    Session& survivor = *survivors[static_cast<size_t>(i)];
    survivor.Read();
    EXPECT_EQ(survivor.queues().Waiting(0), 0u);
    EXPECT_TRUE(survivor.good());
    EXPECT_GT(survivor.arrived(), 50u * kDeaths - 1);
    std::printf("survivor %d: %u requests; the dead: %llu\n", i, survivor.arrived(),
                static_cast<unsigned long long>(taken_from_dead));
  }
  munmap(stop, 4096);
}

}  // namespace
}  // namespace rocegw::testing
