// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/log/log_queue.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

namespace rocegw::process {
namespace {

constexpr size_t kMostLines = 8192;
constexpr size_t kMostBytes = size_t{4} << 20;

// Returns false if the descriptor takes no more output.
bool WriteAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

LogQueue::LogQueue(int descriptor) : shared_(std::make_shared<Shared>()) {
  shared_->descriptor = descriptor;
  // The thread starts before the program blocks the signals that it waits for. A process signal may
  // be delivered to any thread that does not block it, and would end the process there.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  std::thread thread([shared = shared_] { Run(shared); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_setname_np(thread.native_handle(), "rocegw-log");
  thread.detach();
}

LogQueue::~LogQueue() {
  const std::lock_guard lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
}

void LogQueue::Append(std::string_view line) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->lines.size() >= kMostLines || shared_->bytes + line.size() > kMostBytes) {
    ++shared_->dropped;
    return;
  }
  shared_->bytes += line.size();
  shared_->lines.emplace_back(line);
  shared_->changed.notify_all();
}

bool LogQueue::Flush(Duration within) {
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, std::chrono::nanoseconds(within.ns),
                                   [this] { return shared_->lines.empty() && !shared_->writing; });
}

uint64_t LogQueue::dropped() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->dropped;
}

void LogQueue::Run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  while (true) {
    const auto lost = [&] { return shared->dropped - shared->reported; };
    shared->changed.wait(lock,
                         [&] { return shared->stop || !shared->lines.empty() || lost() != 0; });
    const bool has_line = !shared->lines.empty();
    if (!has_line && lost() == 0) return;
    std::string text;
    if (has_line) {
      text = std::move(shared->lines.front());
      shared->bytes -= text.size();
      shared->lines.pop_front();
    } else {
      // Reported behind the lines that were queued before the dropped ones.
      text = std::to_string(lost()) + " lines of the log were dropped: their reader was too slow\n";
      shared->reported = shared->dropped;
    }
    shared->writing = true;
    lock.unlock();
    const bool written = WriteAll(shared->descriptor, text);
    lock.lock();
    shared->writing = false;
    if (!written) {
      if (has_line) ++shared->dropped;
      shared->reported = shared->dropped;
    }
    shared->changed.notify_all();
  }
}

}  // namespace rocegw::process
