// SPDX-License-Identifier: Apache-2.0
#include "gateway/memory/copier.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "gateway/base/unique_fd.h"
#include "gateway/memory/cross_process.h"
#include "tests/unit/memory/child_process.h"

namespace rocegw::memory {
namespace {

using testing::ChildProcess;
using testing::kPage;

// Records the requested addresses, faults below 100, and can be made to wait.
class ScriptedMemory : public MemorySpace {
 public:
  size_t Execute(std::span<MemoryOp> ops, MemoryCounts& counts) override {
    gate.wait(false, std::memory_order_acquire);
    for (size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].address < 100) return i;
      order.push_back(ops[i].address);
      ++counts.cross_operations;
    }
    return ops.size();
  }
  void Open() {
    gate.store(true, std::memory_order_release);
    gate.notify_all();
  }
  std::atomic<bool> gate{true};
  std::vector<uint64_t> order;
};

class TaggedUser : public Batch::User {
 public:
  explicit TaggedUser(int t) : tag(t) {}
  int tag;
};

std::unique_ptr<Batch> MakeBatch(std::vector<uint64_t> addresses, std::vector<uint32_t> groups = {},
                                 int tag = 0) {
  auto batch = std::make_unique<Batch>();
  for (const uint64_t address : addresses) {
    MemoryOp op;
    op.address = address;
    batch->ops.push_back(op);
  }
  batch->groups = std::move(groups);
  batch->user = std::make_unique<TaggedUser>(tag);
  return batch;
}

int TagOf(const Batch& batch) { return static_cast<const TaggedUser&>(*batch.user).tag; }

std::unique_ptr<Batch> CollectSoon(Copier& copier, WorkerIndex worker) {
  while (true) {
    if (auto batch = copier.Collect(worker)) return batch;
    ::sched_yield();
  }
}

void WaitForThreads(size_t count) {
  while (Copier::LiveThreads() != count) ::sched_yield();
}

// Threads of an earlier test may still be ending.
class Copiers : public ::testing::Test {
 protected:
  void SetUp() override { WaitForThreads(0); }
};

TEST_F(Copiers, Batches_ComeBackInOrderToTheirWorker) {
  auto memory = std::make_shared<ScriptedMemory>();
  auto copier = Copier::Start(memory, nullptr, {2, 8, {}});
  ASSERT_TRUE(copier.ok());
  for (int i = 0; i < 6; ++i) {
    auto batch = MakeBatch({100u + static_cast<uint64_t>(i)}, {}, i);
    ASSERT_TRUE((*copier)->Submit(static_cast<WorkerIndex>(i % 2), batch));
    EXPECT_EQ(batch, nullptr);
  }
  for (const int i : {0, 2, 4}) EXPECT_EQ(TagOf(*CollectSoon(**copier, 0)), i);
  for (const int i : {1, 3, 5}) EXPECT_EQ(TagOf(*CollectSoon(**copier, 1)), i);
  EXPECT_EQ((*copier)->Collect(0), nullptr);
}

TEST_F(Copiers, Full_IsRefusedUntilSomethingWasCollected) {
  auto memory = std::make_shared<ScriptedMemory>();
  memory->gate.store(false);
  auto copier = Copier::Start(memory, nullptr, {1, 4, {}});
  ASSERT_TRUE(copier.ok());
  for (int i = 0; i < 4; ++i) {
    auto batch = MakeBatch({100}, {}, i);
    ASSERT_TRUE((*copier)->Submit(0, batch));
  }
  auto fifth = MakeBatch({100}, {}, 4);
  EXPECT_FALSE((*copier)->Submit(0, fifth));
  ASSERT_NE(fifth, nullptr) << "still the caller's";
  memory->Open();
  EXPECT_EQ(TagOf(*CollectSoon(**copier, 0)), 0);
  EXPECT_TRUE((*copier)->Submit(0, fifth));
  for (const int i : {1, 2, 3, 4}) EXPECT_EQ(TagOf(*CollectSoon(**copier, 0)), i);
}

