// SPDX-License-Identifier: Apache-2.0
// Access to memory that may fault: of other processes (real children) and of this process. Order,
// batches, the exact position of faults, atomics.
#include "gateway/memory/foreign_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gateway/memory/cross_process.h"
#include "gateway/memory/descriptor.h"
#include "gateway/memory/own_memory.h"
#include "tests/support/random.h"
#include "tests/unit/memory/child_process.h"

namespace rocegw::memory {
namespace {

using testing::ChildProcess;
using testing::kPage;

enum class AccessMode { kCross, kDescriptor, kOwn };

class Foreign : public ::testing::TestWithParam<AccessMode> {
 protected:
  // Fills pages with a pattern of their offsets; page 2 is not accessible, page 3 is read-only.
  static int Prepare(uint8_t* memory) {
    for (size_t i = 0; i < 4 * kPage; ++i) memory[i] = static_cast<uint8_t>(i * 31 >> 3);
    ::mprotect(memory + 2 * kPage, kPage, PROT_NONE);
    ::munmap(memory + 2 * kPage, kPage);
    ::mprotect(memory + 3 * kPage, kPage, PROT_READ);
    return ::open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  }
  static uint8_t Original(size_t at) { return static_cast<uint8_t>(at * 31 >> 3); }

  static constexpr size_t kOwnBytes = 4 * kPage;

