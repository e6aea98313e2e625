// SPDX-License-Identifier: Apache-2.0
// The gateway inside of a process, and what the process notices of it: one engine for all who
// attach, threads without signals, no descriptors but one, forks, programs that close what is not
// theirs, a port that is taken. Its own network namespace, since it has the real UDP port.
#include "gateway/inprocess/engine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "tests/support/network/network_namespace.h"
#include "tests/support/session/session_host.h"

namespace rocegw::inprocess {
namespace {

namespace fs = std::filesystem;

using testing::NetworkNamespace;
using testing::TestClient;

constexpr Duration kStopWithin = Seconds(10);

class InProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    auto space = NetworkNamespace::Create();
    ASSERT_TRUE(space.ok()) << space.status().text();
    space_.emplace(std::move(*space));
    inside_.emplace(*space_);
  }
  static wire::Gid Address() { return *wire::ParseGid("127.0.0.1"); }
  static Engine Make() { return Engine(Engine::ConfigFor({.address = Address()}), {}, false); }

  static std::unique_ptr<TestClient> Attach(Engine& engine) {
    auto connected = engine.Attach();
    EXPECT_TRUE(connected.ok()) << connected.status().text();
    auto client = std::make_unique<TestClient>([] {}, std::move(*connected));
    client->HostHasThreads();
    return client;
  }
  static uint32_t FeaturesOf(Engine& engine) {
    const auto client = Attach(engine);
    EXPECT_TRUE(client->Hello());
    return client
        ->Call<rocegw_device_reply>(
            TestClient::Request<rocegw_query_device>(ROCEGW_MSG_QUERY_DEVICE))
        .features;
  }
  // Number to what it leads to.
  static std::map<int, std::string> Descriptors() {
    std::map<int, std::string> found;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const auto target = fs::read_symlink(entry.path(), gone);
      if (!gone && target.string().find("/proc/") == std::string::npos)
        found[std::stoi(entry.path().filename())] = target;
    }
    return found;
  }
  static std::string LineOf(const fs::path& file, const std::string& key) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(key)) return line.substr(key.size());
    return "";
  }

  std::optional<NetworkNamespace> space_;
  std::optional<NetworkNamespace::Inside> inside_;
};

TEST_F(InProcess, Placement_IsThereWhereItIsWished) {
  {
    Engine engine = Make();
    ASSERT_TRUE(engine.Start().ok());
    EXPECT_EQ(FeaturesOf(engine) & ROCEGW_DEVICE_PLACEMENT, 0u);
  }
  Engine engine(Engine::ConfigFor({.address = Address(), .placement = true}), {}, false);
  ASSERT_TRUE(engine.Start().ok());
  EXPECT_NE(FeaturesOf(engine) & ROCEGW_DEVICE_PLACEMENT, 0u);
}

TEST_F(InProcess, TwoAttached_ShareOneGatewayAndItsMemoryIsOurs) {
  Engine engine = Make();
  ASSERT_TRUE(engine.Start().ok());
  const auto first = Attach(engine);
  const auto second = Attach(engine);
  for (TestClient* client : {first.get(), second.get()}) {
    ASSERT_TRUE(client->Hello());
    const uint32_t pd = client->AllocPd(client->OpenContext());
    EXPECT_EQ(client->RegMr(pd, 4096, 64).way, static_cast<uint32_t>(ROCEGW_MEMORY_IN_PROCESS));
  }
  EXPECT_TRUE(engine.Stop(kStopWithin));
  EXPECT_TRUE(first->closed());
}

// Programs may poll while the process ends.
TEST_F(InProcess, RunInPoll_GuestsComeAnyTime) {
  Engine engine(Engine::ConfigFor({.address = Address(), .run_in_poll = true}), {}, false);
  engine.Progress();
  ASSERT_TRUE(engine.Start().ok());
  std::atomic<bool> done{false};
  std::thread poller([&] {
    while (!done.load()) engine.Progress();
  });
  const auto client = Attach(engine);
  ASSERT_TRUE(client->Hello());
  client->RegMr(client->AllocPd(client->OpenContext()), 4096, 64);
  EXPECT_EQ(client->error(), 0);
  EXPECT_TRUE(engine.Stop(kStopWithin));
  EXPECT_TRUE(client->closed());
  done.store(true);
  poller.join();
}

TEST_F(InProcess, Descriptors_OfTheProgramGainOne) {
  const auto before = Descriptors();
  Engine engine = Make();
  ASSERT_TRUE(engine.Start().ok());
  EXPECT_EQ(Descriptors().size(), before.size() + 1);
  EXPECT_GE(Descriptors().rbegin()->first, 100) << "out of the way of the program's own";
  EXPECT_TRUE(engine.Stop(kStopWithin));
}

