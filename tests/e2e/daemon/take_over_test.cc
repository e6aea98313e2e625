// SPDX-License-Identifier: Apache-2.0
// Replacement of a running rocegwd by a new process, from outside: nothing is refused meanwhile,
// what cannot be handed over is refused by name, and a kill at any moment leaves one gateway. Each
// test has a network namespace of its own. Needs root.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "controlplane/cli/client/state_client.h"
#include "gateway/abi/greeting.h"
#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/descriptor_message.h"
#include "rocegw/gateway/v1/config.pb.h"
#include "tests/e2e/daemon/daemon_process.h"
#include "tests/support/network/network_namespace.h"

namespace rocegw::daemon {
namespace {

namespace fs = std::filesystem;
using rocegw::testing::DaemonProcess;
using rocegw::testing::NetworkNamespace;

constexpr int kExitRefused = 3;

// Sends a greeting and returns the connection, or an invalid one if the daemon refused it or did
// not answer in time.
UniqueFd Attach(const std::string& path, uint32_t flags = 0) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const timeval patience{5, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
  rocegw_hello hello{};
  hello.header = {ROCEGW_MSG_HELLO, sizeof hello, 1};
  hello.magic = ROCEGW_ABI_MAGIC;
  hello.major = ROCEGW_ABI_MAJOR;
  hello.minor = ROCEGW_ABI_MINOR;
  hello.flags = flags;
  if (send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) return {};
  rocegw_hello_reply reply{};
  do {
    if (recv(socket.get(), &reply, sizeof reply, 0) < static_cast<ssize_t>(sizeof reply.header))
      return {};
  } while (reply.header.type != ROCEGW_MSG_HELLO);
  return reply.header.error == 0 ? std::move(socket) : UniqueFd();
}

void Pause(std::chrono::microseconds time) {
  const timespec wait{0, time.count() * 1000};
  ppoll(nullptr, 0, &wait, nullptr);
}

class TakeOverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto space = NetworkNamespace::Create();
    ASSERT_TRUE(space.ok()) << space.status().text();
    space_.emplace(std::move(*space));
    Must(
        "ip link add veth0 type veth peer name veth1 && ip link set veth0 up && "
        "ip link set veth1 up && ip link set lo up && ip address add 10.9.0.1/24 dev veth0");
    char pattern[] = "/tmp/rocegw-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    directory_ = pattern;
    config_ = Config("config", "");
  }
  void TearDown() override {
    daemon_.reset();
    fs::remove_all(directory_);
  }
  void Must(const std::string& command) const {
    const Status status = space_->Run(command);
    ASSERT_TRUE(status.ok()) << status.text();
  }
  std::string Config(const std::string& name, const std::string& more,
                     const std::string& port = "{interface: veth0}", int workers = 1) const {
    const std::string file = directory_ + "/" + name + ".yaml";
    std::ofstream(file) << "runtime_dir: " << Run() << "\nattach_socket: {path: " << Run()
                        << "/attach.sock}\ngrpc_socket: {path: " << Run() << "/grpc.sock}\nports: ["
                        << port << "]\nworkers: " << workers << "\n"
                        << (more.empty() ? "metrics: {address: ''}" : more) << "\n";
    return file;
  }
  std::string Run() const { return directory_ + "/run"; }
  std::string AttachPath() const { return Run() + "/attach.sock"; }

