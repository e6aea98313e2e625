// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/wait_for_stop.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace rocegw::far {

void WaitForStop(int signals) {
  pollfd ready{signals, POLLIN, 0};
  signalfd_siginfo info{};
  do {
    poll(&ready, 1, -1);
  } while (read(signals, &info, sizeof info) != sizeof info || info.ssi_signo == SIGHUP);
}

}  // namespace rocegw::far
