// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/store/etcd_cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "gateway/base/unique_fd.h"

namespace rocegw::testing {
namespace {

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "etcd: %s\n", what.c_str());
  std::abort();
}

// Ports that nobody uses now; held until all are chosen, so that they differ.
std::vector<uint16_t> FreePorts(size_t count) {
  std::vector<UniqueFd> held;
  std::vector<uint16_t> ports;
  ports.reserve(count);
  held.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = Loopback(0);
    socklen_t length = sizeof(address);
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      Die("no free port");
    }
    ports.push_back(ntohs(address.sin_port));
    held.push_back(std::move(fd));
  }
  return ports;
}

// The text of a page of its HTTP service; empty when it does not answer at once.
std::string Page(uint16_t port, const std::string& path) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{0, 300000};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const sockaddr_in address = Loopback(port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return "";
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
  std::string text;
  char block[16384];
  ssize_t count = 0;
  while ((count = ::recv(fd.get(), block, sizeof(block), 0)) > 0) {
    text.append(block, static_cast<size_t>(count));
  }
  return text;
}

// Until it holds, looking every 20 ms; half a minute at most.
template <typename F>
void Await(const std::string& what, F&& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) Die("no " + what + " within 30 s");
    ::poll(nullptr, 0, 20);
  }
}

std::string Url(uint16_t port) { return "http://127.0.0.1:" + std::to_string(port); }

}  // namespace

EtcdCluster::EtcdCluster(size_t members) : members_(members) {
  const auto ports = FreePorts(2 * members);
  for (size_t i = 0; i < members; ++i) {
    members_[i].client_port = ports[2 * i];
    members_[i].peer_port = ports[2 * i + 1];
    peers_ += (i == 0 ? "" : ",") + ("m" + std::to_string(i)) + "=" + Url(members_[i].peer_port);
  }
  for (size_t i = 0; i < members; ++i) Start(i);
  for (const Member& member : members_) {
    Await("healthy member", [&] {
      return Page(member.client_port, "/health").find("\"health\":\"true\"") != std::string::npos;
    });
  }
}

void EtcdCluster::Start(size_t index) {
  Member& member = members_[index];
  const std::string name = "m" + std::to_string(index);
  const std::string data = directory_.File(name);
  const std::string log = directory_.File(name + ".log");
  const std::vector<std::string> words = {"etcd",
                                          "--name",
                                          name,
                                          "--data-dir",
                                          data,
                                          "--listen-client-urls",
                                          Url(member.client_port),
                                          "--advertise-client-urls",
                                          Url(member.client_port),
                                          "--listen-peer-urls",
                                          Url(member.peer_port),
                                          "--initial-advertise-peer-urls",
                                          Url(member.peer_port),
                                          "--initial-cluster",
                                          peers_,
                                          "--initial-cluster-token",
                                          directory_.File(""),
                                          "--heartbeat-interval",
                                          "50",
                                          "--election-timeout",
                                          "500",
                                          "--logger",
                                          "zap",
                                          "--log-level",
                                          "error"};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  member.pid = ::fork();
  if (member.pid < 0) Die("cannot fork");
  if (member.pid > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::execvp("etcd", arguments.data());
  ::_exit(127);
}

EtcdCluster::~EtcdCluster() {
  for (const Member& member : members_) {
    if (member.pid > 0) ::kill(member.pid, SIGKILL);
  }
  for (const Member& member : members_) {
    if (member.pid > 0) ::waitpid(member.pid, nullptr, 0);
  }
}

store::EtcdOptions EtcdCluster::Options(const std::string& root) const {
  store::EtcdOptions options;
  for (const Member& member : members_) {
    options.endpoints.push_back("127.0.0.1:" + std::to_string(member.client_port));
  }
  options.root = root;
  return options;
}

size_t EtcdCluster::Leader() const {
  size_t leader = 0;
  Await("leader", [&] {
    for (leader = 0; leader < members_.size(); ++leader) {
      const std::string page = Page(members_[leader].client_port, "/metrics");
      if (page.find("\netcd_server_is_leader 1\n") != std::string::npos) return true;
    }
    return false;
  });
  return leader;
}

void EtcdCluster::Signal(size_t member, int signal) {
  ::kill(members_[member].pid, signal);
  // Its other threads may run on for a moment, and answer.
  if (signal == SIGSTOP) ::waitpid(members_[member].pid, nullptr, WUNTRACED);
}

void EtcdCluster::Restart(size_t member) {
  ::waitpid(members_[member].pid, nullptr, 0);
  Start(member);
}

}  // namespace rocegw::testing
