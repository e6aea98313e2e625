// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/path/port_shares.h"

#include <bit>

namespace rocegw::cm {
namespace {

constexpr uint32_t kPartOfPool = 8;
constexpr uint32_t kWordBits = 64;

template <typename Map, typename Key>
uint32_t CountOf(const Map& counts, const Key& key) {
  const auto at = counts.find(key);
  return at == counts.end() ? 0 : at->second;
}

template <typename Map, typename Key>
void CountDown(Map& counts, const Key& key) {
  const auto at = counts.find(key);
  if (--at->second == 0) counts.erase(at);
}

}  // namespace

uint32_t PortShares::FindFree(const Scope& scope, uint64_t offset) const {
  const auto start = static_cast<uint32_t>(offset % count_);
  const auto at = held_.find(scope);
  if (at == held_.end()) return start;
  const std::vector<uint64_t>& ports = at->second.ports;
  for (uint32_t passed = 0; passed < count_;) {
    const uint32_t here = (start + passed) % count_;
    const uint64_t free = ~ports[here / kWordBits] >> (here % kWordBits);
    const uint32_t found = here + static_cast<uint32_t>(std::countr_zero(free));
    if (free != 0 && found < count_) return found;
    const uint32_t end = (here / kWordBits + 1) * kWordBits;
    passed += (end < count_ ? end : count_) - here;
  }
  return count_;
}

bool PortShares::MayTake(const Scope& scope, const User& user) const {
  const auto at = held_.find(scope);
  if (at == held_.end()) return true;
  const Held& held = at->second;
  const uint32_t share = (count_ - held.count + kPartOfPool - 1) / kPartOfPool;
  const uint32_t of_pool = CountOf(held.of_pool, user.pool);
  const uint32_t of_session = CountOf(held.of_session, user.session);
  return of_pool < share && (of_session == 0 || of_session < share - of_pool);
}

void PortShares::Take(const Scope& scope, uint16_t port, const User& user) {
  Held& held = held_[scope];
  held.ports.resize(count_ / kWordBits + 1);
  const uint32_t offset = port - first_;
  held.ports[offset / kWordBits] |= uint64_t{1} << (offset % kWordBits);
  ++held.count;
  ++held.of_pool[user.pool];
  ++held.of_session[user.session];
}

void PortShares::Give(const Scope& scope, uint16_t port, const User& user) {
  const auto at = held_.find(scope);
  Held& held = at->second;
  const uint32_t offset = port - first_;
  held.ports[offset / kWordBits] &= ~(uint64_t{1} << (offset % kWordBits));
  CountDown(held.of_pool, user.pool);
  CountDown(held.of_session, user.session);
  if (--held.count == 0) held_.erase(at);
}

}  // namespace rocegw::cm
