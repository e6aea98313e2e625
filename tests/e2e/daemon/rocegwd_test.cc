// SPDX-License-Identifier: Apache-2.0
// The rocegwd program from outside: start, readiness, state, reload, stop, and what it says when
// the machine is not as it should be. Each test has a network namespace of its own. Needs root.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "controlplane/cli/client/state_client.h"
#include "tests/e2e/daemon/daemon_process.h"
#include "tests/support/network/network_namespace.h"

namespace rocegw::daemon {
namespace {

namespace fs = std::filesystem;
using rocegw::testing::DaemonProcess;
using rocegw::testing::NetworkNamespace;

constexpr uid_t kNobody = 65534;

class RocegwdTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto space = NetworkNamespace::Create();
    ASSERT_TRUE(space.ok()) << space.status().text();
    space_.emplace(std::move(*space));
    Must(
        "ip link add veth0 type veth peer name veth1 && ip link set veth0 up && "
        "ip link set veth1 up && ip address add 10.9.0.1/24 dev veth0");
    char pattern[] = "/tmp/rocegw-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    directory_ = pattern;
    chmod(pattern, 0777);
  }
  void TearDown() override { fs::remove_all(directory_); }

  void Must(const std::string& command) const {
    const Status status = space_->Run(command);
    ASSERT_TRUE(status.ok()) << status.text();
  }
  // Writes a configuration with everything inside the test's directory.
  std::string Config(const std::string& more, const std::string& run = "run") const {
    const std::string file = directory_ + "/" + run + ".yaml";
    std::ofstream(file) << "runtime_dir: " << directory_ << "/" << run << "\n" << more << "\n";
    return file;
  }
  DaemonProcess Start(const std::string& config, uid_t uid = 0) const {
    return DaemonProcess(*space_, ROCEGWD, directory_, {"--config", config}, uid);
  }
  std::string File(const std::string& name) const { return directory_ + "/" + name; }

  // What a daemon that cannot start says: its last line without time, and its exit status.
  void ExpectRefusal(const std::string& config, int code, const std::string& line,
                     uid_t uid = 0) const {
    DaemonProcess daemon = Start(config, uid);
    EXPECT_EQ(daemon.WaitExit(), code);
    std::string log = daemon.Log();
    EXPECT_TRUE(log.ends_with("error: " + line + "\n")) << log;
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  }

  std::optional<NetworkNamespace> space_;
  std::string directory_;
};

constexpr char kPort[] = "ports: [{interface: veth0}]\nmetrics: {address: ''}\n";

