// SPDX-License-Identifier: Apache-2.0
// Memory that is moved or not, with the reason that the daemon gets.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "tests/unit/client/remap/remap_fixture.h"

namespace rocegw::testing {
namespace {

// Opens something whose driver could hold pages of this process.
int OpenPageHolder() {
  const int xdp = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
  return xdp >= 0 ? xdp : open("/dev/loop-control", O_RDWR | O_CLOEXEC);
}

// Locks one page. AddressSanitizer replaces the function, not the system call.
long Lock(void* page) { return syscall(SYS_mlock, page, kPage); }

class RemapRulesTest : public RemapTest {
 protected:
  // Runs `body` while a blocked thread has its stack in this memory.
  template <typename Body>
  void WithThreadOn(void* stack, size_t size, Body body) {
    std::mutex mutex;
    std::condition_variable changed;
    bool running = false;
    bool finish = false;
    struct Shared {
      std::mutex& mutex;
      std::condition_variable& changed;
      bool& running;
      bool& finish;
    } shared{mutex, changed, running, finish};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    ASSERT_EQ(pthread_attr_setstack(&attributes, stack, size), 0);
    pthread_t thread;
    ASSERT_EQ(pthread_create(
                  &thread, &attributes,
                  [](void* argument) -> void* {
                    auto* s = static_cast<Shared*>(argument);
                    std::unique_lock lock(s->mutex);
                    s->running = true;
                    s->changed.notify_all();
                    s->changed.wait(lock, [s] { return s->finish; });
                    return nullptr;
                  },
                  &shared),
              0);
    pthread_attr_destroy(&attributes);
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return running; });
    }
    body();
    {
      const std::lock_guard lock(mutex);
      finish = true;
      changed.notify_all();
    }
    pthread_join(thread, nullptr);
  }
};

// Kernels before 6.11 have only the text.
TEST(MemoryMap, TextAndQuery_SayTheSame) {
  int areas = 0;
  for (uint64_t at = 0;;) {
    client::MappedArea query{};
    client::MappedArea text{};
    // The vsyscall page, the last of all, is only in the text.
    if (client::FindMappedArea(at, &query) != 0) break;
    ASSERT_EQ(client::FindMappedAreaInText(at, &text), 0);
    // The stack may grow between the two queries.
    EXPECT_EQ(text.end, query.end);
    EXPECT_EQ(text.offset, query.offset);
    EXPECT_EQ(text.inode, query.inode);
    EXPECT_EQ(text.device_major, query.device_major);
    EXPECT_EQ(text.device_minor, query.device_minor);
    EXPECT_EQ(text.readable, query.readable);
    EXPECT_EQ(text.writable, query.writable);
    EXPECT_EQ(text.executable, query.executable);
    EXPECT_EQ(text.shared, query.shared);
    EXPECT_EQ(text.named, query.named) << std::hex << query.start;
    ++areas;
    at = query.end;
  }
  EXPECT_GT(areas, 10);
}

TEST(MemoryMapTest, ByPages_FindsHoles) {
  constexpr size_t kSize = 5 * kMiB;  // more pages than one query covers
  Memory memory(kSize);
  const auto start = reinterpret_cast<uint64_t>(memory.data());
  EXPECT_EQ(client::CheckMappedByPages(start, kSize), 0);
  EXPECT_EQ(client::CheckMappedByPages(start + 1, kPage), 0);
  EXPECT_EQ(client::CheckMappedByPages(start, kSize + 1), EFAULT);
  EXPECT_EQ(client::CheckMappedByPages(start - 1, kPage), EFAULT);
  munmap(memory.data() + 4 * kMiB, kPage);
  EXPECT_EQ(client::CheckMappedByPages(start, kSize), EFAULT);
  EXPECT_EQ(client::CheckMappedByPages(start, 4 * kMiB), 0);
  EXPECT_EQ(client::CheckMappedByPages(start, 4 * kMiB + 1), EFAULT);
}

TEST_F(RemapRulesTest, Pool_DoesNotAllow) {
  TearDown();
  Start({});
  Memory memory(2 * kMiB);
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()), static_cast<uint32_t>(ROCEGW_KEPT_POOL));
}

TEST_F(RemapRulesTest, Process_DoesNotWant) {
  Memory memory(2 * kMiB);
  setenv("ROCEGW_REMAP", "never", 1);
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()), static_cast<uint32_t>(ROCEGW_KEPT_PROCESS));
  setenv("ROCEGW_REMAP", "yes please", 1);
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()), static_cast<uint32_t>(ROCEGW_KEPT_PROCESS));
}