  // Each process has a directory for its notifications and its log.
  std::unique_ptr<DaemonProcess> Start(const std::string& config, bool takes_over,
                                       const std::string& option = "") {
    const std::string own = directory_ + "/" + std::to_string(processes_++);
    fs::create_directory(own);
    std::vector<std::string> arguments = {"--config", config};
    if (takes_over) arguments.push_back("--take-over");
    if (!option.empty()) arguments.push_back(option);
    return std::make_unique<DaemonProcess>(*space_, ROCEGWD, own, arguments);
  }
  void StartFirst() {
    daemon_ = Start(config_, false);
    ASSERT_TRUE(daemon_->WaitReady()) << daemon_->Log();
  }
  // Expects that a take-over is refused for the reason and that the first daemon goes on.
  void ExpectRefused(const std::string& config, const std::string& reason,
                     const std::string& of_daemon) {
    const auto fresh = Start(config, true);
    EXPECT_EQ(fresh->WaitExit(), kExitRefused) << fresh->Log();
    EXPECT_NE(fresh->Log().find(reason), std::string::npos) << fresh->Log();
    EXPECT_TRUE(daemon_->Logs(of_daemon)) << daemon_->Log();
    EXPECT_TRUE(Attach(AttachPath()).valid()) << daemon_->Log();
  }
  // Number of sockets that receive at the RoCE port.
  size_t ReceiveSockets() const {
    const NetworkNamespace::Inside inside(*space_);
    size_t count = 0;
    for (const char* const table : {"/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"}) {
      std::ifstream file(table);
      for (std::string line; std::getline(file, line);)
        count += line.find(":12B7 ") != std::string::npos ? 1 : 0;
    }
    return count;
  }

  std::optional<NetworkNamespace> space_;
  std::string directory_;
  std::string config_;
  int processes_ = 0;
  std::unique_ptr<DaemonProcess> daemon_;  // the gateway
};

TEST_F(TakeOverTest, TwentyInARow_NoAttachIsRefused) {
  StartFirst();
  std::atomic<bool> stop{false};
  std::atomic<int> attaches{0};
  std::atomic<int> refused{0};
  std::atomic<int64_t> longest_us{0};
  std::thread client([&] {
    while (!stop.load()) {
      const auto begin = std::chrono::steady_clock::now();
      (Attach(AttachPath()).valid() ? attaches : refused).fetch_add(1);
      const auto took = std::chrono::steady_clock::now() - begin;
      longest_us = std::max<int64_t>(
          longest_us, std::chrono::duration_cast<std::chrono::microseconds>(took).count());
    }
  });
  for (int i = 0; i < 20; ++i) {
    auto fresh = Start(config_, true);
    // The old process names the new one to the service manager and ends.
    std::string said;
    while (!(said = daemon_->NextNotification()).empty() && !said.starts_with("MAINPID=")) {
    }
    EXPECT_EQ(said, "MAINPID=" + std::to_string(fresh->pid()));
    EXPECT_EQ(daemon_->WaitExit(), 0) << daemon_->Log();
    EXPECT_TRUE(fresh->WaitReady()) << fresh->Log();
    daemon_ = std::move(fresh);
  }
  stop = true;
  client.join();
  EXPECT_EQ(refused, 0);
  EXPECT_GT(attaches, 20);
  std::cout << "attaches " << attaches << ", longest " << longest_us << " us\n";
  EXPECT_EQ(ReceiveSockets(), 1u);

  cli::Rpc rpc({.what = "gateway", .socket = Run() + "/grpc.sock"}, std::chrono::seconds(10));
  ASSERT_TRUE(rpc.Connect().ok());
  cli::StateClient client_of_state(rpc, "");
  types::v1::GatewayStatus status;
  ASSERT_TRUE(client_of_state.GetStatus(status).ok());
  EXPECT_EQ(status.take_overs().count(), 20);
  EXPECT_GT(status.take_overs().last_blackout().nanos(), 0);
  EXPECT_GE(status.take_overs().descriptors(), 20u * 6);

  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->WaitExit(), 0);
  EXPECT_FALSE(fs::exists(AttachPath()));
  EXPECT_FALSE(fs::exists(Run() + "/take_over.sock"));
}

