// SPDX-License-Identifier: Apache-2.0
// Memory that moves onto pages of the daemon and back, while the program's threads and system calls
// use it: no visible effect.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/unit/client/remap/remap_fixture.h"

namespace rocegw::testing {
namespace {

void FillWithPositions(Memory& memory) {
  for (size_t i = 0; i < memory.size(); i += 8) {
    const uint64_t value = i * 0x9E3779B97F4A7C15 + 1;
    memcpy(memory.data() + i, &value, 8);
  }
}

size_t WrongWords(Memory& memory) {
  size_t wrong = 0;
  for (size_t i = 0; i < memory.size(); i += 8) {
    const uint64_t value = i * 0x9E3779B97F4A7C15 + 1;
    wrong += memcmp(memory.data() + i, &value, 8) != 0 ? 1 : 0;
  }
  return wrong;
}

// Returns the number of mappings in the range.
int AreasIn(const void* start, size_t length) {
  int count = 0;
  auto at = reinterpret_cast<uint64_t>(start);
  const uint64_t end = at + length;
  while (at < end) {
    client::MappedArea area{};
    if (client::FindMappedArea(at, &area) != 0 || area.start >= end) break;
    ++count;
    at = area.end;
  }
  return count;
}

// ------------------------------------------------------------------------------------------------
// sharing

TEST_F(RemapTest, Register_LargeMemory_IsSharedWithTheDaemon) {
  setenv("ROCEGW_REMAP", "auto", 1);
  Memory memory(3 * kMiB);
  FillWithPositions(memory);
  ibv_mr* mr = Register(memory.data(), memory.size());
  EXPECT_EQ(WrongWords(memory), 0u);
  const FakeRegion region = OnlyRegion();
  EXPECT_EQ(region.address, reinterpret_cast<uint64_t>(memory.data()));
  EXPECT_EQ(region.length, memory.size());
  EXPECT_EQ(Told().region, region.handle);
  EXPECT_EQ(Told().region_offset, 0u);
  EXPECT_EQ(Told().kept, 0u);
  EXPECT_EQ(memcmp(region.base, memory.data(), memory.size()), 0);
  region.base[kMiB + 5] = 0x5A;
  EXPECT_EQ(memory[kMiB + 5], 0x5A);
  memory[2 * kMiB + 7] = 0xA5;
  EXPECT_EQ(region.base[2 * kMiB + 7], 0xA5);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(RemapTest, Deregister_MemoryIsPrivateAgain) {
  Memory memory(3 * kMiB + kPage);
  FillWithPositions(memory);
  ibv_mr* mr = Register(memory.data(), memory.size());
  EXPECT_FALSE(IsPrivate(memory.data()));
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_TRUE(daemon_->Regions().empty());
  EXPECT_EQ(WrongWords(memory), 0u);
  EXPECT_TRUE(IsPrivate(memory.data()));
  EXPECT_EQ(AreasIn(memory.data(), memory.size()), 1) << "the pieces are one mapping again";
  // Again, now that the pages have been moved once.
  mr = Register(memory.data(), memory.size());
  EXPECT_FALSE(IsPrivate(memory.data()));
  EXPECT_EQ(WrongWords(memory), 0u);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(WrongWords(memory), 0u);
}

TEST_F(RemapTest, Register_NotWholePages_SharesOnlyThoseInside) {
  Memory memory(4 * kMiB);
  FillWithPositions(memory);
  uint8_t* start = memory.data() + kPage + 16;
  const size_t length = 2 * kMiB;
  ibv_mr* mr = Register(start, length);
  const FakeRegion region = OnlyRegion();
  EXPECT_EQ(region.address, reinterpret_cast<uint64_t>(memory.data()) + 2 * kPage);
  EXPECT_EQ(region.length, length - kPage);
  EXPECT_EQ(Told().region_offset, uint64_t{0} - (kPage - 16));
  EXPECT_TRUE(IsPrivate(start));
  EXPECT_TRUE(IsPrivate(start + length - 1));
  EXPECT_FALSE(IsPrivate(start + kPage));
  EXPECT_EQ(WrongWords(memory), 0u);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(WrongWords(memory), 0u);
}

TEST_F(RemapTest, Register_InsideOfWhatWasMoved_UsesTheSamePages) {
  setenv("ROCEGW_REMAP", "auto", 1);
  Memory memory(4 * kMiB);
  ibv_mr* all = Register(memory.data(), memory.size());
  ibv_mr* some = Register(memory.data() + kMiB + 100, 50);
  EXPECT_EQ(Told().region, OnlyRegion().handle);
  EXPECT_EQ(Told().region_offset, kMiB + 100);
  EXPECT_EQ(ibv_dereg_mr(all), 0);
  EXPECT_FALSE(IsPrivate(memory.data())) << "the small one still uses it";
  EXPECT_EQ(ibv_dereg_mr(some), 0);
  EXPECT_TRUE(IsPrivate(memory.data()));
  EXPECT_TRUE(daemon_->Regions().empty());
}

TEST_F(RemapTest, Reregister_OtherRights_StaysOnItsPages) {
  Memory memory(4 * kMiB);
  FillWithPositions(memory);
  ibv_mr* mr = Register(memory.data(), memory.size());
  const rocegw_reg_mr first = Told();
  ASSERT_EQ(
      0, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_LOCAL_WRITE));
  const auto told = daemon_->Last(ROCEGW_MSG_REREG_MR).As<rocegw_rereg_mr>();
  EXPECT_EQ(told.region, first.region);
  EXPECT_EQ(told.region_offset, first.region_offset);
  EXPECT_EQ(told.kept, 0u);
  EXPECT_FALSE(IsPrivate(memory.data()));
  EXPECT_EQ(WrongWords(memory), 0u);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_TRUE(IsPrivate(memory.data()));
  EXPECT_EQ(WrongWords(memory), 0u);
}

TEST_F(RemapTest, Reregister_Elsewhere_OldPagesArePrivateAgain) {
  Memory memory(4 * kMiB);
  Memory other(2 * kMiB);
  FillWithPositions(memory);
  FillWithPositions(other);
  ibv_mr* mr = Register(memory.data(), memory.size());
  const uint32_t first = Told().region;
  ASSERT_EQ(
      0, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, other.data(), other.size(), 0));
  const auto told = daemon_->Last(ROCEGW_MSG_REREG_MR).As<rocegw_rereg_mr>();
  EXPECT_NE(told.region, 0u);
  EXPECT_NE(told.region, first);
  EXPECT_TRUE(IsPrivate(memory.data()));
  EXPECT_FALSE(IsPrivate(other.data()));
  EXPECT_EQ(WrongWords(memory), 0u);
  EXPECT_EQ(WrongWords(other), 0u);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_TRUE(IsPrivate(other.data()));
}

TEST_F(RemapTest, Reregister_RefusedForAWindow_IsAskedOnce) {
  Memory memory(4 * kMiB);
  Memory other(2 * kMiB);
  ibv_mr* mr = Register(memory.data(), memory.size());
  daemon_->Fail(ROCEGW_MSG_REREG_MR, EBUSY);
  EXPECT_EQ(IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr,
                                                 other.data(), other.size(), 0));
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_REREG_MR).size());
  EXPECT_FALSE(IsPrivate(memory.data())) << "it is registered as before";
  EXPECT_TRUE(IsPrivate(other.data()));
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(RemapTest, Register_OverlappingInPart_IsReachedTheOtherWay) {
  Memory memory(6 * kMiB);
  FillWithPositions(memory);
  ibv_mr* first = Register(memory.data(), 4 * kMiB);
  ibv_mr* second = Register(memory.data() + 2 * kMiB, 4 * kMiB);
  EXPECT_EQ(Told().kept, static_cast<uint32_t>(ROCEGW_KEPT_IN_USE));
  // A cross-process copy may be writing to the shared pages: they stay until both registrations are
  // gone.
  EXPECT_EQ(ibv_dereg_mr(first), 0);
  EXPECT_FALSE(IsPrivate(memory.data()));
  EXPECT_EQ(ibv_dereg_mr(second), 0);
  EXPECT_TRUE(IsPrivate(memory.data()));
  EXPECT_EQ(WrongWords(memory), 0u);
}

