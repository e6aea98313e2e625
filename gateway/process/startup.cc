// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/startup.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <cerrno>

namespace rocegw::process {

StatusOr<UniqueFd> BlockSignals(std::initializer_list<int> more) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  for (const int signal : more) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  UniqueFd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return Status(errno, "signals: no descriptor");
  return fd;
}

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace rocegw::process