// Sends a request over a connection that may be older than the daemon, and receives the answer.
// Returns the errno; -1: no answer.
template <typename Asked, typename Answer>
int Ask(const UniqueFd& session, uint32_t type, Asked request, Answer& reply) {
  request.header = {type, sizeof request, 7};
  if (send(session.get(), &request, sizeof request, MSG_NOSIGNAL) != sizeof request) return -1;
  do {
    reply = {};
    if (recv(session.get(), &reply, sizeof reply, 0) < static_cast<ssize_t>(sizeof reply.header))
      return -1;
  } while (reply.header.type != type);
  return reply.header.error;
}

int AskForDevice(const UniqueFd& session) {
  rocegw_device_reply reply;
  return Ask(session, ROCEGW_MSG_QUERY_DEVICE, rocegw_query_device{}, reply);
}

// Attaches a program that has loaded CUDA, which is not handed over.
UniqueFd AttachWithDevices(const std::string& path) { return Attach(path, ROCEGW_HELLO_DEVICES); }

// Opens the XRC domain of a file. Returns its handle; 0: refused.
uint32_t OpenDomain(const UniqueFd& session, const UniqueFd& file) {
  rocegw_object_reply context;
  if (Ask(session, ROCEGW_MSG_OPEN_CONTEXT, rocegw_open_context{}, context) != 0) return 0;
  rocegw_open_xrcd open{};
  open.header = {ROCEGW_MSG_OPEN_XRCD, sizeof open, 7};
  open.context = context.handle;
  open.flags = ROCEGW_XRCD_CREATE;
  open.named = 1;
  const int fd = file.get();
  if (SendDescriptors(session.get(), {reinterpret_cast<const uint8_t*>(&open), sizeof open},
                      {&fd, 1}, 0) != sizeof open)
    return 0;
  rocegw_object_reply domain;
  do {
    domain = {};
    if (recv(session.get(), &domain, sizeof domain, 0) < static_cast<ssize_t>(sizeof domain.header))
      return 0;
  } while (domain.header.type != ROCEGW_MSG_OPEN_XRCD);
  return domain.header.error == 0 ? domain.handle : 0;
}

TEST_F(TakeOverTest, ProgramAttached_KeepsItsSession) {
  StartFirst();
  const UniqueFd session = Attach(AttachPath());
  ASSERT_TRUE(session.valid());
  for (int i = 0; i < 5; ++i) {
    auto fresh = Start(config_, true);
    EXPECT_EQ(daemon_->WaitExit(), 0) << daemon_->Log();
    daemon_ = std::move(fresh);
    ASSERT_TRUE(daemon_->WaitReady()) << daemon_->Log();
    EXPECT_EQ(AskForDevice(session), 0) << daemon_->Log();
  }
  EXPECT_TRUE(Attach(AttachPath()).valid());
}

// Programs in one XRC domain keep it, and a later program finds it by its file.
TEST_F(TakeOverTest, XrcDomainOfSeveralPrograms_GoesOver) {
  StartFirst();
  const UniqueFd file(memfd_create("domain", MFD_CLOEXEC));
  const UniqueFd first = Attach(AttachPath());
  const UniqueFd second = Attach(AttachPath());
  const uint32_t domain = OpenDomain(first, file);
  ASSERT_NE(domain, 0u);
  ASSERT_NE(OpenDomain(second, file), 0u);
  rocegw_create_qp create{};
  create.type = ROCEGW_QPT_XRC_RECV;
  create.xrcd = domain;
  rocegw_qp_reply target;
  ASSERT_EQ(Ask(first, ROCEGW_MSG_CREATE_QP, create, target), 0);
  for (int i = 0; i < 2; ++i) {
    auto fresh = Start(config_, true);
    EXPECT_EQ(daemon_->WaitExit(), 0) << daemon_->Log();
    daemon_ = std::move(fresh);
    ASSERT_TRUE(daemon_->WaitReady()) << daemon_->Log();
  }
  const UniqueFd late = Attach(AttachPath());
  rocegw_open_qp open{};
  open.xrcd = OpenDomain(late, file);
  ASSERT_NE(open.xrcd, 0u);
  open.qpn = target.qpn;
  rocegw_qp_reply opened;
  EXPECT_EQ(Ask(late, ROCEGW_MSG_OPEN_QP, open, opened), 0) << daemon_->Log();
  const UniqueFd other(memfd_create("domain", MFD_CLOEXEC));
  open.xrcd = OpenDomain(second, other);
  EXPECT_EQ(Ask(second, ROCEGW_MSG_OPEN_QP, open, opened), EINVAL);
}