TEST_F(Copiers, Faults_AreListedAndOthersGoOn) {
  auto memory = std::make_shared<ScriptedMemory>();
  auto copier = Copier::Start(memory, nullptr, {1, 4, {}});
  auto batch = MakeBatch({200, 1, 201, 2, 202});
  ASSERT_TRUE((*copier)->Submit(0, batch));
  batch = CollectSoon(**copier, 0);
  EXPECT_EQ(batch->failed, (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(memory->order, (std::vector<uint64_t>{200, 201, 202}));
  EXPECT_EQ(batch->counts.cross_operations, 3u);
}

TEST_F(Copiers, FaultOfAGroup_EndsThatGroupOnly) {
  auto memory = std::make_shared<ScriptedMemory>();
  auto copier = Copier::Start(memory, nullptr, {1, 4, {}});
  auto batch = MakeBatch({200, 1, 201, 202, 203, 2, 204}, {7, 8, 7, 8, 9, 9, 9});
  ASSERT_TRUE((*copier)->Submit(0, batch));
  batch = CollectSoon(**copier, 0);
  EXPECT_EQ(batch->failed, (std::vector<uint32_t>{1, 3, 5, 6}));
  EXPECT_EQ(memory->order, (std::vector<uint64_t>{200, 201, 203}));
}

TEST_F(Copiers, Done_WakesTheWorker) {
  const UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  auto copier = Copier::Start(std::make_shared<ScriptedMemory>(), nullptr, {1, 4, {wake.get()}});
  auto batch = MakeBatch({200});
  ASSERT_TRUE((*copier)->Submit(0, batch));
  pollfd poll_wake{wake.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&poll_wake, 1, 10000), 1);
  EXPECT_NE((*copier)->Collect(0), nullptr);
}

TEST_F(Copiers, TwoWorkersAtOnce_EverythingComesBack) {
  constexpr int kBatches = 3000;
  auto copier = Copier::Start(std::make_shared<ScriptedMemory>(), nullptr, {2, 16, {}});
  ASSERT_TRUE(copier.ok());
  std::vector<std::thread> workers;
  for (WorkerIndex w = 0; w < 2; ++w) {
    workers.emplace_back([&copier, w] {
      int submitted = 0;
      int collected = 0;
      while (collected < kBatches) {
        if (submitted < kBatches) {
          auto batch = MakeBatch({100, 101}, {}, submitted);
          if ((*copier)->Submit(w, batch)) ++submitted;
        }
        if (auto batch = (*copier)->Collect(w)) {
          ASSERT_EQ(TagOf(*batch), collected);
          ++collected;
        }
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
}

TEST_F(Copiers, Stop_EndsTheThreadAndFreesBatches) {
  auto memory = std::make_shared<ScriptedMemory>();
  {
    auto copier = Copier::Start(memory, nullptr, {1, 4, {}});
    EXPECT_EQ(Copier::LiveThreads(), 1u);
    auto batch = MakeBatch({200});
    (*copier)->Submit(0, batch);
  }
  WaitForThreads(0);
  EXPECT_EQ(memory.use_count(), 1);
}

// A client blocks its reader with a page under a userfaultfd that nobody serves.
TEST_F(Copiers, BlockedByUserfaultfd_StopsNobodyElse) {
  const auto block = [](uint8_t* memory) {
    const int uffd = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
    uffdio_api api{};
    api.api = UFFD_API;
    uffdio_register range{};
    range.range.start = reinterpret_cast<uint64_t>(memory);
    range.range.len = kPage;
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    if (::madvise(memory, kPage, MADV_DONTNEED) != 0 || ::ioctl(uffd, UFFDIO_API, &api) != 0 ||
        ::ioctl(uffd, UFFDIO_REGISTER, &range) != 0) {
      ::_exit(1);
    }
    return uffd;
  };
  AtomicLocks locks;
  ChildProcess fine({2, 0, nullptr});  // forked first: it must not inherit the descriptor below
  ChildProcess blocking({2, 0, block});
  pollfd fault{blocking.fd(), POLLIN, 0};

  auto alive = std::make_shared<int>(1);
  auto blocked =
      Copier::Start(std::make_shared<CrossProcessMemory>(blocking.pid(), locks), alive, {1, 4, {}});
  auto other =
      Copier::Start(std::make_shared<CrossProcessMemory>(fine.pid(), locks), nullptr, {1, 4, {}});
  ASSERT_TRUE(blocked.ok() && other.ok());
  const auto read_of = [](const ChildProcess& process) {
    auto batch = std::make_unique<Batch>();
    batch->staging.resize(64);
    MemoryOp op;
    op.address = process.address();
    op.length = 64;
    op.buffer = batch->staging.data();
    batch->ops.push_back(op);
    return batch;
  };
  auto batch = read_of(blocking);
  ASSERT_TRUE((*blocked)->Submit(0, batch));
  // The fault is reported, so the thread blocks in the kernel.
  ASSERT_EQ(::poll(&fault, 1, 10000), 1);

  batch = read_of(fine);
  ASSERT_TRUE((*other)->Submit(0, batch));
  EXPECT_TRUE(CollectSoon(**other, 0)->failed.empty());
  EXPECT_EQ((*blocked)->Collect(0), nullptr);

  // Destruction does not wait; objects that the thread uses live until it ends.
  blocked->reset();
  EXPECT_EQ(alive.use_count(), 2);
  EXPECT_EQ(Copier::LiveThreads(), 2u);
  ::close(blocking.ReleaseFd());
  blocking.Kill();
  other->reset();
  WaitForThreads(0);
  EXPECT_EQ(alive.use_count(), 1);
}

}  // namespace
}  // namespace rocegw::memory