TEST_F(RemapTest, Register_WhereTheDaemonMayWriteAcrossProcesses_DoesNotMove) {
  Memory memory(2 * kMiB);
  ibv_mr* small = Register(memory.data() + 100, 50);
  EXPECT_EQ(Told().kept, static_cast<uint32_t>(ROCEGW_KEPT_SMALL));
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()), static_cast<uint32_t>(ROCEGW_KEPT_IN_USE));
  EXPECT_EQ(ibv_dereg_mr(small), 0);
  ibv_mr* only_read = Register(memory.data() + 100, 50, IBV_ACCESS_REMOTE_READ);
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()), 0u);
  EXPECT_EQ(ibv_dereg_mr(only_read), 0);
}

// ------------------------------------------------------------------------------------------------
// under the program's own work

TEST_F(RemapTest, MovingToAndFro_UnderWritingThreads_LosesNothing) {
  Memory memory(16 * kMiB);
  constexpr size_t kThreads = 2;
  const size_t slots = memory.size() / 512;
  std::atomic<bool> stop{false};
  std::vector<std::vector<uint32_t>> written(kThreads, std::vector<uint32_t>(slots));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t k = 0; !stop.load(std::memory_order_relaxed); ++k) {
        const size_t slot = (k * 7919 + t) % slots;
        auto* counter = reinterpret_cast<volatile uint32_t*>(memory.data() + slot * 512 + t * 64);
        *counter = *counter + 1;
        ++written[t][slot];
      }
    });
  }
  // System calls that write there wait as well; they do not fail.
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  std::atomic<int> failed{0};
  threads.emplace_back([&] {
    for (size_t k = 0; !stop.load(std::memory_order_relaxed); ++k) {
      const auto value = static_cast<uint32_t>(k);
      uint8_t* place = memory.data() + (k * 104729 % slots) * 512 + 256;
      if (write(pipes[1], &value, 4) != 4 || read(pipes[0], place, 4) != 4 ||
          memcmp(place, &value, 4) != 0) {
        ++failed;
      }
    }
  });
  for (int round = 0; round < 10; ++round) {
    ibv_mr* mr = Register(memory.data(), memory.size());
    EXPECT_NE(Told().region, 0u);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  close(pipes[0]);
  close(pipes[1]);
  EXPECT_EQ(failed.load(), 0);
  size_t lost = 0;
  for (size_t t = 0; t < kThreads; ++t) {
    for (size_t slot = 0; slot < slots; ++slot) {
      uint32_t counter;
      memcpy(&counter, memory.data() + slot * 512 + t * 64, 4);
      lost += written[t][slot] - counter;
    }
  }
  EXPECT_EQ(lost, 0u);
  EXPECT_TRUE(IsPrivate(memory.data()));
}

