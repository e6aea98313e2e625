// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/descriptors/threadless_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace rocegw::session {
namespace {

[[noreturn]] void Run(const char* name, void (*run)(UniqueFd orders), UniqueFd orders) {
  ::prctl(PR_SET_NAME, name);
  (void)::setsid();  // not killed with the daemon's process group
  // A service manager ends the daemon, whose end ends this process. Nobody waits for its children.
  for (const int ignored : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGPIPE})
    ::signal(ignored, SIG_IGN);
  // The daemon may have been started without standard descriptors.
  orders.Reset(::fcntl(orders.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  // The daemon's output ends with the daemon.
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null.get(), number);
  const auto kept = static_cast<unsigned>(orders.get());
  if (kept > 3) ::close_range(3, kept - 1, 0);
  ::close_range(kept + 1, ~0U, 0);
  run(std::move(orders));
  ::_exit(0);
}

}  // namespace

StatusOr<UniqueFd> StartThreadlessProcess(const char* name, void (*run)(UniqueFd orders)) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return Status(errno, std::string("socketpair: ") + std::strerror(errno));
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return Status(errno, std::string("fork: ") + std::strerror(errno));
  if (child == 0) {
    ours.Reset();
    const pid_t process = ::fork();
    if (process != 0) ::_exit(process < 0 ? errno : 0);
    Run(name, run, std::move(theirs));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (const int error = WIFEXITED(status) ? WEXITSTATUS(status) : EIO; error != 0)
    return Status(error, std::string("fork: ") + std::strerror(error));
  return ours;
}

}  // namespace rocegw::session
