// SPDX-License-Identifier: Apache-2.0
// Programs with more rights than their caller, and listeners that must not have a program's memory.
// Needs root.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gateway/client/session/listener.h"
#include "tests/unit/client/daemon/fake_daemon.h"

namespace rocegw::testing {
namespace {

constexpr uid_t kNobody = 65534;
constexpr uid_t kOther = 1234;

class MoreRights : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(geteuid(), 0U) << "starts programs as another user: run as root";
    char name[] = "/tmp/rocegw_more_rights_XXXXXX";
    folder_ = mkdtemp(name);
    std::filesystem::permissions(folder_, std::filesystem::perms(0777));
    program_ = folder_ + "/open_device";
    std::filesystem::copy_file(ROCEGW_OPEN_DEVICE, program_);
  }
  void Use(const char* program) {
    std::filesystem::copy_file(program, program_,
                               std::filesystem::copy_options::overwrite_existing);
  }
  void TearDown() override {
    for (const char* name : {"SOCKET", "IN_PROCESS", "RUN_IN_POLL", "ADDRESS", "DEBUG"})
      unsetenv((std::string("ROCEGW_") + name).c_str());
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // Lets everybody reach the daemon's socket.
  static void OpenSocket(const FakeDaemon& daemon) {
    const std::filesystem::path path(daemon.socket_path());
    chmod(path.parent_path().c_str(), 0755);
    chmod(path.c_str(), 0666);
  }
  // Runs the program as nobody, with the environment of this process, and keeps what the program
  // prints. Returns its exit status.
  int RunAsNobody(mode_t mode) {
    EXPECT_EQ(chmod(program_.c_str(), mode), 0);
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = fork();
    if (child == 0) {
      if (dup2(ends[1], STDOUT_FILENO) >= 0 && setgroups(0, nullptr) == 0 && setgid(kNobody) == 0 &&
          setuid(kNobody) == 0)
        execl(program_.c_str(), program_.c_str(), nullptr);
      _exit(99);
    }
    close(ends[1]);
    printed_.clear();
    char part[512];
    for (ssize_t n = 0; (n = read(ends[0], part, sizeof part)) > 0;)
      printed_.append(part, static_cast<size_t>(n));
    close(ends[0]);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string printed_;
  std::string folder_;

 private:
  std::string program_;
};

TEST_F(MoreRights, OrdinaryProgram_GivesItsMemoryToTheGatewayOfRoot) {
  FakeDaemon daemon;
  OpenSocket(daemon);
  setenv("ROCEGW_SOCKET", daemon.socket_path().c_str(), 1);
  EXPECT_EQ(RunAsNobody(0755), 0);
  ASSERT_EQ(daemon.Requests(ROCEGW_MSG_HELLO).size(), 1U);
  EXPECT_TRUE(daemon.Last(ROCEGW_MSG_HELLO).had_descriptor);
}

TEST_F(MoreRights, SetUserIdProgram_DoesNotGoWhereItsCallerWants) {
  FakeDaemon daemon;
  OpenSocket(daemon);
  setenv("ROCEGW_SOCKET", daemon.socket_path().c_str(), 1);
  (void)RunAsNobody(04755);
  EXPECT_EQ(daemon.connections(), 0U);
  EXPECT_TRUE(daemon.History().empty());
}

// Sets all variables of the library that choose what runs in a program or where it attaches.
void SetVariables(const FakeDaemon& daemon) {
  setenv("ROCEGW_SOCKET", daemon.socket_path().c_str(), 1);
  setenv("ROCEGW_IN_PROCESS", "1", 1);
  setenv("ROCEGW_RUN_IN_POLL", "1", 1);
  setenv("ROCEGW_ADDRESS", "192.0.2.1", 1);
  setenv("ROCEGW_DEBUG", "1", 1);
}

// Shows that the next two tests would see an engine.
TEST_F(MoreRights, OrdinaryProgram_LoadsTheEngineThatItsCallerWants) {
  FakeDaemon daemon;
  SetVariables(daemon);
  Use(ROCEGW_ASKED_SETTINGS);
  EXPECT_EQ(RunAsNobody(0755), 0);
  EXPECT_EQ(printed_, "engine\nordinary\n");
}

TEST_F(MoreRights, SetUserIdProgram_LoadsNoEngineAndReadsNoVariable) {
  FakeDaemon daemon;
  OpenSocket(daemon);
  SetVariables(daemon);
  Use(ROCEGW_ASKED_SETTINGS);
  EXPECT_EQ(RunAsNobody(04755), 0);
  EXPECT_EQ(printed_, "secure\n");
  EXPECT_EQ(daemon.connections(), 0U);
}

TEST_F(MoreRights, SetGroupIdProgram_LoadsNoEngineAndReadsNoVariable) {
  FakeDaemon daemon;
  OpenSocket(daemon);
  SetVariables(daemon);
  Use(ROCEGW_ASKED_SETTINGS);
  EXPECT_EQ(RunAsNobody(02755), 0);
  EXPECT_EQ(printed_, "secure\n");
  EXPECT_EQ(daemon.connections(), 0U);
}

// Attaches as the user `own` to a daemon whose socket the user `listener` has made.
void ExpectMemoryGoesTo(uid_t listener, uid_t own, bool expected) {
  ASSERT_EQ(seteuid(listener), 0);
  FakeDaemon daemon;
  ASSERT_EQ(seteuid(0), 0);
  setenv("ROCEGW_SOCKET", daemon.socket_path().c_str(), 1);
  const std::filesystem::path path(daemon.socket_path());
  ASSERT_EQ(chmod(path.parent_path().c_str(), 0777), 0);
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  ASSERT_EQ(seteuid(own), 0);
  // A change of the user forbids the process its own memory file.
  ASSERT_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
  ibv_device** const list = ibv_get_device_list(nullptr);
  EXPECT_NE(list, nullptr);
  if (list != nullptr) ibv_free_device_list(list);
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_FALSE(daemon.Requests(ROCEGW_MSG_HELLO).empty());
  EXPECT_EQ(daemon.Last(ROCEGW_MSG_HELLO).had_descriptor, expected);
}

TEST_F(MoreRights, ListenerOfAnotherUser_GetsNoMemory) { ExpectMemoryGoesTo(kOther, 0, false); }
TEST_F(MoreRights, ListenerOfTheOwnUser_GetsTheMemory) { ExpectMemoryGoesTo(kOther, kOther, true); }

TEST(Listener_MayHaveMemory, RootTheOwnUserAndTheGatewaysUser) {
  using client::MayHaveMemory;
  EXPECT_TRUE(MayHaveMemory(0, 1000, client::kNoUser));
  EXPECT_TRUE(MayHaveMemory(1000, 1000, client::kNoUser));
  EXPECT_TRUE(MayHaveMemory(990, 1000, 990));
  EXPECT_FALSE(MayHaveMemory(1001, 1000, 990));
  EXPECT_FALSE(MayHaveMemory(1001, 1000, client::kNoUser));
  EXPECT_FALSE(MayHaveMemory(1000, 0, client::kNoUser)) << "root's memory is root's rights";
  EXPECT_FALSE(MayHaveMemory(client::kNoUser, 1000, client::kNoUser)) << "nothing is known";
}

}  // namespace
}  // namespace rocegw::testing
