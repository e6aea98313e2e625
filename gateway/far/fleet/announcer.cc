// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/fleet/announcer.h"

#include <fcntl.h>
#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "gateway/base/errno_status.h"
#include "gateway/far/fleet/folder_file.h"

namespace rocegw::far {
namespace {

constexpr std::chrono::seconds kPause(1);
static_assert(kPause.count() < kAnnounceSeconds);

}  // namespace

Status Announcer::Start(const std::string& folder, const std::string& name, Calls calls) {
  if (!IsDonorName(name)) {
    return {EINVAL, "'" + name + "' is no name for a donor: 1 to 30 of a-z, 0-9 and '-'"};
  }
  const std::string path = folder + "/" + name;
  announcement_ = path + kAnnouncementEnding;
  orders_ = path + kOrdersEnding;
  const std::string lock = path + ".lock";
  lock_ = UniqueFd(open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_.valid()) return ErrnoStatus(lock);
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return {EBUSY, "another process announces the donor " + name + " in " + folder +
                       " (--name gives this one another name)"};
  }
  calls_ = std::move(calls);
  // The folder is empty after a boot.
  followed_.draining = true;
  calls_.follow(followed_);
  Look();
  if (followed_.generation == 0) spdlog::info("grants nothing until the fleet has given orders");
  if (!last_problem_.empty()) return {EIO, last_problem_};
  thread_ = std::thread([this] { Run(); });
  return OkStatus();
}

void Announcer::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
  unlink(announcement_.c_str());
}

void Announcer::Run() {
  pthread_setname_np(pthread_self(), "rocegw-far-anno");
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kPause, [this] { return stopping_; })) {
    lock.unlock();
    Look();
    lock.lock();
  }
}

void Announcer::Follow() {
  const auto file = ReadFolderFile(orders_);
  const auto orders = file.ok() ? ReadOrders(file.value().text) : std::nullopt;
  std::string problem;
  if (!file.ok() && file.status().error() != ENOENT) {
    problem = file.status().text();
  } else if (file.ok() && !orders) {
    problem = orders_ + ": these are no orders";
  }
  if (!problem.empty() && problem != orders_problem_)
    spdlog::error("cannot follow the fleet: {}", problem);
  orders_problem_ = std::move(problem);
  if (!orders || *orders == followed_) return;
  followed_ = *orders;
  calls_.follow(followed_);
  spdlog::info("follows the spec of the fleet, generation {}{}", followed_.generation,
               followed_.draining ? ": draining" : "");
}

// Follows new orders, then announces, so that the announcement is of them.
void Announcer::Look() {
  Follow();
  Announcement announcement = calls_.state();
  announcement.generation = followed_.generation;
  announcement.shares = followed_.shares;
  const Status written = ReplaceFolderFile(announcement_, ToText(announcement));
  if (!written.ok() && written.text() != last_problem_) spdlog::error("{}", written.text());
  last_problem_ = written.text();
}

}  // namespace rocegw::far