uint8_t* g_signal_place = nullptr;
// Runs on any thread that the kernel chooses.
void WriteInHandler(int) { __atomic_fetch_add(g_signal_place, 1, __ATOMIC_RELAXED); }

TEST_F(RemapTest, MovingToAndFro_UnderSignals_HandlersMayWriteThere) {
  Memory memory(8 * kMiB);
  g_signal_place = memory.data() + 4 * kMiB;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = &WriteInHandler;
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  const itimerval often = {{0, 100}, {0, 100}};
  ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(KeptBecause(memory.data(), memory.size()), 0u);
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
}

TEST_F(RemapTest, UntouchedPages_StayWithoutMemory) {
  Memory memory(64 * kMiB);
  madvise(memory.data(), memory.size(), MADV_NOHUGEPAGE);
  memory[10 * kMiB] = 1;
  ibv_mr* mr = Register(memory.data(), memory.size());
  struct stat about {};
  ASSERT_EQ(fstat(OnlyRegion().fd, &about), 0);
  EXPECT_LT(about.st_blocks * 512, static_cast<off_t>(kMiB)) << "bytes that the memfd holds";
  EXPECT_EQ(memory[10 * kMiB], 1);
  EXPECT_EQ(memory[63 * kMiB], 0);
  memory[20 * kMiB] = 7;
  EXPECT_EQ(OnlyRegion().base[20 * kMiB], 7);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(memory[10 * kMiB], 1);
  EXPECT_EQ(memory[20 * kMiB], 7);
  EXPECT_EQ(memory[30 * kMiB], 0);
}

