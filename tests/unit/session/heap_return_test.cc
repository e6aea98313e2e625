// SPDX-License-Identifier: Apache-2.0
// After many objects were destroyed, the memory of the process returns to about its earlier size.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  size_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// Fragments the heap: frees many small blocks below one that stays.
std::unique_ptr<char[]> LeaveHoles(size_t bytes) {
  constexpr size_t kBlock = 1024;
  std::vector<std::unique_ptr<char[]>> blocks(bytes / kBlock);
  for (auto& block : blocks) {
    block = std::make_unique_for_overwrite<char[]>(kBlock);
    std::memset(block.get(), 1, kBlock);
  }
  auto last = std::make_unique_for_overwrite<char[]>(kBlock);
  return last;
}

TEST(HeapReturn, ManyDestroyedObjects_MemoryGoesBackToTheSystem) {
  SessionHost host(2);
  const session::HeapReturn& heap = host.server->services().heap;
  TestProgram program(host);
  const size_t before = ResidentBytes();
  const auto last = LeaveHoles(256 * kMiB);
  ASSERT_GT(ResidentBytes(), before + 200 * kMiB) << "the C library gave it back by itself";
  std::vector<uint32_t> pds;
  for (uint64_t i = 0; i < session::HeapReturn::kManyObjects; ++i)
    pds.push_back(program.client.AllocPd(program.context));
  for (const uint32_t pd : pds) program.client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  while (heap.count() == 0) host.loop.RunOnce(Seconds(1));
  EXPECT_LT(ResidentBytes(), before + 64 * kMiB);
}

TEST(HeapReturn, FewLargeObjects_AreWorthALook) {
  ControlLoop loop;
  uint64_t charged = 256 * kMiB;
  session::HeapReturn heap(loop, [&charged] { return charged; });
  const size_t before = ResidentBytes();
  const auto last = LeaveHoles(256 * kMiB);
  heap.Destroyed(1);
  charged = 16 * kMiB;
  heap.Destroyed(1);
  while (heap.count() == 0) loop.RunOnce(Seconds(1));
  EXPECT_LT(ResidentBytes(), before + 64 * kMiB);
}

// Workers destroy their part of a session later, and report no end of it.
TEST(HeapReturn, MemoryThatIsFreedAfterALook_GoesBackToo) {
  ControlLoop loop;
  uint64_t charged = 256 * kMiB;
  session::HeapReturn heap(loop, [&charged] { return charged; });
  const size_t before = ResidentBytes();
  const auto last = LeaveHoles(128 * kMiB);
  heap.Destroyed(1);
  charged = 16 * kMiB;
  heap.Destroyed(1);
  while (heap.count() == 0) loop.RunOnce(Seconds(1));
  const auto later = LeaveHoles(256 * kMiB);
  while (heap.count() == 1) loop.RunOnce(Seconds(1));
  EXPECT_LT(ResidentBytes(), before + 64 * kMiB);
}

TEST(HeapReturn, SecondBurstOfTheSameSize_GoesBackToo) {
  ControlLoop loop;
  uint64_t charged = 0;
  session::HeapReturn heap(loop, [&charged] { return charged; });
  const size_t before = ResidentBytes();
  std::vector<std::unique_ptr<char[]>> last;
  for (uint64_t burst = 1; burst <= 2; ++burst) {
    charged = 256 * kMiB;
    heap.Destroyed(1);
    last.push_back(LeaveHoles(256 * kMiB));
    charged = 0;
    heap.Destroyed(1);
    while (heap.count() < burst) loop.RunOnce(Seconds(1));
    EXPECT_LT(ResidentBytes(), before + 64 * kMiB) << burst;
  }
}

TEST(HeapReturn, FewDestroyedObjects_AreNotWorthALook) {
  SessionHost host(2);
  TestProgram program(host);
  const auto last = LeaveHoles(64 * kMiB);
  const uint32_t pd = program.client.AllocPd(program.context);
  program.client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  host.loop.RunOnce(Seconds(1));
  EXPECT_EQ(host.server->services().heap.count(), 0u);
}

}  // namespace
}  // namespace rocegw::testing
