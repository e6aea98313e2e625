// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/kernel/kernel_neighbours.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "gateway/base/timing/monotonic_clock.h"
#include "gateway/wire/link_local.h"

namespace rocegw::port {
namespace {

// Shortest interval between a change of the kernel's tables and lookups: changes come in bursts.
constexpr Duration kSettle = Milliseconds(20);
// Interval of repeated lookups for waiting queues, and of confirmations of known neighbours.
constexpr Duration kRetry = Milliseconds(200);
constexpr int kRetriesPerRefresh = 150;
// Pause between two lookups because of changes, in durations of the first one: a program can make
// the kernel's tables change all the time.
constexpr int kRestPerLookUp = 4;

int MillisecondsUntil(TimePoint now, TimePoint due) {
  return due <= now ? 0 : static_cast<int>(std::min<int64_t>((due - now).ns / 1'000'000 + 1, 1000));
}

}  // namespace

StatusOr<std::unique_ptr<KernelNeighbours>> KernelNeighbours::Create(const std::string& interface,
                                                                     Watch watch) {
  // Subscribes before reading, so that no change is missed.
  auto monitor = NetlinkSocket::Open(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
                                     RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE | RTMGRP_NEIGH);
  if (!monitor.ok()) return monitor.status();
  auto tables = KernelTables::Open();
  if (!tables.ok()) return tables.status();
  auto info = ReadInterface(interface);
  if (!info.ok()) return info.status();
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid())
    return Status(errno, std::string("cannot make an eventfd: ") + strerror(errno));
  return std::unique_ptr<KernelNeighbours>(new KernelNeighbours(
      *info, std::move(*monitor), std::move(*tables), std::move(wake), std::move(watch)));
}

KernelNeighbours::KernelNeighbours(const InterfaceInfo& info, NetlinkSocket monitor,
                                   KernelTables tables, UniqueFd wake, Watch watch)
    : name_(info.name),
      interface_index_(info.index),
      mac_(info.mac),
      monitor_(std::move(monitor)),
      tables_(std::move(tables)),
      wake_(std::move(wake)),
      watch_(std::move(watch)) {
  ReadOwn();
  // The new thread inherits a full signal mask: the main thread handles signals.
  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  thread_ = std::thread([this] { Loop(); });
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

KernelNeighbours::~KernelNeighbours() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  Wake();
  thread_.join();
}

void KernelNeighbours::Wake() {
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
}

std::vector<wire::Gid> KernelNeighbours::OwnAddresses() {
  const std::lock_guard lock(mutex_);
  return own_;
}

Reach KernelNeighbours::Resolve(const wire::Gid& destination, PoolTag pool, MacAddress& mac) {
  if (MulticastMac(destination, mac)) return Reach::kNeighbour;
  KernelAnswers::Resolved resolved;
  {
    const std::lock_guard lock(mutex_);
    if (std::find(own_.begin(), own_.end(), destination) != own_.end()) return Reach::kOwn;
    resolved = answers_.Resolve(MonotonicNow(), pool, destination);
  }
  if (resolved.is_new) Wake();
  mac = resolved.answer.mac;
  return resolved.answer.reach;
}

void KernelNeighbours::Loop() {
  bool changed = false;  // the kernel's tables, since they were looked at
  bool all = false;      // destinations are to be looked up, not only unknown ones
  int retries = 0;
  TimePoint settled_at;  // end of a burst of changes
  TimePoint retry_at = MonotonicNow();
  TimePoint all_at = retry_at;
  TimePoint rest_until = retry_at;
  while (true) {
    TimePoint due = retry_at;
    if (changed) due = Earlier(due, settled_at);
    if (all) due = Earlier(due, all_at);
    pollfd wait[] = {{wake_.get(), POLLIN, 0}, {monitor_.fd(), POLLIN, 0}};
    (void)poll(wait, changed ? 1 : 2, MillisecondsUntil(MonotonicNow(), due));
    uint64_t count = 0;
    (void)!read(wake_.get(), &count, sizeof count);
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    const TimePoint now = MonotonicNow();
    const bool retry = now >= retry_at;
    const bool refresh = retry && ++retries % kRetriesPerRefresh == 0;
    if (retry) retry_at = now + kRetry;
    const bool settled = changed && now >= settled_at;
    if (settled) {
      (void)monitor_.Drain([](const NetlinkMessage&) {});
      ReadOwn();
      changed = false;
      all = true;
    } else if (!changed && (wait[1].revents & POLLIN) != 0) {
      changed = true;
      settled_at = std::max(now + kSettle, rest_until);
    }
    LookUp(retry || settled, false, false);
    rest_until = MonotonicNow() + (MonotonicNow() - now) * kRestPerLookUp;
    if (refresh || (all && now >= all_at)) {
      all = false;
      const TimePoint began = MonotonicNow();
      LookUp(true, true, refresh);
      all_at = MonotonicNow() + (MonotonicNow() - began) * kRestPerLookUp;
    }
  }
}

void KernelNeighbours::ReadOwn() {
  auto info = ReadInterface(name_);
  std::vector<wire::Gid> own;
  if (info.ok() && info->index == interface_index_) {
    for (const InterfaceAddress& address : info->addresses) own.push_back(address.gid);
  }
  {
    const std::lock_guard lock(mutex_);
    if (own == own_) return;
    own_ = own;
  }
  Changed();
  if (watch_) watch_(own);
}

// Looks up new destinations; with `unknown` all those without an answer, with `all` every one.
void KernelNeighbours::LookUp(bool unknown, bool all, bool keep_fresh) {
  if (unknown) {
    const std::lock_guard lock(mutex_);
    answers_.AskAgain(MonotonicNow(), all);
  }
  while (true) {
    std::optional<wire::Gid> destination;
    {
      const std::lock_guard lock(mutex_);
      if (!stopping_) destination = answers_.NextQuestion();
    }
    if (!destination) return;
    const KernelAnswers::Answer answer = Ask(*destination, keep_fresh);
    const std::lock_guard lock(mutex_);
    switch (answers_.Set(*destination, answer)) {
      case KernelAnswers::Change::kNone:
        break;
      case KernelAnswers::Change::kLearned:
        Learned();
        break;
      case KernelAnswers::Change::kChanged:
        Changed();
        break;
    }
  }
}

KernelAnswers::Answer KernelNeighbours::Ask(const wire::Gid& destination, bool keep_fresh) {
  const auto hop =
      tables_.Route(destination, wire::IsLinkLocal(destination) ? interface_index_ : 0);
  // A route over another interface does not count for this port.
  if (!hop || hop->interface_index != interface_index_) return {Reach::kUnreachable, {}};
  KernelAnswers::Answer answer;
  if (tables_.Neighbour(*hop, &answer.mac)) answer.reach = Reach::kNeighbour;
  // Packets that bypass the kernel do not tell it that a neighbour is in use.
  if (answer.reach != Reach::kNeighbour || keep_fresh) (void)tables_.MakeResolve(*hop);
  return answer;
}

}  // namespace rocegw::port
