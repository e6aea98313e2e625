// SPDX-License-Identifier: Apache-2.0
// Behaviour of own memory only (the rest is in foreign_memory_test.cc): amounts that use the other
// system call, a system that refuses the file, and a program that unmaps registered memory.
#include "gateway/memory/own_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

namespace rocegw::memory {
namespace {

constexpr size_t kPageSize = 4096;

class Own : public ::testing::Test {
 protected:
  static MemoryOp Op(OpKind kind, void* at, std::vector<uint8_t>& buffer) {
    MemoryOp op;
    op.kind = kind;
    op.address = reinterpret_cast<uint64_t>(at);
    op.length = static_cast<uint32_t>(buffer.size());
    op.buffer = buffer.data();
    return op;
  }
  size_t Execute(MemoryOp op) { return space.Execute({&op, 1}, counts); }
  static std::vector<uint8_t> Pattern(size_t bytes) {
    std::vector<uint8_t> pattern(bytes);
    for (size_t i = 0; i < bytes; ++i) pattern[i] = static_cast<uint8_t>(i * 7 >> 2);
    return pattern;
  }
  void ExpectWrittenAndRead(size_t bytes) {
    std::vector<uint8_t> sent = Pattern(bytes);
    std::vector<uint8_t> memory(bytes);
    std::vector<uint8_t> got(bytes);
    EXPECT_EQ(Execute(Op(OpKind::kWrite, memory.data(), sent)), 1u);
    EXPECT_EQ(memory, sent);
    EXPECT_EQ(Execute(Op(OpKind::kRead, memory.data(), got)), 1u);
    EXPECT_EQ(got, sent);
  }

  AtomicLocks locks;
  OwnMemory space{locks};
  MemoryCounts counts;
};

TEST_F(Own, Sizes_OnBothSidesOfTheLimit) {
  for (const size_t bytes : {1u, 4095u, 32u << 10, (32u << 10) + 1, 1u << 20})
    ExpectWrittenAndRead(bytes);
}

TEST_F(Own, Fault_InTheMiddleOfALargeOne) {
  constexpr size_t kBytes = 32 * kPageSize;
  auto* const memory = static_cast<uint8_t*>(
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(::munmap(memory + 20 * kPageSize, kPageSize), 0);
  std::vector<uint8_t> buffer = Pattern(kBytes);
  EXPECT_EQ(Execute(Op(OpKind::kWrite, memory, buffer)), 0u);
  EXPECT_EQ(memory[20 * kPageSize - 1], buffer[20 * kPageSize - 1]) << "what came before was done";
  EXPECT_EQ(Execute(Op(OpKind::kRead, memory, buffer)), 0u);
  EXPECT_FALSE(space.Gone());
  ::munmap(memory, kBytes);
}

TEST_F(Own, LimitOnFiles_IsNoFault) {
  ExpectWrittenAndRead(64);  // this thread has its file now
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  ExpectWrittenAndRead(64);
  std::thread([this] { ExpectWrittenAndRead(64); }).join();  // and this one gets none
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
}

// A failure of this test is a crash.
TEST_F(Own, UnmappedMeanwhile_IsAFaultOrDone) {
  constexpr size_t kBytes = 4 * kPageSize;
  const auto map = [](void* at, int flags) {
    return ::mmap(at, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  };
  void* const memory = map(nullptr, 0);
  std::atomic<bool> done{false};
  std::thread program([&] {
    while (!done.load()) {
      ::munmap(memory, kBytes);
      map(memory, MAP_FIXED_NOREPLACE);
    }
  });
  size_t executed = 0;
  std::vector<uint8_t> buffer(kBytes);
  for (int i = 0; i < 4000; ++i) {
    MemoryOp op = Op(i % 2 == 0 ? OpKind::kWrite : OpKind::kRead, memory, buffer);
    executed += space.Execute({&op, 1}, counts);
  }
  done.store(true);
  program.join();
  EXPECT_EQ(counts.cross_operations, executed);
  ::munmap(memory, kBytes);
}

}  // namespace
}  // namespace rocegw::memory
