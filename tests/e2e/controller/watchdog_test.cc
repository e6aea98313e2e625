// SPDX-License-Identifier: Apache-2.0
// A controller or an agent whose main thread is blocked says so in its log and on /livez. Opening a
// FIFO in place of the configuration blocks that thread until a writer comes.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

#include "gateway/base/unique_fd.h"
#include "tests/e2e/controller/controller_host.h"

namespace rocegw::testing {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

// Returns the answer of /livez with its head.
std::string Livez(int port) {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(port));
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return {};
  const std::string request = "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return {};
  std::string answer;
  char bytes[4096];
  for (ssize_t length; (length = recv(fd.get(), bytes, sizeof bytes, 0)) > 0;) {
    answer.append(bytes, static_cast<size_t>(length));
  }
  return answer;
}

// Waits until /livez answers with this status. Returns the last answer.
std::string AwaitLivez(int port, const std::string& status) {
  std::string answer;
  for (const auto deadline = steady_clock::now() + seconds(60); steady_clock::now() < deadline;) {
    answer = Livez(port);
    if (answer.starts_with("HTTP/1.1 " + status)) break;
    poll(nullptr, 0, 200);
  }
  return answer;
}

void BlockReload(const DaemonProcess& daemon, const std::string& config) {
  ASSERT_EQ(rename(config.c_str(), (config + ".kept").c_str()), 0);
  ASSERT_EQ(mkfifo(config.c_str(), 0600), 0);
  daemon.Signal(SIGHUP);
}

void GoOn(const std::string& config) {
  const std::string fifo = config + ".fifo";
  ASSERT_EQ(rename(config.c_str(), fifo.c_str()), 0);
  ASSERT_EQ(rename((config + ".kept").c_str(), config.c_str()), 0);
  const std::ofstream writer(fifo);
}

TEST(Watchdog, BlockedControllerIsNamedUntilItGoesOn) {
  ControllerHost host;
  const int port = FreePort();
  std::ofstream(host.config_file())
      << "state_dir: " << host.File("state") << "\naddress: " << host.address()
      << "\nmetrics: {address: '127.0.0.1:" << port << "'}\n";
  host.Start();
  EXPECT_TRUE(Livez(port).starts_with("HTTP/1.1 200"));
  BlockReload(host.process(), host.config_file());
  const std::string stuck = AwaitLivez(port, "503");
  EXPECT_NE(stuck.find("the main thread has been stuck for"), std::string::npos) << stuck;
  EXPECT_TRUE(host.process().Logs("watchdog: the main thread")) << host.process().Log();
  EXPECT_TRUE(host.process().Logs("call stack: ")) << host.process().Log();
  GoOn(host.config_file());
  EXPECT_TRUE(AwaitLivez(port, "200").starts_with("HTTP/1.1 200"));
  EXPECT_EQ(host.Stop(), 0);
}

TEST(Watchdog, BlockedAgentIsNamedUntilItGoesOn) {
  ControllerHost host;
  host.Start();
  Shell(std::string(AGENT_PROGRAM) + " --state-dir " + host.File("agent") + " --join " +
        host.State("join.yaml"));
  const int port = FreePort();
  const std::string config = host.File("agent.yaml");
  std::ofstream(config) << "state_dir: " << host.File("agent")
                        << "\ngateway_socket: " << host.File("none.sock")
                        << "\nmetrics: {address: '127.0.0.1:" << port << "'}\n";
  DaemonProcess agent(AGENT_PROGRAM, host.File("agent"), {"--config", config});
  ASSERT_TRUE(agent.WaitReady()) << agent.Log();
  EXPECT_TRUE(Livez(port).starts_with("HTTP/1.1 200"));
  BlockReload(agent, config);
  const std::string stuck = AwaitLivez(port, "503");
  EXPECT_NE(stuck.find("the control loop has been stuck for"), std::string::npos) << stuck;
  EXPECT_TRUE(agent.Logs("watchdog: the control loop")) << agent.Log();
  GoOn(config);
  EXPECT_TRUE(AwaitLivez(port, "200").starts_with("HTTP/1.1 200"));
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.WaitExit(), 0);
}

}  // namespace
}  // namespace rocegw::testing
