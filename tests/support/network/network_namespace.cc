// SPDX-License-Identifier: Apache-2.0
#include "tests/support/network/network_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace rocegw::testing {
namespace {

constexpr char kThreadNamespace[] = "/proc/thread-self/ns/net";

UniqueFd OpenCurrent() { return UniqueFd(open(kThreadNamespace, O_RDONLY | O_CLOEXEC)); }

}  // namespace

StatusOr<NetworkNamespace> NetworkNamespace::Create() {
  const UniqueFd previous = OpenCurrent();
  if (!previous.valid() || unshare(CLONE_NEWNET) != 0) {
    return Status(errno, std::string("cannot make a network namespace (") + strerror(errno) +
                             "): run this test as root");
  }
  UniqueFd fd = OpenCurrent();
  if (setns(previous.get(), CLONE_NEWNET) != 0 || !fd.valid()) {
    return Status(errno, std::string("cannot return from the new namespace: ") + strerror(errno));
  }
  NetworkNamespace result(std::move(fd));
  if (Status status = result.Run("ip link set lo up"); !status.ok()) return status;
  return result;
}

NetworkNamespace::Inside::Inside(const NetworkNamespace& where) : previous_(OpenCurrent()) {
  if (setns(where.fd_.get(), CLONE_NEWNET) != 0) std::perror("setns");
}

NetworkNamespace::Inside::~Inside() {
  if (setns(previous_.get(), CLONE_NEWNET) != 0) std::perror("setns");
}

Status NetworkNamespace::Run(const std::string& command) const {
  const Inside inside(*this);
  FILE* pipe = popen(("{ " + command + "; } 2>&1").c_str(), "re");
  if (pipe == nullptr) return {errno, "cannot run `" + command + "`: " + strerror(errno)};
  std::string output;
  char line[256];
  while (std::fgets(line, sizeof line, pipe) != nullptr) output += line;
  const int result = pclose(pipe);
  if (result == 0) return OkStatus();
  return {EIO, "`" + command + "` failed (" + std::to_string(result) + "): " + output};
}

std::string NetworkNamespace::path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd_.get());
}

namespace {

// Addresses are usable at once: no duplicate detection.
std::string SetUpCommand(const std::string& name, const std::string& host) {
  return "sysctl -qw net.ipv6.conf." + name + ".dad_transmits=0 && ip addr add 10.9.0." + host +
         "/24 dev " + name + " && ip addr add fd09::" + host + "/64 dev " + name +
         " nodad && ip link set " + name + " up";
}

std::string NeighbourCommand(const std::string& name, const std::string& host) {
  const std::string rest = " lladdr 02:09:00:00:00:0" + host + " nud permanent dev " + name;
  return "ip neigh replace 10.9.0." + host + rest + " && ip neigh replace fd09::" + host + rest;
}

}  // namespace

Status JoinByVeth(const NetworkNamespace& first, const NetworkNamespace& second,
                  const std::string& name, unsigned mtu) {
  const std::string m = " mtu " + std::to_string(mtu);
  const std::string mac = " address 02:09:00:00:00:0";
  Status status = first.Run("ip link add " + name + m + mac + "1 type veth peer name " + name + m +
                            mac + "2 netns " + second.path());
  if (status.ok()) status = first.Run(SetUpCommand(name, "1"));
  return status.ok() ? second.Run(SetUpCommand(name, "2")) : status;
}

Status IntroduceNeighbours(const NetworkNamespace& first, const NetworkNamespace& second,
                           const std::string& name) {
  Status status = first.Run(NeighbourCommand(name, "2"));
  return status.ok() ? second.Run(NeighbourCommand(name, "1")) : status;
}

}  // namespace rocegw::testing
