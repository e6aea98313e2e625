// SPDX-License-Identifier: Apache-2.0
// Judgement of received descriptors.
#include "gateway/take_over/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

namespace rocegw::take_over {
namespace {

TEST(JudgeFd, AcceptsWhatTheKindSays) {
  const UniqueFd udp(socket(AF_INET6, SOCK_DGRAM, 0));
  EXPECT_TRUE(JudgeFd(FdKind::kUdpReceive, "4791/0", udp.get()).ok());
  const UniqueFd file(open("/proc/self/exe", O_RDONLY));
  EXPECT_TRUE(JudgeFd(FdKind::kRuntimeLock, "/run/rocegw", file.get()).ok());
  const UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)), 0);
  EXPECT_FALSE(JudgeFd(FdKind::kAttachListener, "a", listener.get()).ok()) << "does not listen";
  ASSERT_EQ(listen(listener.get(), 1), 0);
  EXPECT_TRUE(JudgeFd(FdKind::kAttachListener, "a", listener.get()).ok());
}

TEST(JudgeFd, KnowsDescriptorsOfPrograms) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const UniqueFd ours(ends[0]);
  const UniqueFd client(ends[1]);
  const UniqueFd wake(eventfd(0, 0));
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  const UniqueFd memory(memfd_create("test", MFD_ALLOW_SEALING));
  EXPECT_FALSE(JudgeFd(FdKind::kChunk, "1/0", memory.get()).ok()) << "it could become shorter";
  ASSERT_EQ(fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  const UniqueFd path(open("/dev/null", O_PATH));
  const struct {
    FdKind kind;
    int fd;
  } right[] = {{FdKind::kXrcFile, path.get()},          {FdKind::kClientSocket, ours.get()},
               {FdKind::kEvents, ours.get()},           {FdKind::kWake, wake.get()},
               {FdKind::kClientProcess, process.get()}, {FdKind::kChunk, memory.get()},
               {FdKind::kRegion, memory.get()}};
  for (const auto& one : right) {
    EXPECT_TRUE(JudgeFd(one.kind, "1", one.fd).ok()) << static_cast<int>(one.kind);
    for (const auto& other : right) {
      const bool alike = JudgeFd(one.kind, "1", other.fd).ok();
      EXPECT_EQ(alike, one.fd == other.fd) << static_cast<int>(one.kind);
    }
  }
}

TEST(JudgeFd, RefusesTheRest) {
  const UniqueFd udp(socket(AF_INET, SOCK_DGRAM, 0));
  const UniqueFd tcp(socket(AF_INET, SOCK_STREAM, 0));
  const UniqueFd device(open("/dev/null", O_RDWR));
  for (const FdKind kind :
       {FdKind::kRuntimeLock, FdKind::kInstanceLock, FdKind::kAttachListener, FdKind::kGrpcListener,
        FdKind::kMetricsListener, FdKind::kTakeOverListener, static_cast<FdKind>(999)}) {
    for (const int fd : {udp.get(), tcp.get(), device.get(), -1})
      EXPECT_FALSE(JudgeFd(kind, "name", fd).ok()) << static_cast<int>(kind);
  }
  EXPECT_FALSE(JudgeFd(FdKind::kUdpReceive, "name", tcp.get()).ok());
  EXPECT_EQ(JudgeFd(FdKind::kUdpReceive, "4791/1", device.get()).text(),
            "descriptor '4791/1' is not of kind 3");
}

TEST(InheritedFds, AreTakenOnceByName) {
  InheritedFds fds;
  fds.Add(FdKind::kAttachListener, "/a", UniqueFd(open("/dev/null", O_RDONLY)));
  fds.Add(FdKind::kAttachListener, "/b", UniqueFd(open("/dev/null", O_RDONLY)));
  fds.Add(FdKind::kGrpcListener, "/a", UniqueFd(open("/dev/null", O_RDONLY)));
  EXPECT_TRUE(fds.Take(FdKind::kAttachListener, "/a").valid());
  EXPECT_FALSE(fds.Take(FdKind::kAttachListener, "/a").valid());
  EXPECT_EQ(fds.Discard(FdKind::kAttachListener), std::vector<std::string>{"/b"});
  EXPECT_EQ(fds.size(), 1u);
}

}  // namespace
}  // namespace rocegw::take_over
