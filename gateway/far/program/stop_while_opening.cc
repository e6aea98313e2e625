// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/stop_while_opening.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>

namespace rocegw::far {
namespace {

void MakeReadable(const UniqueFd& fd) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd.get(), &one, sizeof one);
}

}  // namespace

StopWhileOpening::StopWhileOpening(int signals)
    : stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      end_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this, signals] { Watch(signals); }) {}

StopWhileOpening::~StopWhileOpening() {
  MakeReadable(end_fd_);
  thread_.join();
}

void StopWhileOpening::Watch(int signals) {
  std::array<pollfd, 2> ready{{{signals, POLLIN, 0}, {end_fd_.get(), POLLIN, 0}}};
  for (;;) {
    poll(ready.data(), ready.size(), -1);
    if (ready[1].revents != 0) return;
    signalfd_siginfo info{};
    if (read(signals, &info, sizeof info) != sizeof info || info.ssi_signo == SIGHUP) continue;
    stopped_ = true;
    MakeReadable(stop_fd_);
    return;
  }
}

}  // namespace rocegw::far
