// SPDX-License-Identifier: Apache-2.0
#include "agent/supervise/file_change.h"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace rocegw::agent {
namespace {

constexpr Duration kSettle = Milliseconds(100);
constexpr uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE;

}  // namespace

FileChange::FileChange(ControlLoop& loop, const std::string& path, std::function<void()> changed)
    : loop_(loop), changed_(std::move(changed)) {
  if (path.empty()) return;
  const std::filesystem::path file = std::filesystem::absolute(path).lexically_normal();
  name_ = file.filename();
  notify_ = UniqueFd(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (notify_.valid() &&
      inotify_add_watch(notify_.get(), file.parent_path().c_str(), kEvents) >= 0) {
    watch_ = loop_.Watch(notify_.get(), EPOLLIN, [this](uint32_t) { OnEvents(); });
  }
  if (watch_ == 0) {
    spdlog::warn("changes of {} are not noticed: {}; SIGHUP reads it again", path,
                 std::strerror(errno));
  }
}

FileChange::~FileChange() {
  loop_.Unwatch(watch_);
  loop_.Cancel(settle_);
}

void FileChange::OnEvents() {
  alignas(inotify_event) char buffer[4096];
  bool ours = false;
  for (ssize_t n = 0; (n = read(notify_.get(), buffer, sizeof buffer)) > 0;) {
    for (ssize_t at = 0; at < n;) {
      const auto& event = *reinterpret_cast<const inotify_event*>(buffer + at);
      // Lost events may have concerned our file.
      ours |= (event.mask & IN_Q_OVERFLOW) != 0 || (event.len > 0 && name_ == event.name);
      at += static_cast<ssize_t>(sizeof event) + event.len;
    }
  }
  if (!ours) return;
  loop_.Cancel(settle_);
  settle_ = loop_.At(ControlLoop::Now() + kSettle, [this] {
    settle_ = 0;
    changed_();
  });
}

}  // namespace rocegw::agent