TEST_F(InProcess, Threads_HaveNamesAndTakeNoSignals) {
  Engine engine = Make();
  ASSERT_TRUE(engine.Start().ok());
  // Its worker has answered, so it has got to where it says its name.
  const auto client = Attach(engine);
  ASSERT_TRUE(client->Hello());
  client->RegMr(client->AllocPd(client->OpenContext()), 4096, 64);
  ASSERT_EQ(client->error(), 0);
  std::map<std::string, std::string> blocked;
  for (const auto& task : fs::directory_iterator("/proc/self/task"))
    blocked[LineOf(task.path() / "comm", "")] = LineOf(task.path() / "status", "SigBlk:\t");
  for (const char* name : {"rocegw-control", "rocegw-worker"}) {
    ASSERT_TRUE(blocked.contains(name)) << name;
    // All but the two by which the C library talks to its threads.
    EXPECT_EQ(std::stoull(blocked[name], nullptr, 16) | 3ull << 31,
              ~0ull & ~(1ull << (SIGKILL - 1)) & ~(1ull << (SIGSTOP - 1)))
        << name;
  }
  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGTERM), 0) << "the program's own mask is as it was";
  EXPECT_TRUE(engine.Stop(kStopWithin));
}

TEST_F(InProcess, ChildOfFork_IsRefused) {
  Engine engine = Make();
  ASSERT_TRUE(engine.Start().ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const auto connected = engine.Attach();
    ::_exit(connected.ok() ? 0 : connected.status().error());
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), EOWNERDEAD);
  EXPECT_TRUE(Attach(engine)->Hello()) << "the parent goes on";
  EXPECT_TRUE(engine.Stop(kStopWithin));
}

// A child that lives on must not keep the port.
TEST_F(InProcess, ChildOfFork_HasNoneOfOurSockets) {
  int wait_for[2];
  ASSERT_EQ(::pipe(wait_for), 0);
  pid_t child = -1;
  {
    Engine engine = Make();
    ASSERT_TRUE(engine.Start().ok());
    child = ::fork();
    if (child == 0) {
      ::close(wait_for[1]);
      char byte;
      (void)!::read(wait_for[0], &byte, 1);
      ::_exit(0);
    }
    EXPECT_TRUE(engine.Stop(kStopWithin));
  }
  Engine next = Make();
  const Status again = next.Start();
  EXPECT_TRUE(again.ok()) << again.text();
  EXPECT_TRUE(next.Stop(kStopWithin));
  ::close(wait_for[1]);
  ::close(wait_for[0]);
  ::waitpid(child, nullptr, 0);
}

TEST_F(InProcess, ProgramClosesWhatIsNotItsOwn_NextAttachIsRefused) {
  const auto before = Descriptors();
  Engine engine = Make();
  ASSERT_TRUE(engine.Start().ok());
  int ours = -1;
  for (const auto& [number, target] : Descriptors())
    if (!before.contains(number)) ours = number;
  // The number belongs to something of the program's next.
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  const int saved = ::fcntl(ours, F_DUPFD_CLOEXEC, 200);
  ASSERT_EQ(::dup2(pair[0], ours), ours);
  EXPECT_EQ(engine.Attach().status().error(), EPIPE);
  char byte;
  EXPECT_EQ(::recv(pair[1], &byte, 1, MSG_DONTWAIT), -1) << "somebody else's socket is left alone";
  ASSERT_EQ(::dup2(saved, ours), ours);
  for (const int fd : {saved, pair[0], pair[1]}) ::close(fd);
  EXPECT_TRUE(Attach(engine)->Hello());
  EXPECT_TRUE(engine.Stop(kStopWithin));
}

TEST_F(InProcess, PortTaken_SaysWhatToDo) {
  const UniqueFd holder(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(4791);
  ASSERT_EQ(::bind(holder.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  Engine engine = Make();
  const Status started = engine.Start();
  EXPECT_EQ(started.error(), EADDRINUSE);
  EXPECT_NE(started.text().find("UDP port 4791 of 127.0.0.1 is taken by this process"),
            std::string::npos)
      << started.text();
}

TEST_F(InProcess, NoSuchAddress_IsNamed) {
  Engine engine(Engine::ConfigFor({.address = wire::ParseGid("192.0.2.1")}), {}, false);
  const Status started = engine.Start();
  EXPECT_EQ(started.error(), EADDRNOTAVAIL);
  EXPECT_NE(started.text().find("192.0.2.1"), std::string::npos) << started.text();
}

}  // namespace
}  // namespace rocegw::inprocess
