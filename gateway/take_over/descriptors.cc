// SPDX-License-Identifier: Apache-2.0
#include "gateway/take_over/descriptors.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

namespace rocegw::take_over {
namespace {

enum class Network : uint8_t { kUnix, kInternet };

struct SocketRule {
  FdKind kind;
  Network network;
  int type;
  bool listens;
};

constexpr SocketRule kSocketRules[] = {
    {FdKind::kInstanceLock, Network::kUnix, SOCK_STREAM, true},
    {FdKind::kUdpReceive, Network::kInternet, SOCK_DGRAM, false},
    {FdKind::kAttachListener, Network::kUnix, SOCK_SEQPACKET, true},
    {FdKind::kGrpcListener, Network::kUnix, SOCK_STREAM, true},
    {FdKind::kMetricsListener, Network::kInternet, SOCK_STREAM, true},
    {FdKind::kTakeOverListener, Network::kUnix, SOCK_SEQPACKET, true},
};

int Option(int fd, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

bool Follows(const SocketRule& rule, int fd) {
  const int domain = Option(fd, SO_DOMAIN);
  const bool network =
      rule.network == Network::kUnix ? domain == AF_UNIX : domain == AF_INET || domain == AF_INET6;
  return network && Option(fd, SO_TYPE) == rule.type &&
         (Option(fd, SO_ACCEPTCONN) == 1) == rule.listens;
}

bool IsFile(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

Status JudgeFd(FdKind kind, const std::string& name, int fd) {
  const auto number = std::to_string(static_cast<unsigned>(kind));
  const Status wrong(EPROTO, "descriptor '" + name + "' is not of kind " + number);
  if (kind == FdKind::kRuntimeLock) return IsFile(fd) ? OkStatus() : wrong;
  for (const SocketRule& rule : kSocketRules) {
    if (rule.kind == kind) return Follows(rule, fd) ? OkStatus() : wrong;
  }
  return {EPROTO, "descriptor '" + name + "' has kind " + number + ", which this version lacks"};
}

}  // namespace rocegw::take_over