  void SetUp() override {
    space = Open(child);
    base = child.address();
    if (GetParam() != AccessMode::kOwn) return;
    own_pages = static_cast<uint8_t*>(
        ::mmap(nullptr, kOwnBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::close(Prepare(own_pages));
    base = reinterpret_cast<uint64_t>(own_pages);
  }
  void TearDown() override {
    if (own_pages != nullptr) ::munmap(own_pages, kOwnBytes);
  }
  std::unique_ptr<ForeignMemory> Open(ChildProcess& process) {
    if (GetParam() == AccessMode::kOwn) return std::make_unique<OwnMemory>(locks);
    if (GetParam() == AccessMode::kCross)
      return std::make_unique<CrossProcessMemory>(process.pid(), locks);
    return std::make_unique<DescriptorMemory>(UniqueFd(process.ReleaseFd()), locks);
  }
  MemoryOp Op(OpKind kind, uint64_t at, uint32_t length, uint8_t* buffer) {
    MemoryOp op;
    op.kind = kind;
    op.address = base + at;
    op.length = length;
    op.buffer = buffer;
    return op;
  }
  size_t Execute(std::vector<MemoryOp>& ops) { return space->Execute(ops, counts); }
  std::vector<uint8_t> Peek(uint64_t at, uint32_t length) {
    std::vector<uint8_t> bytes(length);
    std::vector<MemoryOp> ops{Op(OpKind::kRead, at, length, bytes.data())};
    MemoryCounts ignored;
    EXPECT_EQ(space->Execute(ops, ignored), 1u);
    return bytes;
  }

  AtomicLocks locks;
  ChildProcess child{{4, 0, Prepare}};
  uint8_t* own_pages = nullptr;
  uint64_t base = 0;
  std::unique_ptr<ForeignMemory> space;
  MemoryCounts counts;
};

TEST_P(Foreign, ReadAndWrite_AcrossPages) {
  std::vector<uint8_t> bytes(6000);
  std::vector<MemoryOp> ops{Op(OpKind::kRead, 100, 6000, bytes.data())};
  ASSERT_EQ(Execute(ops), 1u);
  for (size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], Original(100 + i));
  std::vector<uint8_t> fresh(6000, 0x77);
  ops = {Op(OpKind::kWrite, 50, 6000, fresh.data())};
  ops[0].publish = true;
  ASSERT_EQ(Execute(ops), 1u);
  EXPECT_EQ(Peek(50, 6000), fresh);
  EXPECT_EQ(Peek(49, 1)[0], Original(49));
  EXPECT_EQ(Peek(6050, 1)[0], Original(6050));
  EXPECT_EQ(counts.cross_operations, 2u);
  EXPECT_EQ(counts.cross_bytes, 12000u);
  EXPECT_EQ(counts.direct_operations, 0u);
}

TEST_P(Foreign, ManyPieces_MoreThanOneCallHolds) {
  constexpr size_t kPieces = 3000;
  std::vector<uint8_t> bytes(2 * kPage);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i ^ 0x5C);
  // Two bytes at a time, odd pieces first, so that nothing is contiguous; each published.
  std::vector<MemoryOp> ops;
  for (const size_t parity : {1u, 0u}) {
    for (size_t i = parity; i < kPieces; i += 2) {
      ops.push_back(Op(OpKind::kWrite, i * 2, 2, bytes.data() + i * 2));
      ops.back().publish = true;
    }
  }
  ASSERT_EQ(Execute(ops), kPieces);
  EXPECT_EQ(std::memcmp(Peek(0, kPieces * 2).data(), bytes.data(), kPieces * 2), 0);
  EXPECT_EQ(counts.cross_operations, kPieces);
}

TEST_P(Foreign, ContiguousPieces_AreJoinedAndRight) {
  std::vector<uint8_t> bytes(2 * kPage);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 3);
  std::vector<MemoryOp> ops;
  for (size_t at = 0; at < bytes.size(); at += 64)
    ops.push_back(Op(OpKind::kWrite, at, 64, bytes.data() + at));
  ASSERT_EQ(Execute(ops), ops.size());
  EXPECT_EQ(Peek(0, 2 * kPage), bytes);
}

TEST_P(Foreign, Order_LaterWinsWhereTheyOverlap) {
  uint8_t a[64], b[64], seen[64];
  std::memset(a, 1, sizeof a);
  std::memset(b, 2, sizeof b);
  std::vector<MemoryOp> ops{Op(OpKind::kWrite, 0, 64, a), Op(OpKind::kWrite, 32, 64, b),
                            Op(OpKind::kRead, 0, 64, seen), Op(OpKind::kWrite, 0, 64, a)};
  ASSERT_EQ(Execute(ops), 4u);
  EXPECT_EQ(seen[31], 1);
  EXPECT_EQ(seen[32], 2);
  EXPECT_EQ(Peek(32, 1)[0], 1);
}

TEST_P(Foreign, Fault_IndexIsExact) {
  uint8_t buffer[16] = {};
  for (const OpKind kind : {OpKind::kRead, OpKind::kWrite}) {
    for (size_t bad = 0; bad < 5; ++bad) {
      std::vector<MemoryOp> ops;
      for (size_t i = 0; i < 5; ++i)
        ops.push_back(Op(kind, i == bad ? 2 * kPage + 5 : i * 16, 16, buffer));
      EXPECT_EQ(Execute(ops), bad);
      EXPECT_FALSE(space->Gone());
    }
  }
}

TEST_P(Foreign, Fault_InTheMiddleOfOne_ThoseBeforeAreDone) {
  std::vector<uint8_t> big(kPage, 0x42);
  uint8_t small[8] = {9, 9, 9, 9, 9, 9, 9, 9};
  std::vector<MemoryOp> ops{Op(OpKind::kWrite, 0, 8, small),
                            Op(OpKind::kWrite, kPage + 100, kPage, big.data()),
                            Op(OpKind::kWrite, 8, 8, small)};
  EXPECT_EQ(Execute(ops), 1u);
  EXPECT_EQ(Peek(0, 1)[0], 9);
  EXPECT_EQ(Peek(8, 1)[0], Original(8)) << "what follows a fault was not begun";
  EXPECT_EQ(counts.cross_operations, 1u);
}

TEST_P(Foreign, Fault_ContiguousRunThatLeavesTheMapping) {
  std::vector<uint8_t> bytes(64);
  std::vector<MemoryOp> ops;
  for (size_t i = 0; i < 8; ++i)
    ops.push_back(Op(OpKind::kRead, 2 * kPage - 4 * 64 + i * 64, 64, bytes.data()));
  EXPECT_EQ(Execute(ops), 4u);
}

TEST_P(Foreign, ReadOnlyPages_CanBeRead) {
  uint8_t byte = 0;
  std::vector<MemoryOp> ops{Op(OpKind::kRead, 3 * kPage, 1, &byte)};
  EXPECT_EQ(Execute(ops), 1u);
  EXPECT_EQ(byte, Original(3 * kPage));
  ops[0].kind = OpKind::kWrite;
  // The mem file ignores write protection (the library checks it when it registers); the other
  // modes do not.
  EXPECT_EQ(Execute(ops), GetParam() == AccessMode::kDescriptor ? 1u : 0u);
}

TEST_P(Foreign, ZeroLength_IsDoneAnywhere) {
  std::vector<MemoryOp> ops{Op(OpKind::kWrite, 2 * kPage, 0, nullptr),
                            Op(OpKind::kRead, 0, 0, nullptr)};
  ops[0].publish = true;
  EXPECT_EQ(Execute(ops), 2u);
  ops.clear();
  EXPECT_EQ(Execute(ops), 0u);
}

TEST_P(Foreign, WildAddresses_Fault) {
  uint8_t buffer[64];
  for (const uint64_t address :
       {uint64_t{0}, uint64_t{1} << 47, uint64_t{1} << 63, ~uint64_t{63}}) {
    for (const OpKind kind : {OpKind::kRead, OpKind::kWrite, OpKind::kFetchAdd}) {
      MemoryOp op = Op(kind, 0, kind == OpKind::kFetchAdd ? 8 : 64, buffer);
      op.address = address;
      std::vector<MemoryOp> ops{op};
      EXPECT_EQ(Execute(ops), 0u) << address;
    }
  }
}

TEST_P(Foreign, Atomics_ReadChangeWrite) {
  uint64_t value = 100;
  uint64_t original = 0;
  std::vector<MemoryOp> ops{Op(OpKind::kWrite, 16, 8, reinterpret_cast<uint8_t*>(&value)),
                            Op(OpKind::kFetchAdd, 16, 8, reinterpret_cast<uint8_t*>(&original))};
  ops[1].swap_or_add = 5;
  ASSERT_EQ(Execute(ops), 2u);
  EXPECT_EQ(original, 100u);
  MemoryOp swap = Op(OpKind::kCompareSwap, 16, 8, reinterpret_cast<uint8_t*>(&original));
  swap.compare = 105;
  swap.swap_or_add = 1;
  ops = {swap, swap};
  ASSERT_EQ(Execute(ops), 2u);
  EXPECT_EQ(original, 1u) << "the second found the first's value and changed nothing";
  MemoryOp store = Op(OpKind::kAtomicStore, 16, 8, reinterpret_cast<uint8_t*>(&original));
  store.swap_or_add = 77;
  ops = {store, store};
  ASSERT_EQ(Execute(ops), 2u);
  EXPECT_EQ(original, 77u) << "the second found the first's";
  MemoryOp crooked = Op(OpKind::kFetchAdd, 12, 8, reinterpret_cast<uint8_t*>(&original));
  ops = {crooked};
  EXPECT_EQ(Execute(ops), 0u);
  MemoryOp nowhere = Op(OpKind::kFetchAdd, 2 * kPage, 8, reinterpret_cast<uint8_t*>(&original));
  ops = {nowhere};
  EXPECT_EQ(Execute(ops), 0u);
}

// Several workers access the same word, each through its own MemorySpace.
TEST_P(Foreign, Atomics_FromSeveralThreads_LoseNothing) {
  constexpr int kThreads = 3;
  constexpr int kAdds = 3000;
  uint64_t zero = 0;
  std::vector<MemoryOp> clear{Op(OpKind::kWrite, 64, 8, reinterpret_cast<uint8_t*>(&zero))};
  ASSERT_EQ(Execute(clear), 1u);
  const pid_t process = GetParam() == AccessMode::kOwn ? ::getpid() : child.pid();
  std::vector<std::unique_ptr<ForeignMemory>> spaces;
  for (int t = 0; t < kThreads; ++t)
    spaces.push_back(std::make_unique<CrossProcessMemory>(process, locks));
  spaces.push_back(std::move(space));
  std::vector<std::thread> threads;
  for (auto& own : spaces) {
    threads.emplace_back([&, memory = own.get()] {
      uint64_t original = 0;
      MemoryOp op = Op(OpKind::kFetchAdd, 64, 8, reinterpret_cast<uint8_t*>(&original));
      op.swap_or_add = 1;
      MemoryCounts mine;
      for (int i = 0; i < kAdds; ++i) ASSERT_EQ(memory->Execute({&op, 1}, mine), 1u);
    });
  }
  for (std::thread& thread : threads) thread.join();
  space = std::move(spaces.back());
  uint64_t sum = 0;
  std::memcpy(&sum, Peek(64, 8).data(), 8);
  EXPECT_EQ(sum, uint64_t{kThreads + 1} * kAdds);
}

TEST_P(Foreign, DirectAndCross_KeepTheirOrder) {
  uint8_t mapped[64] = {};
  uint8_t one[8], two[8], seen[8] = {};
  std::memset(one, 1, 8);
  std::memset(two, 2, 8);
  std::vector<MemoryOp> ops{Op(OpKind::kWrite, 0, 8, one), Op(OpKind::kWrite, 0, 8, two),
                            Op(OpKind::kRead, 0, 8, seen), Op(OpKind::kRead, 0, 8, seen)};
  ops[1].direct = mapped;
  ops[3].direct = mapped;
  ASSERT_EQ(Execute(ops), 4u);
  EXPECT_EQ(seen[0], 2);
  EXPECT_EQ(Peek(0, 1)[0], 1);
  EXPECT_EQ(counts.direct_operations, 2u);
  EXPECT_EQ(counts.direct_bytes, 16u);
  EXPECT_EQ(counts.cross_operations, 2u);
}

class OtherProcess : public Foreign {};

TEST_P(OtherProcess, Gone_EverythingFaults) {
  child.Kill();
  uint8_t buffer[8] = {};
  std::vector<MemoryOp> ops{Op(OpKind::kRead, 0, 8, buffer)};
  EXPECT_EQ(Execute(ops), 0u);
  EXPECT_TRUE(space->Gone());
  ops[0].kind = OpKind::kWrite;
  EXPECT_EQ(Execute(ops), 0u);
}

TEST_P(Foreign, Revoke_StopsEverything) {
  uint8_t buffer[8] = {};
  uint8_t mapped[8] = {};
  std::vector<MemoryOp> ops{Op(OpKind::kRead, 0, 8, buffer)};
  ASSERT_EQ(Execute(ops), 1u);
  EXPECT_FALSE(space->Gone());
  space->Revoke();
  EXPECT_EQ(Execute(ops), 0u);
  EXPECT_TRUE(space->Gone()) << "its session ends: nobody is told that an access was wrong";
  ops[0].direct = mapped;
  EXPECT_EQ(Execute(ops), 0u);
}

// A program that polls on the last word of a WRITE must find the rest there.
TEST_P(Foreign, Publish_LastWordIsVisibleLast) {
  constexpr size_t kLength = kPage;
  constexpr uint64_t kRounds = 400;
  // The child checks that the first and middle words never lag behind the flag at the end, and
  // counts violations.
  struct Shared {
    volatile uint64_t seen;
    volatile uint64_t violations;
  };
  auto* const shared = static_cast<Shared*>(
      ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<uint8_t> payload(kLength);
  // Writes to this process's own memory must be visible to the child.
  const int kind = GetParam() == AccessMode::kOwn ? MAP_SHARED : MAP_PRIVATE;
  auto* const target = static_cast<uint8_t*>(
      ::mmap(nullptr, kLength, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0));
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t watcher = ::fork();
  if (watcher == 0) {
    target[0] = 0;
    ::close(pipe_ends[0]);
    const int mem = ::open("/proc/self/mem", O_RDWR);
    // The parent opens its own access to the child and only needs to know that the child runs.
    (void)!::write(pipe_ends[1], &mem, sizeof mem);
    const auto* const first = reinterpret_cast<const volatile uint64_t*>(target);
    const auto* const middle = reinterpret_cast<const volatile uint64_t*>(target + kLength / 2);
    const auto* const last = reinterpret_cast<const volatile uint64_t*>(target + kLength - 8);
    for (uint64_t polls = 0; shared->seen < kRounds;) {
      const uint64_t flag = __atomic_load_n(last, __ATOMIC_ACQUIRE);
      if (*first < flag || *middle < flag) shared->violations = shared->violations + 1;
      shared->seen = flag;
      if (++polls % 256 == 0) ::sched_yield();
    }
    ::_exit(0);
  }
  int child_fd = -1;
  ASSERT_EQ(::read(pipe_ends[0], &child_fd, sizeof child_fd),
            static_cast<ssize_t>(sizeof child_fd));
  std::unique_ptr<ForeignMemory> path;
  if (GetParam() == AccessMode::kOwn) {
    path = std::make_unique<OwnMemory>(locks);
  } else if (GetParam() == AccessMode::kCross) {
    path = std::make_unique<CrossProcessMemory>(watcher, locks);
  } else {
    path = std::make_unique<DescriptorMemory>(
        UniqueFd(::open(("/proc/" + std::to_string(watcher) + "/mem").c_str(), O_RDWR | O_CLOEXEC)),
        locks);
  }
  for (uint64_t round = 1; round <= kRounds; ++round) {
    for (size_t at = 0; at < kLength; at += 8) std::memcpy(payload.data() + at, &round, 8);
    MemoryOp op;
    op.kind = OpKind::kWrite;
    op.publish = true;
    op.address = reinterpret_cast<uint64_t>(target);
    op.length = kLength;
    op.buffer = payload.data();
    ASSERT_EQ(path->Execute({&op, 1}, counts), 1u);
    while (shared->seen < round) ::sched_yield();
  }
  ::waitpid(watcher, nullptr, 0);
  EXPECT_EQ(shared->violations, 0u);
  ::munmap(shared, kPage);
  ::munmap(target, kLength);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

// Random batches, compared with a byte array.
TEST_P(Foreign, RandomBatches_LikeAByteArray) {
  testing::Random random(testing::TestSeed(21));
  constexpr size_t kBytes = 2 * kPage;
  std::vector<uint8_t> model(kBytes);
  for (size_t i = 0; i < kBytes; ++i) model[i] = Original(i);
  for (int round = 0; round < 300; ++round) {
    const size_t count = random.Between(1, 60);
    std::vector<std::vector<uint8_t>> buffers(count);
    std::vector<std::vector<uint8_t>> expected(count);
    std::vector<MemoryOp> ops;
    size_t stop = count;
    for (size_t i = 0; i < count; ++i) {
      const size_t length = random.Below(random.Coin() ? 20 : 1500);
      const size_t at = random.Below(kBytes - length + 1);
      buffers[i] = random.Bytes(std::max<size_t>(length, 8));
      expected[i] = buffers[i];
      MemoryOp op = Op(random.Coin() ? OpKind::kWrite : OpKind::kRead, at,
                       static_cast<uint32_t>(length), buffers[i].data());
      op.publish = random.Coin();
      if (random.Below(10) == 0) {
        op.kind = OpKind::kFetchAdd;
        op.address = base + (at & ~size_t{7});
        op.length = 8;
        op.swap_or_add = random.Bits();
        if ((at & ~size_t{7}) + 8 > kBytes) op.address = base;
      }
      if (random.Below(300) == 0) {
        op.address = base + 2 * kPage + 8;
        op.length = 8;
      }
      const size_t place = op.address - base;
      if (place >= kBytes && stop == count) stop = i;
      if (stop == count) {
        if (op.kind == OpKind::kWrite)
          std::memcpy(model.data() + place, buffers[i].data(), op.length);
        if (op.kind == OpKind::kRead)
          std::memcpy(expected[i].data(), model.data() + place, op.length);
        if (op.kind == OpKind::kFetchAdd) {
          uint64_t word = 0;
          std::memcpy(&word, model.data() + place, 8);
          std::memcpy(expected[i].data(), &word, 8);
          word += op.swap_or_add;
          std::memcpy(model.data() + place, &word, 8);
        }
      }
      ops.push_back(op);
    }
    ASSERT_EQ(Execute(ops), stop) << "round " << round;
    for (size_t i = 0; i < stop; ++i)
      ASSERT_EQ(buffers[i], expected[i]) << "round " << round << " op " << i;
    ASSERT_EQ(Peek(0, kBytes), model) << "round " << round;
  }
}

std::string NameOf(const ::testing::TestParamInfo<AccessMode>& mode) {
  return mode.param == AccessMode::kCross        ? "Cross"
         : mode.param == AccessMode::kDescriptor ? "Descriptor"
                                                 : "Own";
}
INSTANTIATE_TEST_SUITE_P(Modes, Foreign,
                         ::testing::Values(AccessMode::kCross, AccessMode::kDescriptor,
                                           AccessMode::kOwn),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Modes, OtherProcess,
                         ::testing::Values(AccessMode::kCross, AccessMode::kDescriptor), NameOf);

}  // namespace
}  // namespace rocegw::memory