TEST_F(RocegwdTest, Start_ReadyThenStop_LeavesNothing) {
  DaemonProcess daemon = Start(Config(std::string(kPort) + "workers: 2"));
  const std::string ready = daemon.NextNotification();
  ASSERT_TRUE(ready.starts_with("READY=1\nSTATUS=2 workers; rocegw0: udp on veth0, path MTU 1024"))
      << ready << daemon.Log();

  cli::Rpc rpc({.what = "gateway", .socket = File("run/grpc.sock")}, std::chrono::seconds(10));
  ASSERT_TRUE(rpc.Connect().ok());
  cli::StateClient client(rpc, "");
  types::v1::GatewayStatus status;
  ASSERT_TRUE(client.GetStatus(status).ok());
  EXPECT_TRUE(status.ready());
  EXPECT_EQ(status.workers_size(), 2);
  ASSERT_EQ(status.ports_size(), 1);
  EXPECT_EQ(status.ports(0).device(), "rocegw0");
  EXPECT_TRUE(status.ports(0).up());
  // Index 0 is kept for the link-local address.
  ASSERT_GE(status.ports(0).addresses_size(), 2);
  EXPECT_EQ(status.ports(0).addresses(1), "10.9.0.1");

  struct stat info {};
  ASSERT_EQ(stat(File("run/attach.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660u);
  std::string type;
  std::getline(std::ifstream(File("run/sysfs/class/infiniband/rocegw0/ports/1/gid_attrs/types/1")),
               type);
  EXPECT_EQ(type, "RoCE v2");

  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.NextNotification(), "STOPPING=1\nSTATUS=ending sessions");
  EXPECT_EQ(daemon.WaitExit(), 0);
  EXPECT_FALSE(fs::exists(File("run/attach.sock")));
  EXPECT_FALSE(fs::exists(File("run/grpc.sock")));
  EXPECT_FALSE(fs::exists(File("run/sysfs")));
}

TEST_F(RocegwdTest, StartAgain_AfterKill_Works) {
  const std::string config = Config(kPort);
  {
    DaemonProcess daemon = Start(config);
    ASSERT_TRUE(daemon.WaitReady()) << daemon.Log();
    daemon.Signal(SIGKILL);
    EXPECT_EQ(daemon.WaitExit(), -1);
  }
  DaemonProcess daemon = Start(config);
  EXPECT_TRUE(daemon.WaitReady()) << daemon.Log();
}

TEST_F(RocegwdTest, Hangup_ReadsLogLevelAgain) {
  const std::string config = Config(std::string(kPort) + "log_level: info");
  DaemonProcess daemon = Start(config);
  ASSERT_TRUE(daemon.WaitReady()) << daemon.Log();
  EXPECT_EQ(daemon.Log().find("debug:"), std::string::npos);

  Config(std::string(kPort) + "log_level: debug");
  daemon.Signal(SIGHUP);
  EXPECT_TRUE(daemon.NextNotification().starts_with("RELOADING=1\nMONOTONIC_USEC="));
  EXPECT_TRUE(daemon.NextNotification().starts_with("READY=1\n"));
  EXPECT_TRUE(daemon.Logs("reload: log level debug")) << daemon.Log();

  // A configuration with a mistake changes nothing.
  Config("log_levle: error");
  daemon.Signal(SIGHUP);
  daemon.NextNotification();
  EXPECT_TRUE(daemon.NextNotification().starts_with("READY=1\n"));
  EXPECT_TRUE(daemon.Logs("run.yaml:2: unknown key 'log_levle' (did you mean 'log_level'?)"));

  daemon.Signal(SIGINT);
  EXPECT_EQ(daemon.WaitExit(), 0);
  EXPECT_NE(daemon.Log().find("debug: stop: ports"), std::string::npos) << daemon.Log();
}

TEST_F(RocegwdTest, Unprivileged_UdpModeRuns) {
  DaemonProcess daemon = Start(Config(kPort), kNobody);
  EXPECT_TRUE(daemon.WaitReady()) << daemon.Log();
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.WaitExit(), 0);
}

#ifdef ROCEGW_WITH_DPDK
TEST_F(RocegwdTest, DpdkModes_ServeBothKindsOfDevice) {
  DaemonProcess daemon = Start(
      Config("workers: 2\nmetrics: {address: ''}\ndpdk: {huge_pages: off, memory_mb: 128}\n"
             "ports: [{name: shared, mode: af_packet, interface: veth0}, {name: own, mode: "
             "vdev, vdev: net_null0, addresses: ['192.0.2.1/24'], mac: '02:00:00:00:00:01'}]"));
  ASSERT_TRUE(daemon.WaitReady()) << daemon.Log();
  cli::Rpc rpc({.what = "gateway", .socket = File("run/grpc.sock")}, std::chrono::seconds(10));
  ASSERT_TRUE(rpc.Connect().ok());
  cli::StateClient client(rpc, "");
  types::v1::GatewayStatus status;
  ASSERT_TRUE(client.GetStatus(status).ok());
  ASSERT_EQ(status.ports_size(), 2);
  EXPECT_EQ(status.ports(0).mode(), "af_packet");
  ASSERT_GE(status.ports(0).addresses_size(), 2);
  EXPECT_EQ(status.ports(0).addresses(1), "10.9.0.1");
  EXPECT_EQ(status.ports(1).device(), "rocegw1");
  EXPECT_EQ(status.ports(1).addresses(0), "192.0.2.1");
  EXPECT_EQ(status.ports(1).path_mtu(), 1024u);
  EXPECT_TRUE(status.ports(1).up());
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.WaitExit(), 0) << daemon.Log();
}

// The other end of a memif link comes after its first end was opened.
TEST_F(RocegwdTest, DpdkModes_LinkThatComesLater_IsSeen) {
  const std::string socket = ",socket=" + File("memif.sock") + ",socket-abstract=no";
  DaemonProcess daemon =
      Start(Config("metrics: {address: ''}\ndpdk: {huge_pages: off, memory_mb: 128}\nports:\n"
                   "  - {name: first, mode: vdev, vdev: 'net_memif0,role=server" +
                   socket +
                   "', addresses: ['192.0.2.1/24']}\n"
                   "  - {name: second, mode: vdev, vdev: 'net_memif1,role=client" +
                   socket + "', addresses: ['192.0.2.2/24']}"));
  ASSERT_TRUE(daemon.WaitReady()) << daemon.Log();
  cli::Rpc rpc({.what = "gateway", .socket = File("run/grpc.sock")}, std::chrono::seconds(10));
  ASSERT_TRUE(rpc.Connect().ok());
  cli::StateClient client(rpc, "");
  types::v1::GatewayStatus status;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  do {
    ASSERT_TRUE(client.GetStatus(status).ok());
    ASSERT_EQ(status.ports_size(), 2);
  } while (!(status.ports(0).up() && status.ports(1).up()) &&
           std::chrono::steady_clock::now() < deadline);
  EXPECT_TRUE(status.ports(0).up() && status.ports(1).up()) << daemon.Log();
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.WaitExit(), 0) << daemon.Log();
}