TEST_F(RemapTest, UntouchedPages_WrittenFirstWhileTheyMove_LoseNothing) {
  for (int round = 0; round < 10; ++round) {
    Memory memory(32 * kMiB);
    madvise(memory.data(), memory.size(), MADV_NOHUGEPAGE);
    const size_t pages = memory.size() / kPage;
    std::atomic<bool> started{false};
    // Writes each page once, in a scattered order.
    std::thread writer([&] {
      for (size_t k = 0; k < pages; ++k) {
        memory[k * 5003 % pages * kPage + 9] = 1;
        if (k == 100) started = true;
      }
    });
    while (!started) std::this_thread::yield();
    ibv_mr* mr = Register(memory.data(), memory.size());
    writer.join();
    size_t lost = 0;
    for (size_t page = 0; page < pages; ++page) lost += memory[page * kPage + 9] == 1 ? 0 : 1;
    EXPECT_EQ(lost, 0u) << "round " << round;
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    for (size_t page = 0; page < pages; ++page) lost += memory[page * kPage + 9] == 1 ? 0 : 1;
    EXPECT_EQ(lost, 0u) << "round " << round << ", after moving back";
  }
}

// Content of malloc's own large chunks, which it later grows and frees itself.
TEST_F(RemapTest, Malloc_ReallocAndFreeAfterwards) {
  constexpr size_t kSize = 5 * kMiB + 123;
  auto* block = static_cast<uint8_t*>(malloc(kSize));
  memset(block, 0x11, kSize);
  ibv_mr* mr = Register(block, kSize);
  EXPECT_NE(Told().region, 0u);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  block = static_cast<uint8_t*>(realloc(block, 4 * kSize));
  EXPECT_EQ(std::count(block, block + kSize, 0x11), static_cast<ptrdiff_t>(kSize));
  memset(block, 0x22, 4 * kSize);
  free(block);
}

// A program with the wrong order of calls gets memory, not a bus error.
TEST_F(RemapTest, Malloc_ReallocWhileRegistered) {
  constexpr size_t kSize = 5 * kMiB;
  auto* block = static_cast<uint8_t*>(malloc(kSize));
  memset(block, 0x11, kSize);
  ibv_mr* mr = Register(block, kSize);
  block = static_cast<uint8_t*>(realloc(block, 4 * kSize));
  EXPECT_EQ(std::count(block, block + kSize, 0x11), static_cast<ptrdiff_t>(kSize));
  memset(block, 0x22, 4 * kSize);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  memset(block, 0x33, 4 * kSize);
  free(block);
}

// ------------------------------------------------------------------------------------------------
// addresses that get another meaning

TEST_F(RemapTest, UnmapAndMapAnew_IsANewRegion) {
  Memory memory(2 * kMiB);
  memory[0] = 1;
  ibv_mr* old = Register(memory.data(), memory.size());
  const FakeRegion first = OnlyRegion();
  munmap(memory.data(), memory.size());
  ASSERT_EQ(Memory::Map(memory.data(), memory.size(), MAP_FIXED_NOREPLACE), memory.data());
  EXPECT_EQ(memory[0], 0);
  ibv_mr* fresh = Register(memory.data(), memory.size());
  const auto regions = daemon_->Regions();
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(Told().region, regions[1].handle);
  memory[0] = 2;
  EXPECT_EQ(regions[1].base[0], 2);
  EXPECT_EQ(first.base[0], 1) << "the daemon keeps the pages that were registered";
  EXPECT_EQ(ibv_dereg_mr(old), 0);
  EXPECT_EQ(memory[0], 2);
  memory[0] = 3;
  EXPECT_EQ(regions[1].base[0], 3);
  EXPECT_EQ(ibv_dereg_mr(fresh), 0);
  EXPECT_EQ(memory[0], 3);
}

TEST_F(RemapTest, OtherMappingInTheMiddle_IsLeftAlone) {
  Memory memory(3 * kMiB);
  FillWithPositions(memory);
  ibv_mr* mr = Register(memory.data(), memory.size());
  ASSERT_EQ(Memory::Map(memory.data() + kMiB, kMiB, MAP_FIXED), memory.data() + kMiB);
  memset(memory.data() + kMiB, 0x77, kMiB);
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()), static_cast<uint32_t>(ROCEGW_KEPT_IN_USE))
      << "not intact any more";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_TRUE(IsPrivate(memory.data()));
  EXPECT_TRUE(IsPrivate(memory.data() + 2 * kMiB));
  for (size_t i = kMiB; i < 2 * kMiB; ++i) ASSERT_EQ(memory[i], 0x77);
  memset(memory.data() + kMiB, 0, kMiB);
  uint64_t word;
  memcpy(&word, memory.data() + 2 * kMiB, 8);
  EXPECT_EQ(word, 2 * kMiB * 0x9E3779B97F4A7C15 + 1);
}

