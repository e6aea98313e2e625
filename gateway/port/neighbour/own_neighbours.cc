// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/neighbour/own_neighbours.h"

#include <time.h>

#include <algorithm>

namespace rocegw::port {
namespace {

constexpr Duration kAskAgain = Milliseconds(100);
constexpr Duration kGetsOld = Seconds(30);  // asks again and keeps using the old answer
constexpr Duration kIsForgotten = Seconds(120);
constexpr unsigned kTicksPerRefresh = 10;

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
    configured_[neighbour.address] = neighbour.mac;
  }
  const std::lock_guard lock(mutex_);
  for (const InterfaceAddress& own : network_.addresses) {
    Send(false, [&](uint8_t* out) { return WriteNeighbourAnnouncement(own.gid, mac_, out); });
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

// A router may have an address outside of the prefixes.
bool OwnNeighbours::OnLink(const wire::Gid& address) const {
  return address == network_.router_ipv4 || address == network_.router_ipv6 ||
         std::any_of(network_.addresses.begin(), network_.addresses.end(),
                     [&](const InterfaceAddress& own) { return Covers(own, address); });
}

bool OwnNeighbours::NextHop(const wire::Gid& destination, wire::Gid& next) const {
  for (const InterfaceAddress& own : network_.addresses) {
    if (Covers(own, destination)) {
      next = destination;
      return true;
    }
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
bool OwnNeighbours::Send(bool is_answer, Write write) {
  if (frames_.size() == kMostFrames || (is_answer && answers_ == kMostAnswers)) return false;
  Frame& frame = frames_.emplace_back();
  frame.is_answer = is_answer;
  if (is_answer) ++answers_;
  frame.length = write(frame.bytes.data());
  set_has_frames(true);
  return true;
}

void OwnNeighbours::Ask(TimePoint now, const wire::Gid& target, TimePoint& asked) {
  const wire::Gid* source = SourceTowards(target);
  if (source == nullptr || now - asked < kAskAgain) return;
  const bool sent =
      Send(false, [&](uint8_t* out) { return WriteNeighbourRequest(*source, mac_, target, out); });
  if (sent) asked = now;
}

OwnNeighbours::Neighbour* OwnNeighbours::Known(TimePoint now, const wire::Gid& address,
                                               PoolTag pool) {
  Neighbour* const known = neighbours_.Find(address);
  if (known != nullptr && now - known->heard <= kIsForgotten) return known;
  neighbours_.Erase(address);
  const Neighbour* const heard = heard_.Peek(address);
  if (heard == nullptr) return nullptr;
  const Neighbour neighbour = *heard;
  heard_.Erase(address);
  if (now - neighbour.heard > kIsForgotten) return nullptr;
  return &(neighbours_.Insert(address, pool) = neighbour);
}

Reach OwnNeighbours::Resolve(const wire::Gid& destination, PoolTag pool, MacAddress& mac) {
  return ResolveAt(Now(), destination, pool, mac);
}

Reach OwnNeighbours::ResolveAt(TimePoint now, const wire::Gid& destination, PoolTag pool,
                               MacAddress& mac) {
  if (MulticastMac(destination, mac)) return Reach::kNeighbour;
  const std::lock_guard lock(mutex_);
  if (OwnLocked(destination)) return Reach::kOwn;
  wire::Gid next;
  if (!NextHop(destination, next)) return Reach::kUnreachable;
  if (const auto configured = configured_.find(next); configured != configured_.end()) {
    mac = configured->second;
    return Reach::kNeighbour;
  }
  if (Neighbour* const neighbour = Known(now, next, pool)) {
    if (now - neighbour->heard > kGetsOld) Ask(now, next, neighbour->asked);
    mac = neighbour->mac;
    return Reach::kNeighbour;
  }
  const auto [question, is_new] = questions_.Open(now, pool, next);
  if (question != nullptr) Ask(now, next, question->asked);
  return Reach::kUnknown;
}

void OwnNeighbours::HandleFrame(std::span<const uint8_t> frame) { HandleFrameAt(Now(), frame); }

// A host that asks for us will get an answer soon, and one that answers was asked. Only these are
// stored.
void OwnNeighbours::Learn(TimePoint now, const NeighbourMessage& message, bool for_us) {
  const wire::Gid& about = message.is_request ? message.sender : message.target;
  if (about.IsZero() || OwnLocked(about) || configured_.contains(about)) return;
  const Neighbour news{.mac = message.sender_mac, .heard = now, .asked = OpenQuestions::kNotAsked};
  if (Neighbour* const known = neighbours_.Peek(about)) {
    const bool moved = known->mac != news.mac;
    *known = news;
    if (moved) Changed();
    return;
  }
  if (!OnLink(about)) return;
  if (const auto pool = questions_.Close(about)) {
    neighbours_.Insert(about, *pool) = news;
    Learned();
  } else if (for_us) {
    heard_.Insert(about, {}) = news;
  }
}

void OwnNeighbours::HandleFrameAt(TimePoint now, std::span<const uint8_t> frame) {
  const auto message = ParseNeighbourMessage(frame);
  // Loops in the network return our own frames.
  if (!message || message->sender_mac == mac_) return;
  const std::lock_guard lock(mutex_);
  const bool for_us = message->is_request && OwnLocked(message->target);
  Learn(now, *message, for_us);
  if (for_us) {
    (void)Send(true, [&](uint8_t* out) {
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
  if (frame.is_answer) --answers_;
  frames_.erase(frames_.begin());
  set_has_frames(!frames_.empty());
  return length;
}

void OwnNeighbours::Tick() {
  const std::lock_guard lock(mutex_);
  questions_.EndOld(Now());
  // Makes the queues ask again, which also refreshes old entries.
  if (++ticks_ % kTicksPerRefresh == 0) Changed();
}

}  // namespace rocegw::port