TEST_F(RemapRulesTest, Size_OneMebibyteOfWholePagesIsWorthIt) {
  setenv("ROCEGW_REMAP", "auto", 1);
  Memory memory(2 * kMiB);
  EXPECT_EQ(KeptBecause(memory.data(), kMiB - 1), static_cast<uint32_t>(ROCEGW_KEPT_SMALL));
  EXPECT_EQ(KeptBecause(memory.data() + 8, kMiB), static_cast<uint32_t>(ROCEGW_KEPT_SMALL));
  ibv_mr* mr = Register(memory.data(), kMiB);
  EXPECT_NE(Told().region, 0u);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  setenv("ROCEGW_REMAP", "always", 1);
  EXPECT_EQ(KeptBecause(memory.data(), kPage), 0u);
  EXPECT_EQ(KeptBecause(memory.data(), kPage - 1), static_cast<uint32_t>(ROCEGW_KEPT_SMALL));
}

TEST_F(RemapRulesTest, SharedOrFileOrNotWritable_Stays) {
  const auto mapping = static_cast<uint32_t>(ROCEGW_KEPT_MAPPING);
  void* shared = mmap(nullptr, 2 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(KeptBecause(shared, 2 * kMiB), mapping);
  munmap(shared, 2 * kMiB);
  const int file = memfd_create("rocegw-test", 0);
  ASSERT_EQ(ftruncate(file, 2 * kMiB), 0);
  void* copied = mmap(nullptr, 2 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  EXPECT_EQ(KeptBecause(copied, 2 * kMiB), mapping);
  munmap(copied, 2 * kMiB);
  close(file);
  Memory readable(2 * kMiB, PROT_READ);
  EXPECT_EQ(KeptBecause(readable.data(), 2 * kMiB, IBV_ACCESS_REMOTE_READ), mapping);
  Memory code(2 * kMiB, PROT_READ | PROT_WRITE | PROT_EXEC);
  EXPECT_EQ(KeptBecause(code.data(), 2 * kMiB), mapping);
}

TEST_F(RemapRulesTest, WritableMemory_ForReadingOnly_Moves) {
  Memory memory(2 * kMiB);
  EXPECT_EQ(KeptBecause(memory.data(), memory.size(), IBV_ACCESS_REMOTE_READ), 0u);
}

TEST_F(RemapRulesTest, OnDemand_Stays_AndSoDoesWhatItReaches) {
  constexpr int kOnDemand = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND;
  Memory memory(2 * kMiB);
  ibv_mr* mr = Register(memory.data(), memory.size(), kOnDemand);
  EXPECT_EQ(Told().region, 0u);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  mr = Register(nullptr, SIZE_MAX, kOnDemand);
  EXPECT_EQ(Told().region, 0u);
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()), static_cast<uint32_t>(ROCEGW_KEPT_IN_USE));
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()), 0u);
}

TEST_F(RemapRulesTest, Properties_ThatWouldBeLost_Stay) {
  const auto advised = static_cast<uint32_t>(ROCEGW_KEPT_ADVISED);
  for (const int advice : {MADV_HUGEPAGE, MADV_DONTFORK, MADV_DONTDUMP, MADV_WIPEONFORK}) {
    Memory memory(2 * kMiB);
    ASSERT_EQ(madvise(memory.data(), memory.size(), advice), 0);
    EXPECT_EQ(KeptBecause(memory.data(), memory.size()), advised) << advice;
  }
  Memory locked(2 * kMiB);
  ASSERT_EQ(Lock(locked.data() + kMiB), 0);
  EXPECT_EQ(KeptBecause(locked.data(), locked.size()), advised) << "one page of it is enough";
  Memory bound(2 * kMiB);
  const unsigned long first_node = 1;
  if (syscall(SYS_mbind, bound.data(), bound.size(), 2 /* MPOL_BIND */, &first_node, 8UL, 0) == 0) {
    EXPECT_EQ(KeptBecause(bound.data(), bound.size()), advised);
  } else {
    EXPECT_EQ(errno, ENOSYS) << "a kernel without memory policies";
  }
}

TEST_F(RemapRulesTest, PropertiesGivenWhileRegistered_StayOnTheSharedPages) {
  Memory memory(2 * kMiB);
  memset(memory.data(), 9, memory.size());
  ibv_mr* mr = Register(memory.data(), memory.size());
  EXPECT_NE(Told().region, 0u);
  ASSERT_EQ(Lock(memory.data()), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_TRUE(daemon_->Regions().empty());
  EXPECT_FALSE(IsPrivate(memory.data())) << "moving back would unlock it";
  EXPECT_EQ(memory[kMiB], 9);
  ASSERT_EQ(madvise(memory.data() + kMiB, kPage, MADV_DONTNEED), 0);
  EXPECT_EQ(memory[kMiB], 0) << "looked after all the same";
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()), static_cast<uint32_t>(ROCEGW_KEPT_IN_USE));
}

