// SPDX-License-Identifier: Apache-2.0
#include "gateway/take_over/descriptors.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "gateway/memory/dma_buf.h"

namespace rocegw::take_over {
namespace {

enum class Network : uint8_t { kUnix, kInternet };

struct SocketRule {
  FdKind kind;
  Network network;
  bool listens;
  int type;
};

constexpr SocketRule kSocketRules[] = {
    {FdKind::kInstanceLock, Network::kUnix, true, SOCK_STREAM},
    {FdKind::kUdpReceive, Network::kInternet, false, SOCK_DGRAM},
    {FdKind::kAttachListener, Network::kUnix, true, SOCK_SEQPACKET},
    {FdKind::kGrpcListener, Network::kUnix, true, SOCK_STREAM},
    {FdKind::kMetricsListener, Network::kInternet, true, SOCK_STREAM},
    {FdKind::kTakeOverListener, Network::kUnix, true, SOCK_SEQPACKET},
    {FdKind::kClientSocket, Network::kUnix, false, SOCK_SEQPACKET},
    {FdKind::kEvents, Network::kUnix, false, SOCK_SEQPACKET},
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

// Memory that no process can make shorter, so that an access never faults.
bool IsSealedMemory(int fd) {
  constexpr int kFixed = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & kFixed) == kFixed;
}

// Returns true if the kernel describes the descriptor by a line that begins so (proc(5), fdinfo).
bool HasInfo(int fd, const std::string& begin) {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(fd));
  for (std::string line; std::getline(info, line);)
    if (line.starts_with(begin)) return true;
  return false;
}

}  // namespace

Status JudgeFd(FdKind kind, const std::string& name, int fd) {
  const auto number = std::to_string(static_cast<unsigned>(kind));
  const Status wrong(EPROTO, "descriptor '" + name + "' is not of kind " + number);
  if (kind == FdKind::kRuntimeLock) return IsFile(fd) ? OkStatus() : wrong;
  if (kind == FdKind::kChunk) return IsSealedMemory(fd) ? OkStatus() : wrong;
  // The session looks at a dma-buf's exporter and size.
  if (kind == FdKind::kRegion)
    return IsSealedMemory(fd) || memory::CheckDmaBuf(fd).ok() ? OkStatus() : wrong;
  if (kind == FdKind::kWake) return HasInfo(fd, "eventfd-count:") ? OkStatus() : wrong;
  if (kind == FdKind::kClientProcess) return HasInfo(fd, "Pid:") ? OkStatus() : wrong;
  if (kind == FdKind::kXrcFile) return (::fcntl(fd, F_GETFL) & O_PATH) != 0 ? OkStatus() : wrong;
  // The session looks at it more closely.
  if (kind == FdKind::kClientMemory) return IsFile(fd) ? OkStatus() : wrong;
  for (const SocketRule& rule : kSocketRules) {
    if (rule.kind == kind) return Follows(rule, fd) ? OkStatus() : wrong;
  }
  return {EPROTO, "descriptor '" + name + "' has kind " + number + ", which this version lacks"};
}

}  // namespace rocegw::take_over
