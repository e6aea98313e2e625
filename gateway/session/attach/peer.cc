// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/peer.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "gateway/base/foreign_text.h"

namespace rocegw::session {
namespace {

std::string ReadProcFile(pid_t pid, const char* name) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + name;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return {};
  char text[4096];
  const ssize_t length = ::read(fd.get(), text, sizeof text);
  return length <= 0 ? std::string() : std::string(text, static_cast<size_t>(length));
}

// Returns a descriptor of the process at the other end, even if its number was reused
// (SO_PEERPIDFD, Linux 6.5); invalid on older kernels. ESRCH: the process has exited.
StatusOr<UniqueFd> PeerProcess(int socket) {
  constexpr int kPeerPidfd = 77;  // value of SO_PEERPIDFD, which older headers lack
  int process = -1;
  socklen_t length = sizeof process;
  if (::getsockopt(socket, SOL_SOCKET, kPeerPidfd, &process, &length) == 0)
    return UniqueFd(process);
  if (errno == ENOPROTOOPT) return UniqueFd();
  return Status(errno, std::string("SO_PEERPIDFD: ") + std::strerror(errno));
}

// Returns true if the process behind a descriptor still exists. EPERM proves it, too.
bool HasItsNumber(int process) {
  return ::syscall(SYS_pidfd_send_signal, process, 0, nullptr, 0) == 0 || errno != ESRCH;
}

}  // namespace

std::optional<uint64_t> ProcessStartTime(pid_t pid) {
  const std::string stat = ReadProcFile(pid, "stat");
  // The second field is the program's name in parentheses and may contain anything; the third
  // follows the last ')'.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(stat).substr(name_end + 1);
  constexpr int kStartField = 22;
  for (int field = 3;; ++field) {
    const size_t begin = rest.find_first_not_of(' ');
    if (begin == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(begin);
    const size_t end = rest.find(' ');
    const std::string_view word = rest.substr(0, end);
    if (field == kStartField) {
      uint64_t value = 0;
      const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
      if (error != std::errc() || stop != word.data() + word.size()) return std::nullopt;
      return value;
    }
    if (end == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(end);
  }
}

std::string CgroupIn(const std::string& text) {
  std::string unified;
  std::string other;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    // NUMBER:CONTROLLERS:PATH; version 2 has the number 0 and no controllers.
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == std::string_view::npos ? first : first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view path = line.substr(second + 1);
    if (line.starts_with("0::")) {
      unified = path;
    } else if (path != "/" && other.empty()) {
      other = path;
    }
  }
  return !other.empty() && (unified.empty() || unified == "/") ? other : unified;
}

std::string ProcessCgroup(pid_t pid) { return CgroupIn(ReadProcFile(pid, "cgroup")); }

StatusOr<Peer> IdentifyPeer(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return Status(errno, std::string("SO_PEERCRED: ") + std::strerror(errno));
  }
  Peer peer;
  peer.pid = credentials.pid;
  peer.uid = credentials.uid;
  peer.gid = credentials.gid;
  if (peer.pid == 0) return peer;
  const std::string is_gone = "process " + std::to_string(peer.pid) + " is gone";
  auto exact = PeerProcess(socket);
  if (!exact.ok()) {
    const bool none_left = exact.status().error() == EMFILE || exact.status().error() == ENFILE;
    return none_left ? exact.status() : Status(ESRCH, is_gone);
  }
  peer.process = std::move(*exact);
  const auto before = ProcessStartTime(peer.pid);
  // On older kernels the process may have exited before this, and another may have its number.
  if (!peer.process.valid())
    peer.process.Reset(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
  peer.cgroup = ForeignText(ProcessCgroup(peer.pid));
  const auto after = ProcessStartTime(peer.pid);
  // The number named one process throughout, and still names the process of the descriptor.
  if (!before || !peer.process.valid() || before != after || !HasItsNumber(peer.process.get())) {
    // Without a free descriptor neither /proc nor the process can be examined.
    const UniqueFd free(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
    if (!free.valid()) return Status(errno, std::strerror(errno));
    return Status(ESRCH, is_gone);
  }
  peer.start_time = *before;
  // The process chose its name. The kernel appends a line feed.
  std::string comm = ReadProcFile(peer.pid, "comm");
  if (comm.ends_with('\n')) comm.pop_back();
  peer.comm = ForeignText(comm);
  return peer;
}

}  // namespace rocegw::session
