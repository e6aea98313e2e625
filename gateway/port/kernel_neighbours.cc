// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/kernel_neighbours.h"

#include <linux/neighbour.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/wire/link_local.h"

namespace rocegw::port {
namespace {

// Lookups happen at most this often, however fast the kernel's tables change.
constexpr int kSettleMs = 20;
// What queues wait for is looked up again this often, known neighbours are confirmed this often.
constexpr int kRetryMs = 200;
constexpr int kRetriesPerRefresh = 150;

constexpr uint16_t kUsableStates =
    NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;

std::span<const uint8_t> AddressBytes(const wire::Gid& gid) {
  return std::span(gid.bytes).subspan(gid.IsV4() ? 12 : 0);
}

uint8_t FamilyOf(const wire::Gid& gid) { return gid.IsV4() ? AF_INET : AF_INET6; }

std::span<const uint8_t> BytesOf(const uint32_t& number) {
  return {reinterpret_cast<const uint8_t*>(&number), sizeof number};
}

}  // namespace

StatusOr<std::unique_ptr<KernelNeighbours>> KernelNeighbours::Create(const std::string& interface) {
  // Listening comes before reading, so that no change falls in between.
  auto monitor = NetlinkSocket::Open(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
                                     RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE | RTMGRP_NEIGH);
  if (!monitor.ok()) return monitor.status();
  auto queries = NetlinkSocket::Open();
  if (!queries.ok()) return queries.status();
  auto info = ReadInterface(interface);
  if (!info.ok()) return info.status();
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid())
    return Status(errno, std::string("cannot make an eventfd: ") + strerror(errno));
  return std::unique_ptr<KernelNeighbours>(
      new KernelNeighbours(*info, std::move(*monitor), std::move(*queries), std::move(wake)));
}

KernelNeighbours::KernelNeighbours(const InterfaceInfo& info, NetlinkSocket monitor,
                                   NetlinkSocket queries, UniqueFd wake)
    : name_(info.name),
      interface_index_(info.index),
      mac_(info.mac),
      monitor_(std::move(monitor)),
      queries_(std::move(queries)),
      wake_(std::move(wake)) {
  ReadOwn();
  // The new thread inherits a full signal mask: signals are the main thread's business.
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
    const auto found = answers_.find(destination);
    if (found != answers_.end()) {
      mac = found->second.mac;
      return found->second.reach;
    }
    // Only a scan makes this many; starting over costs the others one lookup each.
    if (answers_.size() >= kMaxDestinations) answers_.clear();
    answers_[destination] = {};
  }
  Wake();
  return Reach::kUnknown;
}

void KernelNeighbours::Loop() {
  int retries = 0;
  while (true) {
    pollfd wait[] = {{wake_.get(), POLLIN, 0}, {monitor_.fd(), POLLIN, 0}};
    const bool timeout = poll(wait, 2, kRetryMs) == 0;
    uint64_t count = 0;
    (void)!read(wake_.get(), &count, sizeof count);
    bool changed = false;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    if ((wait[1].revents & POLLIN) != 0) {
      // Lets a burst of changes arrive, then takes them as one.
      pollfd settle{wake_.get(), POLLIN, 0};
      (void)poll(&settle, 1, kSettleMs);
      const bool complete = monitor_.Drain([&](const NetlinkMessage&) { changed = true; });
      changed = changed || !complete;
      ReadOwn();
    }
    const bool refresh = timeout && ++retries % kRetriesPerRefresh == 0;
    LookUp(changed || refresh, refresh);
  }
}

void KernelNeighbours::ReadOwn() {
  auto info = ReadInterface(name_);
  std::vector<wire::Gid> own;
  if (info.ok() && info->index == interface_index_) {
    for (const InterfaceAddress& address : info->addresses) own.push_back(address.gid);
  }
  const std::lock_guard lock(mutex_);
  if (own == own_) return;
  own_ = std::move(own);
  Changed();
}