TEST_F(RemapTest, UnmappedWhileRegistered_DeregisterFindsNothing) {
  ibv_mr* mr = nullptr;
  {
    Memory memory(2 * kMiB);
    mr = Register(memory.data(), memory.size());
    EXPECT_NE(Told().region, 0u);
  }
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_TRUE(daemon_->Regions().empty());
}

TEST_F(RemapTest, ProtectionChangedWhileRegistered_IsKept) {
  Memory memory(2 * kMiB);
  memset(memory.data(), 0x42, memory.size());
  ibv_mr* mr = Register(memory.data(), memory.size());
  ASSERT_EQ(mprotect(memory.data() + kMiB, kMiB, PROT_READ), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_TRUE(Area(memory.data()).writable);
  EXPECT_FALSE(Area(memory.data() + kMiB).writable);
  EXPECT_EQ(memory[2 * kMiB - 1], 0x42);
}

// ------------------------------------------------------------------------------------------------
// advice and growth (the hooks are linked into this program)

TEST_F(RemapTest, Madvise_DontNeedAndFree_GiveZeros) {
  Memory memory(2 * kMiB);
  memset(memory.data(), 9, memory.size());
  ibv_mr* mr = Register(memory.data(), memory.size());
  const FakeRegion region = OnlyRegion();
  ASSERT_EQ(madvise(memory.data() + kPage, kPage, MADV_DONTNEED), 0);
  EXPECT_EQ(memory[kPage], 0);
  EXPECT_EQ(region.base[kPage], 0);
  EXPECT_EQ(memory[kPage - 1], 9);
  EXPECT_EQ(memory[2 * kPage], 9);
  ASSERT_EQ(madvise(memory.data() + kMiB, kMiB, MADV_FREE), 0);
  EXPECT_TRUE(memory[kMiB] == 0 || memory[kMiB] == 9);
  EXPECT_EQ(madvise(memory.data(), kPage, MADV_WILLNEED), 0);
  EXPECT_EQ(madvise(memory.data() + 1, kPage, MADV_DONTNEED), -1);
  EXPECT_EQ(errno, EINVAL);
  memory[kPage] = 5;
  EXPECT_EQ(region.base[kPage], 5) << "still shared";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  ASSERT_EQ(madvise(memory.data(), kPage, MADV_DONTNEED), 0);
  EXPECT_EQ(memory[0], 0);
}

TEST_F(RemapTest, Mremap_GrowsInPlaceOrSaysNo) {
  Memory memory(2 * kMiB, PROT_READ | PROT_WRITE, Memory::Behind::kReserved);
  memset(memory.data(), 9, memory.size());
  ibv_mr* mr = Register(memory.data(), memory.size());
  const FakeRegion region = OnlyRegion();
  EXPECT_EQ(mremap(memory.data(), 2 * kMiB, 2 * kMiB, MREMAP_MAYMOVE), memory.data());
  memory.FreeBehind(kMiB);
  ASSERT_EQ(mremap(memory.data(), 2 * kMiB, 3 * kMiB, MREMAP_MAYMOVE), memory.data());
  EXPECT_EQ(memory[3 * kMiB - 1], 0);
  memory[2 * kMiB] = 1;
  memory[0] = 4;
  EXPECT_EQ(region.base[0], 4) << "still shared";
  // No space: 16 TiB do not fit below the next mapping.
  EXPECT_EQ(mremap(memory.data(), 2 * kMiB, size_t{1} << 46, MREMAP_MAYMOVE), MAP_FAILED);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(mremap(memory.data(), 3 * kMiB, 2 * kMiB, 0), memory.data());
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  void* moved = mremap(memory.data(), 2 * kMiB, 8 * kMiB, MREMAP_MAYMOVE);
  ASSERT_NE(moved, MAP_FAILED);
  EXPECT_EQ(static_cast<uint8_t*>(moved)[kMiB], 9);
  EXPECT_EQ(static_cast<uint8_t*>(moved)[8 * kMiB - 1], 0);
  munmap(moved, 8 * kMiB);
}

// ------------------------------------------------------------------------------------------------
// fork

// Runs `child` in a forked process; returns its result.
template <typename Child>
bool InChild(Child child) {
  const pid_t pid = fork();
  if (pid == 0) _exit(child() ? 0 : 1);
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(RemapTest, Fork_ChildHasItsOwnCopy) {
  Memory memory(2 * kMiB);
  memset(memory.data(), 9, memory.size());
  ibv_mr* mr = Register(memory.data(), memory.size());
  const FakeRegion region = OnlyRegion();
  EXPECT_TRUE(InChild([&] {
    if (memory[0] != 9 || memory[kMiB] != 9) return false;
    memset(memory.data(), 1, kMiB);
    // Dropped content becomes zero, not the parent's again.
    if (madvise(memory.data(), memory.size(), MADV_DONTNEED) != 0) return false;
    if (memory[0] != 0 || memory[kMiB] != 0) return false;
    memory[0] = 3;
    return ibv_dereg_mr(mr) == 0 && memory[0] == 3;
  }));
  EXPECT_EQ(memory[0], 9);
  memory[0] = 2;
  EXPECT_EQ(region.base[0], 2) << "still shared here";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(memory[0], 2);
  EXPECT_EQ(memory[kMiB], 9);
}

TEST_F(RemapTest, Fork_ParentDeregisters_ChildKeepsItsContent) {
  Memory memory(2 * kMiB);
  memset(memory.data(), 9, memory.size());
  ibv_mr* mr = Register(memory.data(), memory.size());
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    char byte;
    const bool told = read(go[0], &byte, 1) == 1;
    _exit(told && memory[0] == 9 && memory[2 * kMiB - 1] == 9 ? 0 : 1);
  }
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  memset(memory.data(), 1, memory.size());
  EXPECT_EQ(write(go[1], "x", 1), 1);
  int status = -1;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  close(go[0]);
  close(go[1]);
}

TEST_F(RemapTest, Fork_AfterDeregistration_IsAnOrdinaryOne) {
  Memory memory(2 * kMiB);
  memset(memory.data(), 9, memory.size());
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()), 0u);
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    char byte;
    const bool told = read(go[0], &byte, 1) == 1;
    _exit(told && memory[0] == 9 ? 0 : 1);
  }
  memory[0] = 1;
  EXPECT_EQ(write(go[1], "x", 1), 1);
  int status = -1;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0) << "what the parent writes later is not seen";
  close(go[0]);
  close(go[1]);
}

