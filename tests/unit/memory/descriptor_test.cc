// SPDX-License-Identifier: Apache-2.0
// Processes of other users: the system call is refused, the client's own descriptor works.
#include "gateway/memory/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "gateway/memory/cross_process.h"
#include "tests/unit/memory/child_process.h"

namespace rocegw::memory {
namespace {

using testing::ChildProcess;

constexpr uid_t kOther = 1001;
constexpr uid_t kDaemon = 1002;

// Runs f as an unprivileged user in a child. Returns true if f returned true.
template <typename F>
bool AsDaemonUser(F&& f) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const bool changed =
        ::setresgid(kDaemon, kDaemon, kDaemon) == 0 && ::setresuid(kDaemon, kDaemon, kDaemon) == 0;
    ::_exit(changed && f() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int OpenMem(uint8_t* memory) {
  std::memcpy(memory, "secret of the client", 20);
  return ::open("/proc/self/mem", O_RDWR | O_CLOEXEC);
}

TEST(OtherUser, Permitted_TellsWithoutTouchingMemory) {
  EXPECT_TRUE(CrossProcessMemory::Permitted(::getpid()));
  ChildProcess other({1, kOther, OpenMem});
  ChildProcess same({1, kDaemon, OpenMem});
  EXPECT_TRUE(AsDaemonUser([&] { return !CrossProcessMemory::Permitted(other.pid()); }));
  EXPECT_TRUE(AsDaemonUser([&] { return CrossProcessMemory::Permitted(same.pid()); }));
  same.Kill();
  EXPECT_FALSE(CrossProcessMemory::Permitted(-1));
}

TEST(OtherUser, Descriptor_ReadsAndWrites) {
  ChildProcess other({1, kOther, OpenMem});
  EXPECT_TRUE(AsDaemonUser([&] {
    if (!DescriptorMemory::Check(other.fd()).ok()) return false;
    AtomicLocks locks;
    DescriptorMemory memory(UniqueFd(other.ReleaseFd()), locks);
    char text[21] = {};
    MemoryOp op;
    op.address = other.address();
    op.length = 20;
    op.buffer = reinterpret_cast<uint8_t*>(text);
    MemoryCounts counts;
    if (memory.Execute({&op, 1}, counts) != 1 || std::strcmp(text, "secret of the client") != 0)
      return false;
    std::memcpy(text, "changed", 7);
    op.kind = OpKind::kWrite;
    op.length = 7;
    if (memory.Execute({&op, 1}, counts) != 1) return false;
    std::memset(text, 0, sizeof text);
    op.kind = OpKind::kRead;
    op.length = 20;
    return memory.Execute({&op, 1}, counts) == 1 &&
           std::memcmp(text, "changedof the client", 20) == 0;
  })) << "secret of -> changedof";
}

TEST(Descriptor, Check_OnlyMemFilesOpenBothWays) {
  const UniqueFd good(::open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(DescriptorMemory::Check(good.get()).ok());
  const struct {
    const char* path;
    int flags;
  } bad[] = {{"/proc/self/mem", O_RDONLY}, {"/proc/self/mem", O_WRONLY}, {"/proc/self/mem", O_PATH},
             {"/proc/self/comm", O_RDWR},  {"/proc/self", O_RDONLY},     {"/dev/zero", O_RDWR},
             {"/tmp", O_RDONLY},           {"/proc/meminfo", O_RDONLY}};
  for (const auto& c : bad) {
    const UniqueFd fd(::open(c.path, c.flags | O_CLOEXEC));
    ASSERT_TRUE(fd.valid()) << c.path;
    EXPECT_FALSE(DescriptorMemory::Check(fd.get()).ok()) << c.path;
  }
  EXPECT_FALSE(DescriptorMemory::Check(-1).ok());
}

TEST(Descriptor, Replace_NextOperationUsesTheNewOne) {
  ChildProcess first({1, 0, [](uint8_t* memory) {
                        memory[0] = 1;
                        return ::open("/proc/self/mem", O_RDWR);
                      }});
  ChildProcess second({1, 0, [](uint8_t* memory) {
                         memory[0] = 2;
                         return ::open("/proc/self/mem", O_RDWR);
                       }});
  AtomicLocks locks;
  DescriptorMemory memory(UniqueFd(first.ReleaseFd()), locks);
  uint8_t byte = 0;
  MemoryOp op;
  op.address = first.address();
  op.length = 1;
  op.buffer = &byte;
  MemoryCounts counts;
  ASSERT_EQ(memory.Execute({&op, 1}, counts), 1u);
  EXPECT_EQ(byte, 1);
  ASSERT_TRUE(memory.Replace(UniqueFd(second.ReleaseFd())).ok());
  op.address = second.address();
  ASSERT_EQ(memory.Execute({&op, 1}, counts), 1u);
  EXPECT_EQ(byte, 2);
}

TEST(Descriptor, Invalid_EverythingFaults) {
  AtomicLocks locks;
  DescriptorMemory memory(UniqueFd(), locks);
  uint8_t byte = 0;
  MemoryOp op;
  op.address = reinterpret_cast<uint64_t>(&byte);
  op.length = 1;
  op.buffer = &byte;
  MemoryCounts counts;
  EXPECT_EQ(memory.Execute({&op, 1}, counts), 0u);
  EXPECT_FALSE(memory.Replace(UniqueFd(::open("/proc/self/mem", O_RDWR))).ok());
}

}  // namespace
}  // namespace rocegw::memory