TEST_F(RocegwdTest, DpdkModes_WrongDeviceOrNoRight_OneLineWithRemedy) {
  DaemonProcess daemon =
      Start(Config("ports: [{mode: vdev, vdev: net_nonsense0, addresses: "
                   "['192.0.2.1/24']}]"));
  EXPECT_EQ(daemon.WaitExit(), 3);
  EXPECT_NE(daemon.Log().find("error: port port0: "), std::string::npos) << daemon.Log();
  DaemonProcess absent = Start(Config(
      "dpdk: {huge_pages: off, memory_mb: 64}\nports: [{mode: pci, pci: 'fffe:ff:1f.7', addresses: "
      "['192.0.2.1/24']}]",
      "absent"));
  EXPECT_EQ(absent.WaitExit(), 3);
  EXPECT_NE(absent.Log().find("lspci -D"), std::string::npos) << absent.Log();
  DaemonProcess nobody =
      Start(Config("ports: [{mode: af_packet, interface: veth0}]", "other"), kNobody);
  EXPECT_EQ(nobody.WaitExit(), 3);
  EXPECT_NE(nobody.Log().find("error: port port0: "), std::string::npos) << nobody.Log();
}
#endif

TEST_F(RocegwdTest, AddressChange_ReachesStateAndSysfs) {
  DaemonProcess daemon = Start(Config(kPort));
  ASSERT_TRUE(daemon.WaitReady()) << daemon.Log();
  cli::Rpc rpc({.what = "gateway", .socket = File("run/grpc.sock")}, std::chrono::seconds(10));
  ASSERT_TRUE(rpc.Connect().ok());
  cli::StateClient client(rpc, "");
  Must("ip address add 10.9.0.77/24 dev veth0");
  // The kernel's message and our question race; the answer must be there after at most a few of
  // them.
  const auto has_address = [&] {
    types::v1::GatewayStatus status;
    EXPECT_TRUE(client.GetStatus(status).ok());
    const auto& addresses = status.ports(0).addresses();
    return std::find(addresses.begin(), addresses.end(), "10.9.0.77") != addresses.end();
  };
  bool seen = false;
  for (int i = 0; i < 2000 && !seen; ++i) seen = has_address();
  EXPECT_TRUE(seen);
  bool in_sysfs = false;
  for (const auto& entry :
       fs::directory_iterator(File("run/sysfs/class/infiniband/rocegw0/ports/1/gids"))) {
    std::string gid;
    std::getline(std::ifstream(entry.path()), gid);
    in_sysfs |= gid == "0000:0000:0000:0000:0000:ffff:0a09:004d";
  }
  EXPECT_TRUE(in_sysfs);
}

TEST_F(RocegwdTest, SecondDaemon_OnThePort_IsToldWhoHasIt) {
  DaemonProcess first = Start(Config(kPort));
  ASSERT_TRUE(first.WaitReady()) << first.Log();
  ExpectRefusal(Config(kPort, "other"), 3,
                "port port0: process " + std::to_string(first.pid()) + " (rocegwd) of user " +
                    std::to_string(geteuid()) +
                    " already serves UDP port 4791 in this network namespace; stop it, "
                    "or start this gateway in another network namespace");
}

TEST_F(RocegwdTest, SecondDaemon_OnTheRuntimeDir_IsToldWhoHasIt) {
  DaemonProcess first = Start(Config(kPort));
  ASSERT_TRUE(first.WaitReady()) << first.Log();
  ExpectRefusal(Config(kPort), 3,
                "runtime_dir " + File("run") + " belongs to process " +
                    std::to_string(first.pid()) + "; stop that rocegwd, or set runtime_dir");
}

TEST_F(RocegwdTest, Environment_NotAsItShouldBe_OneLineWithRemedy) {
  ExpectRefusal(Config("ports: [{interface: nope0}]"), 3,
                "port port0: no network interface nope0; there are: lo, veth1, veth0");
  ExpectRefusal(Config("ports: [{interface: veth0}]\nmetrics: {address: '203.0.113.9:7474'}"), 3,
                "metrics: cannot listen on 203.0.113.9:7474; another process may have the port or "
                "the address may not exist here: set metrics.address, or \"\" for none");
  ExpectRefusal(Config(std::string(kPort) + "attach_socket: {owner: no-such-user}"), 3,
                "attach_socket.owner: there is no user 'no-such-user'");
}

TEST_F(RocegwdTest, Unprivileged_RuntimeDirNotWritable_SaysRemedy) {
  Must("mkdir -m 0755 " + File("locked"));
  ExpectRefusal(Config(kPort, "locked/run"), 3,
                "runtime_dir " + File("locked/run") +
                    ": cannot be made: Permission denied; run as root, or set runtime_dir to a "
                    "directory that this user may write",
                kNobody);
}

}  // namespace
}  // namespace rocegw::daemon