// Asks the kernel about every destination, or about those that have no neighbour yet.
void KernelNeighbours::LookUp(bool all, bool keep_fresh) {
  std::vector<wire::Gid> destinations;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [destination, answer] : answers_) {
      if (all || answer.reach != Reach::kNeighbour) destinations.push_back(destination);
    }
  }
  for (const wire::Gid& destination : destinations) {
    const Answer answer = Ask(destination, keep_fresh);
    const std::lock_guard lock(mutex_);
    const auto found = answers_.find(destination);
    if (found == answers_.end() || found->second == answer) continue;
    found->second = answer;
    Changed();
  }
}

KernelNeighbours::Answer KernelNeighbours::Ask(const wire::Gid& destination, bool keep_fresh) {
  const Route route = AskRoute(destination);
  if (route.reach != Reach::kNeighbour) return {route.reach, {}};
  Answer answer;
  if (AskNeighbour(route.next_hop, answer.mac)) answer.reach = Reach::kNeighbour;
  // Packets that bypass the kernel do not tell it that a neighbour is in use.
  if (answer.reach != Reach::kNeighbour || keep_fresh) MakeKernelResolve(route.next_hop);
  return answer;
}

KernelNeighbours::Route KernelNeighbours::AskRoute(const wire::Gid& destination) {
  rtmsg header{};
  header.rtm_family = FamilyOf(destination);
  header.rtm_dst_len = destination.IsV4() ? 32 : 128;
  NetlinkRequest request(RTM_GETROUTE, 0, header);
  request.Add(RTA_DST, AddressBytes(destination));
  const uint32_t index = interface_index_;
  if (wire::IsLinkLocal(destination)) request.Add(RTA_OIF, BytesOf(index));
  Route route;
  const Status status = queries_.Exchange(std::move(request), [&](const NetlinkMessage& message) {
    rtmsg answer{};
    if (message.type != RTM_NEWROUTE || !message.Read(answer)) return;
    uint32_t output = 0;
    wire::Gid gateway;
    message.Attributes(sizeof answer, [&](uint16_t type, std::span<const uint8_t> value) {
      if (type == RTA_OIF) output = AttributeU32(value);
      if (type == RTA_GATEWAY) gateway = AttributeAddress(value);
    });
    // A route over another interface is none for this port.
    if (answer.rtm_type != RTN_UNICAST || output != interface_index_) return;
    route.reach = Reach::kNeighbour;
    route.next_hop = gateway.IsZero() ? destination : gateway;
  });
  return status.ok() ? route : Route{};
}

bool KernelNeighbours::AskNeighbour(const wire::Gid& next_hop, MacAddress& mac) {
  ndmsg header{};
  header.ndm_family = FamilyOf(next_hop);
  header.ndm_ifindex = static_cast<int>(interface_index_);
  NetlinkRequest request(RTM_GETNEIGH, 0, header);
  request.Add(NDA_DST, AddressBytes(next_hop));
  bool usable = false;
  const Status status = queries_.Exchange(std::move(request), [&](const NetlinkMessage& message) {
    ndmsg answer{};
    if (message.type != RTM_NEWNEIGH || !message.Read(answer)) return;
    if ((answer.ndm_state & kUsableStates) == 0) return;
    message.Attributes(sizeof answer, [&](uint16_t type, std::span<const uint8_t> value) {
      if (type != NDA_LLADDR || value.size() != mac.size()) return;
      std::copy(value.begin(), value.end(), mac.begin());
      usable = true;
    });
  });
  return status.ok() && usable;
}

// As `ip neighbour add ... use`: behaves as if the kernel had a packet for it.
void KernelNeighbours::MakeKernelResolve(const wire::Gid& next_hop) {
  ndmsg header{};
  header.ndm_family = FamilyOf(next_hop);
  header.ndm_ifindex = static_cast<int>(interface_index_);
  header.ndm_state = NUD_NONE;
  header.ndm_flags = NTF_USE;
  NetlinkRequest request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_ACK, header);
  request.Add(NDA_DST, AddressBytes(next_hop));
  (void)queries_.Exchange(std::move(request), [](const NetlinkMessage&) {});
}

}  // namespace rocegw::port