TEST_F(RemapRulesTest, OtherUserOfUserfaultfd_Stays) {
  Memory memory(2 * kMiB);
  const int other = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
  ASSERT_GE(other, 0);
  uffdio_api api{};
  api.api = UFFD_API;
  ASSERT_EQ(ioctl(other, UFFDIO_API, &api), 0);
  uffdio_register watch{};
  watch.range = {reinterpret_cast<uint64_t>(memory.data()) + kMiB, kPage};
  watch.mode = UFFDIO_REGISTER_MODE_MISSING;
  ASSERT_EQ(ioctl(other, UFFDIO_REGISTER, &watch), 0);
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()), static_cast<uint32_t>(ROCEGW_KEPT_ADVISED));
  close(other);
}

TEST_F(RemapRulesTest, Stacks_Stay) {
  const auto stack = static_cast<uint32_t>(ROCEGW_KEPT_STACK);
  // Stack of another thread, without a guard page: found by the C library's data at its end.
  Memory other(4 * kMiB);
  WithThreadOn(other.data(), other.size(), [&] {
    EXPECT_EQ(KeptBecause(other.data(), 2 * kMiB), stack);
    EXPECT_EQ(KeptBecause(other.data(), other.size()), stack);
  });
  // With the usual guard page.
  Memory guarded(4 * kMiB);
  ASSERT_EQ(mprotect(guarded.data(), kPage, PROT_NONE), 0);
  EXPECT_EQ(KeptBecause(guarded.data() + kMiB, 2 * kMiB), stack);
  // This thread's own stack.
  std::thread([&] {
    alignas(kPage) uint8_t local[4 * kPage];
    local[0] = 1;
    EXPECT_EQ(KeptBecause(local, sizeof local), stack);
  }).join();
  // The process's first stack, which has a name.
  alignas(kPage) uint8_t local[4 * kPage];
  local[0] = 1;
  EXPECT_NE(KeptBecause(local, sizeof local), 0u);
}

TEST_F(RemapRulesTest, AboveAThreadsStack_Moves) {
  Memory memory(6 * kMiB);
  // The stack is the lower third of one mapping.
  WithThreadOn(memory.data(), 2 * kMiB,
               [&] { EXPECT_EQ(KeptBecause(memory.data() + 3 * kMiB, 2 * kMiB), 0u); });
}

TEST_F(RemapRulesTest, OpenDevice_StaysUnlessAskedFor) {
  Memory memory(2 * kMiB);
  setenv("ROCEGW_REMAP", "auto", 1);
  const int device = OpenPageHolder();
  ASSERT_GE(device, 0);
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()), static_cast<uint32_t>(ROCEGW_KEPT_DEVICES));
  setenv("ROCEGW_REMAP", "always", 1);
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()), 0u);
  close(device);
}

TEST_F(RemapRulesTest, DeviceOpenedWhileRegistered_MemoryStaysWhereItIs) {
  Memory memory(2 * kMiB);
  setenv("ROCEGW_REMAP", "auto", 1);
  ibv_mr* mr = Register(memory.data(), memory.size());
  EXPECT_NE(Told().region, 0u);
  const int device = OpenPageHolder();
  ASSERT_GE(device, 0);
  memory[0] = 1;
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_FALSE(IsPrivate(memory.data())) << "the device may hold these pages";
  EXPECT_EQ(memory[0], 1);
  close(device);
}

TEST_F(RemapRulesTest, LimitOnFileSizes_StaysAndNobodyIsKilled) {
  Memory memory(2 * kMiB);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {kMiB, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()),
            static_cast<uint32_t>(ROCEGW_KEPT_FILE_LIMIT));
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST_F(RemapRulesTest, ManyShortRegistrations_AreNotWorthIt) {
  Memory memory(kMiB);
  setenv("ROCEGW_REMAP", "auto", 1);
  uint32_t kept = 0;
  int moves = 0;
  for (; kept == 0 && moves < 100; ++moves) kept = KeptBecause(memory.data(), memory.size());
  EXPECT_EQ(kept, static_cast<uint32_t>(ROCEGW_KEPT_SHORT_LIVED));
  EXPECT_LE(moves, 9);
  setenv("ROCEGW_REMAP", "always", 1);
  EXPECT_EQ(KeptBecause(memory.data(), memory.size()), 0u);
}

}  // namespace
}  // namespace rocegw::testing
