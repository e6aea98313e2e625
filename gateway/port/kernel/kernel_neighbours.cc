// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/kernel/kernel_neighbours.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "gateway/wire/link_local.h"

namespace rocegw::port {
namespace {

// Shortest interval between lookups, however fast the kernel's tables change.
constexpr int kSettleMs = 20;
// Interval of repeated lookups for waiting queues, and of confirmations of known neighbours.
constexpr int kRetryMs = 200;
constexpr int kRetriesPerRefresh = 150;
constexpr size_t kFreshAtOnce = 64;

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

Reach KernelNeighbours::Resolve(const wire::Gid& destination, MacAddress& mac) {
  if (MulticastMac(destination, mac)) return Reach::kNeighbour;
  {
    const std::lock_guard lock(mutex_);
    if (std::find(own_.begin(), own_.end(), destination) != own_.end()) return Reach::kOwn;
    bool added = false;
    const Answer answer = answers_.LookUp(destination, &added);
    mac = answer.mac;
    if (!added) return answer.reach;
  }
  Wake();
  return Reach::kUnknown;
}

void KernelNeighbours::Loop() {
  int retries = 0;
  auto retry_at = std::chrono::steady_clock::now();
  while (true) {
    pollfd wait[] = {{wake_.get(), POLLIN, 0}, {monitor_.fd(), POLLIN, 0}};
    (void)poll(wait, 2, kRetryMs);
    uint64_t count = 0;
    (void)!read(wake_.get(), &count, sizeof count);
    bool changed = false;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    if ((wait[1].revents & POLLIN) != 0) {
      // Waits for a burst of changes to end, then handles it once.
      pollfd settle{wake_.get(), POLLIN, 0};
      (void)poll(&settle, 1, kSettleMs);
      const bool complete = monitor_.Drain([&](const NetlinkMessage&) { changed = true; });
      changed = changed || !complete;
      ReadOwn();
    }
    while (LookUpFresh()) {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    // Only then the others, at the interval: there may be thousands that no host has.
    const auto now = std::chrono::steady_clock::now();
    const bool retry = now >= retry_at;
    if (!changed && !retry) continue;
    if (retry) retry_at = now + std::chrono::milliseconds(kRetryMs);
    const bool refresh = retry && ++retries % kRetriesPerRefresh == 0;
    LookUp(changed || refresh, refresh);
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

// Looks up every destination, or only those without a neighbour.
void KernelNeighbours::LookUp(bool all, bool keep_fresh) {
  std::vector<wire::Gid> destinations;
  {
    const std::lock_guard lock(mutex_);
    destinations = answers_.List(all);
  }
  size_t asked = 0;
  while (asked < destinations.size()) {
    const size_t some = std::min(kFreshAtOnce, destinations.size() - asked);
    const auto first = destinations.begin() + static_cast<ptrdiff_t>(asked);
    AskAbout({first, first + static_cast<ptrdiff_t>(some)}, keep_fresh);
    asked += some;
    // New ones do not wait for all others.
    LookUpFresh();
  }
}

bool KernelNeighbours::LookUpFresh() {
  std::vector<wire::Gid> fresh;
  {
    const std::lock_guard lock(mutex_);
    fresh = answers_.TakeFresh(kFreshAtOnce);
  }
  AskAbout(fresh, false);
  return !fresh.empty();
}

void KernelNeighbours::AskAbout(const std::vector<wire::Gid>& destinations, bool keep_fresh) {
  for (const wire::Gid& destination : destinations) {
    const Answer answer = Ask(destination, keep_fresh);
    const std::lock_guard lock(mutex_);
    if (answers_.Set(destination, answer)) Changed();
  }
}

KernelNeighbours::Answer KernelNeighbours::Ask(const wire::Gid& destination, bool keep_fresh) {
  const auto hop =
      tables_.Route(destination, wire::IsLinkLocal(destination) ? interface_index_ : 0);
  // A route over another interface does not count for this port.
  if (!hop || hop->interface_index != interface_index_) return {Reach::kUnreachable, {}};
  Answer answer;
  if (tables_.Neighbour(*hop, &answer.mac)) answer.reach = Reach::kNeighbour;
  // Packets that bypass the kernel do not tell it that a neighbour is in use.
  if (answer.reach != Reach::kNeighbour || keep_fresh) (void)tables_.MakeResolve(*hop);
  return answer;
}

}  // namespace rocegw::port