TEST_F(TakeOverTest, ProgramOfAPoolThatIsNotTrusted_KeepsItsSession) {
  config_ = Config("untrusted", "metrics: {address: ''}\ndefault_pool: {trusted: false}");
  StartFirst();
  const UniqueFd session = Attach(AttachPath());
  ASSERT_TRUE(session.valid());
  auto fresh = Start(config_, true);
  EXPECT_EQ(daemon_->WaitExit(), 0) << daemon_->Log();
  daemon_ = std::move(fresh);
  ASSERT_TRUE(daemon_->WaitReady()) << daemon_->Log();
  EXPECT_EQ(AskForDevice(session), 0) << daemon_->Log();
}

TEST_F(TakeOverTest, ProgramThatIsNotCovered_IsRefused_AndAgainPossibleLater) {
  StartFirst();
  {
    const UniqueFd session = AttachWithDevices(AttachPath());
    ASSERT_TRUE(session.valid());
    ExpectRefused(config_, "an attached program cannot be handed over: ", "has loaded CUDA");
    EXPECT_EQ(AskForDevice(session), 0) << "the session ended";
  }
  auto fresh = Start(config_, true);
  EXPECT_EQ(daemon_->WaitExit(), 0) << daemon_->Log();
  daemon_ = std::move(fresh);
  ASSERT_TRUE(daemon_->WaitReady());
  // Refusals are counted over processes.
  cli::Rpc rpc({.what = "gateway", .socket = Run() + "/grpc.sock"}, std::chrono::seconds(10));
  ASSERT_TRUE(rpc.Connect().ok());
  cli::StateClient client(rpc, "");
  types::v1::GatewayStatus status;
  ASSERT_TRUE(client.GetStatus(status).ok());
  EXPECT_EQ(status.take_overs().refusals().at("sessions"), 1);
}

// An attach that waits for an agent's verdict is not handed over: the gateway goes on and answers.
TEST_F(TakeOverTest, AttachThatIsHeld_IsRefused_AndPreventsNothing) {
  config_ = Config("asking", R"(metrics: {address: ''}
static:
  tenants: [{name: tenants/red}]
  pools:
    - name: tenants/red/pools/asking
      uid: aaaaaaaa-0000-4000-8000-000000000000
      spec: {slots: 1, attach: {identity: REQUIRED}})");
  StartFirst();
  std::atomic<int> held{0};  // 1: waits, 2: refused, 3: attached
  std::thread program([&] {
    held = 1;
    held = Attach(Run() + "/a/aaaaaaaa/0/attach.sock").valid() ? 3 : 2;
  });
  Pause(std::chrono::milliseconds(300));
  ASSERT_EQ(held, 1) << daemon_->Log();
  auto fresh = Start(config_, true);
  EXPECT_EQ(daemon_->WaitExit(), 0) << daemon_->Log();
  daemon_ = std::move(fresh);
  EXPECT_TRUE(daemon_->WaitReady()) << daemon_->Log();
  program.join();
  EXPECT_EQ(held, 2) << "it may try again at the new gateway";
}

