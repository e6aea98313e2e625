// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/neighbour/own_neighbours.h"

#include <time.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "gateway/port/neighbour/neighbour_protocol.h"

namespace rocegw::port {
namespace {

constexpr Duration kAskAgain = Milliseconds(100);
constexpr Duration kGetsOld = Seconds(30);  // asks again and keeps using the old answer
constexpr Duration kIsForgotten = Seconds(120);
constexpr Duration kSweepAgain = Seconds(1);
constexpr unsigned kTicksPerRefresh = 10;
constexpr TimePoint kLongAgo{-Seconds(3600).ns};

TimePoint Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return TimePoint{int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
}

bool Covers(const InterfaceAddress& own, const wire::Gid& address) {
  if (own.gid.IsV4() != address.IsV4()) return false;
  size_t bits = own.prefix_length + (own.gid.IsV4() ? 96U : 0U);
  for (size_t i = 0; i < address.bytes.size() && bits != 0; ++i) {
    const size_t here = std::min<size_t>(bits, 8);
    const auto mask = static_cast<uint8_t>(0xFF00U >> here);
    if (((own.gid.bytes[i] ^ address.bytes[i]) & mask) != 0) return false;
    bits -= here;
  }
  return true;
}

}  // namespace

OwnNeighbours::OwnNeighbours(const MacAddress& mac, const StaticNetwork& network)
    : mac_(mac), network_(network) {
  for (const StaticNeighbour& neighbour : network.neighbours) {
    neighbours_[neighbour.address] = {.known = true, .fixed = true, .mac = neighbour.mac};
  }
  const std::lock_guard lock(mutex_);
  for (const InterfaceAddress& own : network_.addresses) {
    Send(kMaxWaitingFrames,
         [&](uint8_t* out) { return WriteNeighbourAnnouncement(own.gid, mac_, out); });
  }
}

std::vector<wire::Gid> OwnNeighbours::OwnAddresses() {
  std::vector<wire::Gid> own;
  own.reserve(network_.addresses.size());
  for (const InterfaceAddress& address : network_.addresses) own.push_back(address.gid);
  return own;
}

bool OwnNeighbours::OwnLocked(const wire::Gid& address) const {
  return std::any_of(network_.addresses.begin(), network_.addresses.end(),
                     [&](const InterfaceAddress& own) { return own.gid == address; });
}

bool OwnNeighbours::OnLink(const wire::Gid& address) const {
  return std::ranges::any_of(network_.addresses,
                             [&](const InterfaceAddress& own) { return Covers(own, address); });
}

bool OwnNeighbours::NextHop(const wire::Gid& destination, wire::Gid& next) const {
  if (OnLink(destination)) {
    next = destination;
    return true;
  }
  next = destination.IsV4() ? network_.router_ipv4 : network_.router_ipv6;
  return !next.IsZero();
}

// Returns the own address that asks for a neighbour: one of its subnet, else any of its family.
const wire::Gid* OwnNeighbours::SourceTowards(const wire::Gid& next) const {
  const wire::Gid* any = nullptr;
  for (const InterfaceAddress& own : network_.addresses) {
    if (Covers(own, next)) return &own.gid;
    if (own.gid.IsV4() == next.IsV4()) any = &own.gid;
  }
  return any;
}

template <typename Write>
bool OwnNeighbours::Send(size_t most, Write write) {
  if (frames_.size() >= most) return false;
  Frame& frame = frames_.emplace_back();
  frame.length = write(frame.bytes.data());
  set_has_frames(true);
  return true;
}

bool OwnNeighbours::Ask(const wire::Gid& target) {
  const wire::Gid* source = SourceTowards(target);
  if (source == nullptr) return true;
  return Send(kMaxWaitingFrames,
              [&](uint8_t* out) { return WriteNeighbourRequest(*source, mac_, target, out); });
}

OwnNeighbours::Neighbour& OwnNeighbours::Used(TimePoint now, const wire::Gid& address) {
  auto found = neighbours_.find(address);
  if (found == neighbours_.end()) {
    if (neighbours_.size() >= kMaxNeighbours) MakeRoom(now);
    found = neighbours_.emplace(address, Neighbour{.asked = kLongAgo}).first;
  }
  Neighbour& neighbour = found->second;
  if (std::exchange(neighbour.asker, false)) --askers_;
  neighbour.used = now;
  return neighbour;
}

OwnNeighbours::Neighbour* OwnNeighbours::Asker(TimePoint now, const wire::Gid& address) {
  const auto found = neighbours_.find(address);
  if (found != neighbours_.end()) return &found->second;
  if (!OnLink(address)) return nullptr;
  if (askers_ >= kMaxAskers && now - swept_ >= kSweepAgain) {
    swept_ = now;
    askers_ -= std::erase_if(neighbours_, [now](const auto& entry) {
      return entry.second.asker && now - entry.second.heard > kIsForgotten;
    });
  }
  if (askers_ >= kMaxAskers || neighbours_.size() >= kMaxNeighbours) return nullptr;
  ++askers_;
  return &neighbours_.emplace(address, Neighbour{.asker = true, .asked = kLongAgo}).first->second;
}

// Removes what no packet can use, else the entry that no packet has used for longest.
void OwnNeighbours::MakeRoom(TimePoint now) {
  std::erase_if(neighbours_, [this, now](const auto& entry) {
    const Neighbour& neighbour = entry.second;
    const bool useless = !neighbour.known || now - neighbour.heard > kIsForgotten;
    if (neighbour.fixed || !useless) return false;
    if (neighbour.asker) --askers_;
    return true;
  });
  if (neighbours_.size() < kMaxNeighbours) return;
  const auto oldest = std::ranges::min_element(neighbours_, {}, [](const auto& entry) {
    const Neighbour& neighbour = entry.second;
    return std::tuple(neighbour.fixed, !neighbour.asker, neighbour.used);
  });
  if (oldest->second.fixed) return;
  if (oldest->second.asker) --askers_;
  neighbours_.erase(oldest);
}

Reach OwnNeighbours::Resolve(const wire::Gid& destination, MacAddress& mac) {
  return ResolveAt(Now(), destination, mac);
}

Reach OwnNeighbours::ResolveAt(TimePoint now, const wire::Gid& destination, MacAddress& mac) {
  if (MulticastMac(destination, mac)) return Reach::kNeighbour;
  const std::lock_guard lock(mutex_);
  if (OwnLocked(destination)) return Reach::kOwn;
  wire::Gid next;
  if (!NextHop(destination, next)) return Reach::kUnreachable;
  Neighbour& neighbour = Used(now, next);
  if (!neighbour.fixed) {
    if (neighbour.known && now - neighbour.heard > kIsForgotten) neighbour.known = false;
    const bool wanted = !neighbour.known || now - neighbour.heard > kGetsOld;
    if (wanted && now - neighbour.asked >= kAskAgain && Ask(next)) neighbour.asked = now;
  }
  mac = neighbour.mac;
  return neighbour.known ? Reach::kNeighbour : Reach::kUnknown;
}

void OwnNeighbours::HandleFrame(std::span<const uint8_t> frame) { HandleFrameAt(Now(), frame); }

void OwnNeighbours::HandleFrameAt(TimePoint now, std::span<const uint8_t> frame) {
  const auto message = ParseNeighbourMessage(frame);
  // Loops in the network return our own frames.
  if (!message || message->sender_mac == mac_) return;
  const std::lock_guard lock(mutex_);
  const bool for_us = message->is_request && OwnLocked(message->target);
  // A host on the link that asks for us will get an answer soon, and one that answers was asked.
  // Only these are stored, so that a busy network cannot fill the table.
  const wire::Gid& about = message->is_request ? message->sender : message->target;
  if (!about.IsZero() && !OwnLocked(about)) {
    Neighbour* neighbour = nullptr;
    if (for_us) {
      neighbour = Asker(now, about);
    } else if (const auto found = neighbours_.find(about); found != neighbours_.end()) {
      neighbour = &found->second;
    }
    if (neighbour != nullptr && !neighbour->fixed) {
      // No queue has an answer about a host to which it has sent nothing.
      const bool news =
          !neighbour->asker && (!neighbour->known || neighbour->mac != message->sender_mac);
      neighbour->known = true;
      neighbour->mac = message->sender_mac;
      neighbour->heard = now;
      if (news) Changed();
    }
  }
  if (for_us) {
    Send(kMaxWaitingAnswers, [&](uint8_t* out) {
      return WriteNeighbourAnswer(message->target, mac_, message->sender, message->sender_mac, out);
    });
  }
}

size_t OwnNeighbours::TakeFrame(std::span<uint8_t, kMaxFrame> out) {
  const std::lock_guard lock(mutex_);
  if (frames_.empty()) return 0;
  const Frame& frame = frames_.front();
  const size_t length = frame.length;
  std::copy_n(frame.bytes.begin(), length, out.begin());
  frames_.erase(frames_.begin());
  set_has_frames(!frames_.empty());
  return length;
}

void OwnNeighbours::Tick() {
  const std::lock_guard lock(mutex_);
  // Makes the queues ask again, which also refreshes old entries.
  if (++ticks_ % kTicksPerRefresh == 0) Changed();
}

}  // namespace rocegw::port
