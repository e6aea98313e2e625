// SPDX-License-Identifier: Apache-2.0
#include "agent/probe_program/watchdog.h"

#include <poll.h>
#include <unistd.h>

#include <mutex>
#include <thread>

#include "agent/probe_program/probe_lines.h"

namespace rocegw::probe {
namespace {

std::mutex g_mutex;
std::string g_stage;

[[noreturn]] void Watch(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, static_cast<int>(left.count())) <= 0) continue;
    char unwanted[64];
    if (read(STDIN_FILENO, unwanted, sizeof unwanted) <= 0) _exit(0);
  }
  const std::lock_guard lock(g_mutex);
  Tell(TextOf(Failed{Fault::kTimedOut, "no answer in time while " + g_stage}));
  _exit(1);
}

}  // namespace

void StartWatchdog(std::chrono::milliseconds time) {
  std::thread([time] { Watch(time); }).detach();
}

void SetStage(const std::string& stage) {
  const std::lock_guard lock(g_mutex);
  g_stage = stage;
}

void Tell(const std::string& line) {
  // Short enough for one write to a pipe. An error is ignored: then there is no reader.
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, line.data(), line.size());
}

}  // namespace rocegw::probe