TEST_F(TakeOverTest, DrainThatWasOrderedHere_GoesOn) {
  StartFirst();
  for (const bool drain : {true, false}) {
    {
      cli::Rpc rpc({.what = "gateway", .socket = Run() + "/grpc.sock"}, std::chrono::seconds(10));
      ASSERT_TRUE(rpc.Connect().ok());
      gateway::v1::DrainRequest request;
      request.set_drain(drain);
      gateway::v1::DrainResponse response;
      ASSERT_TRUE(rpc.Call("/rocegw.gateway.v1.ConfigService/Drain", request, response).ok());
    }
    auto fresh = Start(config_, true);
    EXPECT_EQ(daemon_->WaitExit(), 0) << daemon_->Log();
    daemon_ = std::move(fresh);
    ASSERT_TRUE(daemon_->WaitReady()) << daemon_->Log();
    EXPECT_EQ(Attach(AttachPath()).valid(), !drain) << daemon_->Log();
  }
}

TEST_F(TakeOverTest, WhatDoesNotFit_IsRefusedByName) {
  StartFirst();
  ExpectRefused(Config("workers", "", "{interface: veth0}", 2),
                "the new process has 'workers 2', the running gateway 'workers 1'",
                "take-over: not done: ports, workers or places differ");
  ExpectRefused(Config("port", "", "{interface: veth1}"),
                "the new process has 'port port0: udp on veth1', the running gateway 'port "
                "port0: udp on veth0'",
                "veth1");
  ExpectRefused(Config("bind", "metrics: {address: '192.0.2.77:1'}"),
                "metrics: cannot listen on 192.0.2.77:1",
                "take-over: not done: the new process could not start: metrics: cannot listen");
  EXPECT_EQ(ReceiveSockets(), 1u);
}

TEST_F(TakeOverTest, Signal_StartsTheProgramAgain) {
  StartFirst();
  {
    const UniqueFd session = AttachWithDevices(AttachPath());
    ASSERT_TRUE(session.valid());
    daemon_->Signal(SIGUSR2);
    EXPECT_TRUE(daemon_->Logs("take-over: not done: an attached program")) << daemon_->Log();
  }
  daemon_->Signal(SIGUSR2);
  std::string said;
  while (!(said = daemon_->NextNotification()).empty() && !said.starts_with("MAINPID=")) {
  }
  const std::string prefix = "MAINPID=";
  ASSERT_TRUE(said.starts_with(prefix)) << daemon_->Log();
  EXPECT_EQ(daemon_->WaitExit(), 0) << daemon_->Log();
  EXPECT_TRUE(Attach(AttachPath()).valid());
  const pid_t successor = std::stoi(said.substr(prefix.size()));
  // Ready is said by the new main process, behind what the old one said.
  while (!said.starts_with("READY=1")) {
    said = daemon_->NextNotification();
    if (said.empty()) break;
  }
  EXPECT_TRUE(said.starts_with("READY=1")) << daemon_->Log();
  kill(successor, SIGKILL);
}

TEST_F(TakeOverTest, StayWhenReplaced_TheOldProcessIdlesWithoutAnything) {
  daemon_ = Start(config_, false, "--stay-when-replaced");
  ASSERT_TRUE(daemon_->WaitReady()) << daemon_->Log();
  const auto fresh = Start(config_, true, "--stay-when-replaced");
  ASSERT_TRUE(fresh->WaitReady()) << fresh->Log();
  const std::string process = "/proc/" + std::to_string(daemon_->pid());
  // It keeps the descriptors of its standard streams; the loader of its program has others at
  // first.
  const auto is_idle = [&] {
    std::string words;
    std::getline(std::ifstream(process + "/cmdline"), words);
    if (words.find("--idle") == std::string::npos) return false;
    const fs::directory_iterator descriptors(process + "/fd");
    return std::ranges::none_of(descriptors, [](const fs::directory_entry& entry) {
      return std::stoi(entry.path().filename()) > STDERR_FILENO;
    });
  };
  for (int i = 0; i < 1000 && !is_idle(); ++i) Pause(std::chrono::milliseconds(10));
  ASSERT_TRUE(is_idle()) << daemon_->Log();
  EXPECT_TRUE(Attach(AttachPath()).valid());
  for (const int signal : {SIGHUP, SIGUSR2}) daemon_->Signal(signal);
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->WaitExit(), 0) << daemon_->Log();
  EXPECT_TRUE(Attach(AttachPath()).valid());
}