// ------------------------------------------------------------------------------------------------
// a daemon that says no, or goes away

TEST_F(RemapTest, DaemonRefusesRegion_StaysPrivate) {
  daemon_->Fail(ROCEGW_MSG_CREATE_REGION, ENOMEM);
  Memory memory(2 * kMiB);
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()), static_cast<uint32_t>(ROCEGW_KEPT_REFUSED));
  EXPECT_TRUE(IsPrivate(memory.data()));
}

TEST_F(RemapTest, DaemonRefusesRegistrationInRegion_GoesOnWithout) {
  daemon_->OnRequest(ROCEGW_MSG_REG_MR, [](const RecordedRequest& request) {
    rocegw_mr_reply reply{};
    reply.handle = 77;
    reply.lkey = reply.rkey = 0x7700;
    if (request.As<rocegw_reg_mr>().region != 0) reply.header.error = ENOMEM;
    const auto* bytes = reinterpret_cast<const uint8_t*>(&reply);
    return std::vector<uint8_t>(bytes, bytes + sizeof reply);
  });
  Memory memory(2 * kMiB);
  FillWithPositions(memory);
  ibv_mr* mr = Register(memory.data(), memory.size());
  EXPECT_EQ(Told().region, 0u);
  EXPECT_EQ(Told().kept, static_cast<uint32_t>(ROCEGW_KEPT_REFUSED));
  EXPECT_TRUE(IsPrivate(memory.data()));
  EXPECT_TRUE(daemon_->Regions().empty());
  EXPECT_EQ(WrongWords(memory), 0u);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(RemapTest, DaemonDies_MemoryIsStillThere) {
  Memory memory(2 * kMiB);
  FillWithPositions(memory);
  ibv_mr* mr = Register(memory.data(), memory.size());
  daemon_->Die();
  EXPECT_EQ(WrongWords(memory), 0u);
  memory[0] = 1;
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(memory[0], 1);
  EXPECT_TRUE(IsPrivate(memory.data()));
}

}  // namespace
}  // namespace rocegw::testing
