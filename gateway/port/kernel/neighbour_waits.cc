// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/kernel/neighbour_waits.h"

#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "gateway/base/timing/monotonic_clock.h"
#include "gateway/wire/link_local.h"

namespace rocegw::port {
namespace {

constexpr int kOneLink = 1;  // hop limit

// Links without link-layer addresses have no neighbours to ask; unknown links count as such.
bool HasNeighbours(uint32_t interface_index) {
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  if (!fd.valid() || ::if_indextoname(interface_index, request.ifr_name) == nullptr) return false;
  if (::ioctl(fd.get(), SIOCGIFFLAGS, &request) != 0) return false;
  return (request.ifr_flags & (IFF_NOARP | IFF_LOOPBACK | IFF_POINTOPOINT)) == 0;
}

socklen_t FillIn(const wire::Gid& gid, uint16_t port, uint32_t interface_index,
                 sockaddr_storage& out) {
  out = {};
  if (gid.IsV4()) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(out);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    v4.sin_addr.s_addr = htonl(gid.V4());
    return sizeof v4;
  }
  auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (wire::IsLinkLocal(gid)) v6.sin6_scope_id = interface_index;
  std::memcpy(&v6.sin6_addr, gid.bytes.data(), gid.bytes.size());
  return sizeof v6;
}

}  // namespace

NeighbourWaits::~NeighbourWaits() {
  if (!started_) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  Wake();
  pthread_join(thread_, nullptr);
}

bool NeighbourWaits::Start(uint64_t number, const Wait& wait) {
  const std::lock_guard lock(mutex_);
  if (!started_) {
    wake_.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_.valid()) return false;
    // The new thread inherits a full signal mask: the main thread handles signals.
    sigset_t all;
    sigset_t previous;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    const auto run = [](void* self) -> void* {
      static_cast<NeighbourWaits*>(self)->Loop();
      return nullptr;
    };
    started_ = pthread_create(&thread_, nullptr, run, this) == 0;
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    if (!started_) return false;
    (void)pthread_setname_np(thread_, "rocegw-neigh");
  }
  asked_.emplace(number, Asked{wait, MonotonicNow() + wait.timeout});
  Wake();
  return true;
}

void NeighbourWaits::Cancel(uint64_t number) {
  const std::lock_guard lock(mutex_);
  // Removes a wait that the thread has not taken yet, so that the list stays as short as the
  // caller's.
  if (asked_.erase(number) != 0) return;
  cancelled_.push_back(number);
  Wake();
}

void NeighbourWaits::Wake() {
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void NeighbourWaits::Loop() {
  while (TakeRequests()) {
    pollfd wait[] = {{wake_.get(), POLLIN, 0}, {monitor_ ? monitor_->fd() : -1, POLLIN, 0}};
    (void)::poll(wait, 2, MillisecondsToWait(MonotonicNow()));
    uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof count);
    if (monitor_ && (wait[1].revents & POLLIN) != 0) OnNeighbours();
    OnTime(MonotonicNow());
    if (pending_.empty()) monitor_.reset();
  }
}

// Returns false if the object is being destroyed.
bool NeighbourWaits::TakeRequests() {
  std::map<uint64_t, Asked> asked;
  std::vector<uint64_t> cancelled;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    asked.swap(asked_);
    cancelled.swap(cancelled_);
  }
  for (const auto& [number, one] : asked) Begin(number, one);
  for (const uint64_t number : cancelled) Remove(number);
  return true;
}

void NeighbourWaits::Begin(uint64_t number, const Asked& asked) {
  if (!tables_) {
    auto opened = KernelTables::Open();
    if (!opened.ok()) return report_(number, true);
    tables_.emplace(std::move(*opened));
  }
  const bool link_local = wire::IsLinkLocal(asked.wait.destination);
  const auto hop =
      tables_->Route(asked.wait.destination, link_local ? asked.wait.interface_index : 0);
  if (!hop || tables_->Neighbour(*hop, nullptr) || !HasNeighbours(hop->interface_index))
    return report_(number, true);
  // Subscribes before asking, so that no answer is missed.
  if (!monitor_) {
    auto opened = NetlinkSocket::Open(RTMGRP_NEIGH);
    if (!opened.ok()) return report_(number, true);
    monitor_.emplace(std::move(*opened));
  }
  pending_.emplace(number, Pending{*hop, asked.deadline});
  by_hop_.emplace(*hop, number);
  by_deadline_.emplace(asked.deadline, number);
  if (!tables_->MakeResolve(*hop)) Provoke(*hop, asked.wait.source);
  if (tables_->Neighbour(*hop, nullptr)) End(number, true);
}

// Makes the kernel resolve the hop by sending it a packet.
void NeighbourWaits::Provoke(const NextHop& hop, const wire::Gid& source) {
  const int family = hop.address.IsV4() ? AF_INET : AF_INET6;
  const UniqueFd fd(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return;
  if (family == AF_INET) {
    (void)::setsockopt(fd.get(), IPPROTO_IP, IP_TTL, &kOneLink, sizeof kOneLink);
  } else {
    (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_UNICAST_HOPS, &kOneLink, sizeof kOneLink);
  }
  sockaddr_storage address;
  if (source.IsV4() == hop.address.IsV4()) {
    const socklen_t length = FillIn(source, 0, hop.interface_index, address);
    (void)::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length);
  }
  const socklen_t length = FillIn(hop.address, wire::kRocePort, hop.interface_index, address);
  (void)::sendto(fd.get(), nullptr, 0, 0, reinterpret_cast<const sockaddr*>(&address), length);
}

void NeighbourWaits::OnNeighbours() {
  std::vector<uint64_t> reached;
  const auto add = [&](const NextHop& hop) {
    for (auto at = by_hop_.lower_bound({hop, 0}); at != by_hop_.end() && at->first == hop; ++at)
      reached.push_back(at->second);
  };
  const bool complete = monitor_->Drain([&](const NetlinkMessage& message) {
    const auto change = ParseNeighbour(message);
    if (change && change->second) add(change->first);
  });
  if (!complete) {
    constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();
    for (auto at = by_hop_.begin(); at != by_hop_.end();
         at = by_hop_.upper_bound({at->first, kLast})) {
      if (tables_->Neighbour(at->first, nullptr)) add(at->first);
    }
  }
  for (const uint64_t number : reached) End(number, true);
}

void NeighbourWaits::OnTime(TimePoint now) {
  while (!by_deadline_.empty() && by_deadline_.begin()->first <= now) {
    const uint64_t number = by_deadline_.begin()->second;
    // As Linux does: looks once more before it gives up.
    End(number, tables_->Neighbour(pending_.at(number).hop, nullptr));
  }
}

void NeighbourWaits::End(uint64_t number, bool reachable) {
  if (Remove(number)) report_(number, reachable);
}

bool NeighbourWaits::Remove(uint64_t number) {
  const auto found = pending_.find(number);
  if (found == pending_.end()) return false;
  by_hop_.erase({found->second.hop, number});
  by_deadline_.erase({found->second.deadline, number});
  pending_.erase(found);
  return true;
}

int NeighbourWaits::MillisecondsToWait(TimePoint now) const {
  if (by_deadline_.empty()) return -1;
  const int64_t left = (by_deadline_.begin()->first - now).ns;
  const int64_t round_up = Milliseconds(1).ns - 1;
  return static_cast<int>(std::clamp<int64_t>((left + round_up) / Milliseconds(1).ns, 0,
                                              std::numeric_limits<int>::max()));
}

}  // namespace rocegw::port