TEST_F(TakeOverTest, NothingRuns_StartsAsUsual) {
  daemon_ = Start(config_, true);
  EXPECT_TRUE(daemon_->WaitReady()) << daemon_->Log();
  EXPECT_TRUE(Attach(AttachPath()).valid());
}

TEST_F(TakeOverTest, XdpPort_IsRefusedByName) {
  config_ = Config("xdp", "metrics: {address: ''}", "{mode: af_xdp, interface: veth0}");
  StartFirst();
  ExpectRefused(config_, "a port is not on kernel sockets: port port0", "port port0");
}

#ifdef ROCEGW_WITH_DPDK
TEST_F(TakeOverTest, DpdkPort_IsRefusedByName) {
  config_ = Config("dpdk", "metrics: {address: ''}\ndpdk: {huge_pages: off, memory_mb: 128}",
                   "{mode: af_packet, interface: veth0}");
  StartFirst();
  ExpectRefused(config_, "a port is not on kernel sockets: port port0", "port port0");
}
#endif

// Kills the old process, the new one or both at a random moment of a take-over.
TEST_F(TakeOverTest, KilledAtAnyMoment_OneGatewayIsLeft) {
  const char* const given = std::getenv("ROCEGW_TEST_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "ROCEGW_TEST_SEED=" << seed << "\n";
  std::mt19937_64 random(seed);
  StartFirst();
  int taken_over = 0;
  int gone_on = 0;
  int kept = 0;
  UniqueFd session;
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE("kill " + std::to_string(i));
    if (!session.valid()) session = Attach(AttachPath());
    auto fresh = Start(config_, true);
    const auto victim = random() % 5;  // 0, 1: old; 2, 3: new; 4: both
    Pause(std::chrono::microseconds(random() % 150000));
    if (victim <= 1 || victim == 4) daemon_->Signal(SIGKILL);
    if (victim >= 2) fresh->Signal(SIGKILL);
    if (victim == 4) {
      daemon_->WaitExit();
      fresh->WaitExit();
      EXPECT_FALSE(Attach(AttachPath()).valid());
      EXPECT_EQ(ReceiveSockets(), 0u);
      daemon_.reset();
      session.Reset();
      StartFirst();
      continue;
    }
    DaemonProcess& killed = victim <= 1 ? *daemon_ : *fresh;
    DaemonProcess& other = victim <= 1 ? *fresh : *daemon_;
    killed.WaitExit();
    if (victim <= 1) {
      ASSERT_TRUE(other.WaitReady()) << other.Log();
      ++taken_over;
      daemon_ = std::move(fresh);
    } else if (!Attach(AttachPath()).valid()) {
      // The new one was the gateway, and the old one was leaving.
      EXPECT_EQ(other.WaitExit(), 0);
      EXPECT_NE(other.Log().find("is the gateway after a pause"), std::string::npos) << other.Log();
      daemon_.reset();
      session.Reset();
      StartFirst();
      continue;
    } else {
      ++gone_on;
    }
    ASSERT_TRUE(Attach(AttachPath()).valid()) << daemon_->Log();
    ASSERT_EQ(ReceiveSockets(), 1u);
    // The program keeps its session, unless the old one died before it was handed over.
    if (AskForDevice(session) == 0) {
      ++kept;
      continue;
    }
    ASSERT_LE(victim, 1u) << daemon_->Log();
    session.Reset();
  }
  EXPECT_GT(taken_over, 0);
  EXPECT_GT(gone_on, 0);
  EXPECT_GE(kept, gone_on);
}

}  // namespace
}  // namespace rocegw::daemon
