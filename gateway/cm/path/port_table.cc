// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/path/port_table.h"

#include <cerrno>

namespace rocegw::cm {
namespace {

// Limit of a search for a port that no id has, which would otherwise pass tens of thousands of used
// ports per id.
constexpr uint32_t kTakenInARow = 64;

bool SameFamily(const Endpoint& a, const Endpoint& b) {
  return a.address.IsV4() == b.address.IsV4();
}

bool Overlap(const PortTable::Binding& a, const PortTable::Binding& b) {
  if (a.address.IsWildcard() || b.address.IsWildcard()) {
    const bool apart = a.af_only && b.af_only && !SameFamily(a.address, b.address);
    return !apart;
  }
  return a.address.address == b.address.address;
}

// Returns true while the iterator is at entries of that port.
template <typename Map>
bool IsAt(const Map& map, typename Map::const_iterator at, PortSpace space, uint16_t port) {
  return at != map.end() && at->first.space == space && at->first.port == port;
}

template <typename Bindings, typename Predicate>
bool AnyOf(const Bindings& bindings, PortSpace space, uint16_t port, Predicate predicate) {
  for (auto at = bindings.lower_bound({space, port, {}}); IsAt(bindings, at, space, port); ++at)
    if (predicate(at->second)) return true;
  return false;
}

bool Covers(const PortTable::Binding& binding, const wire::Gid& destination) {
  if (!binding.address.IsWildcard()) return binding.address.address == destination;
  return !binding.af_only || binding.address.address.IsV4() == destination.IsV4();
}

}  // namespace

bool PortTable::Conflicts(PortSpace space, uint16_t port, const Binding& wanted,
                          bool ignore_reuse) const {
  const uint64_t pool = PoolOf(wanted);
  return AnyOf(bindings_, space, port, [&](const Binding& held) {
    // Most ids of a crowded port reuse it: they need no look at their pool.
    if (held.automatic || (!ignore_reuse && held.reuse && wanted.reuse)) return false;
    return held.id != wanted.id && Overlap(held, wanted) && PoolOf(held) == pool;
  });
}

bool PortTable::Taken(PortSpace space, uint16_t port, const Binding& wanted) const {
  return AnyOf(bindings_, space, port,
               [&](const Binding& held) { return PoolOf(held) == PoolOf(wanted); });
}

bool PortTable::SessionHasMost(PortSpace space, uint16_t port, SessionId session) const {
  size_t count = 0;
  return AnyOf(bindings_, space, port, [&](const Binding& held) {
    return held.owner == session && ++count >= kMostOfSession;
  });
}

PortTable::Binding* PortTable::Find(PortSpace space, uint16_t port, CmHandle id) {
  const auto at = bindings_.find({space, port, id});
  return at == bindings_.end() ? nullptr : &at->second;
}

uint16_t PortTable::PortToShare(PortSpace space, const Binding& wanted, uint64_t start) const {
  for (uint32_t i = 0; i < kTakenInARow && i < shares_.count(); ++i) {
    const uint16_t port = shares_.PortAt(start + i);
    if (!Taken(space, port, wanted)) return port;
  }
  const uint32_t free = shares_.FindFree({space, wanted.scope}, start);
  return shares_.PortAt(free == shares_.count() ? start : free);
}

// The owner of addresses of a session may have changed since it took a port, so a port that nobody
// holds in this scope may be held in another one.
uint16_t PortTable::PortToHold(PortSpace space, const Binding& wanted, uint64_t start) const {
  for (uint32_t i = 0; i < kTakenInARow; ++i) {
    const uint32_t free = shares_.FindFree({space, wanted.scope}, start);
    if (free == shares_.count()) return 0;
    const uint16_t port = shares_.PortAt(free);
    if (!Conflicts(space, port, wanted, /*ignore_reuse=*/true)) return port;
    start = uint64_t{free} + 1;
  }
  return 0;
}

bool PortTable::IsHeld(PortSpace space, uint16_t port, uint64_t scope) const {
  return AnyOf(bindings_, space, port,
               [&](const Binding& held) { return held.holds && held.scope == scope; });
}

void PortTable::Hold(PortSpace space, Binding& binding) {
  const uint16_t port = binding.address.port;
  if (!shares_.Covers(port) || IsHeld(space, port, binding.scope)) return;
  binding.holds = true;
  shares_.Take({space, binding.scope}, port, {binding.pool, binding.owner});
}

void PortTable::PassOn(PortSpace space, const Binding& removed) {
  const uint16_t port = removed.address.port;
  shares_.Give({space, removed.scope}, port, {removed.pool, removed.owner});
  for (auto at = bindings_.lower_bound({space, port, {}}); IsAt(bindings_, at, space, port); ++at) {
    Binding& next = at->second;
    if (!next.automatic && next.scope == removed.scope) return Hold(space, next);
  }
}

int PortTable::Bind(PortSpace space, Binding& binding, RandomSource& random) {
  binding.scope = PoolOf(binding);
  binding.pool = pool_of ? pool_of(binding.owner) : 0;
  uint16_t& port = binding.address.port;
  const bool any = port == 0;
  if (!any) {
    if (Conflicts(space, port, binding, /*ignore_reuse=*/false) ||
        SessionHasMost(space, port, binding.owner))
      return EADDRINUSE;
  }
  const bool holds =
      !binding.automatic && (any || (shares_.Covers(port) && !IsHeld(space, port, binding.scope)));
  if (holds && !shares_.MayTake({space, binding.scope}, {binding.pool, binding.owner}))
    return EADDRNOTAVAIL;
  if (any) {
    const uint64_t start = random.Next();
    port =
        binding.automatic ? PortToShare(space, binding, start) : PortToHold(space, binding, start);
    if (port == 0) return EADDRNOTAVAIL;
  }
  if (holds) Hold(space, binding);
  kept_.Insert(bindings_, {space, port, binding.id}, binding);
  return 0;
}

int PortTable::Listen(PortSpace space, uint16_t port, CmHandle id) {
  Binding* const binding = Find(space, port, id);
  if (binding == nullptr) return EINVAL;
  if (Conflicts(space, port, *binding, /*ignore_reuse=*/true)) return EADDRINUSE;
  if (binding->automatic) {
    if (!shares_.MayTake({space, binding->scope}, {binding->pool, binding->owner}))
      return EADDRNOTAVAIL;
    binding->automatic = false;
    Hold(space, *binding);
  }
  binding->listening = true;
  listeners_.emplace(Key{space, port, id}, binding);
  return 0;
}

void PortTable::SetOptions(PortSpace space, uint16_t port, CmHandle id, bool reuse, bool af_only) {
  Binding* const binding = Find(space, port, id);
  if (binding == nullptr) return;
  binding->reuse = reuse;
  binding->af_only = af_only;
}

void PortTable::Unbind(PortSpace space, uint16_t port, CmHandle id) {
  const auto at = bindings_.find({space, port, id});
  if (at == bindings_.end()) return;
  const Binding removed = at->second;
  listeners_.erase(at->first);
  kept_.Erase(bindings_, at);
  if (removed.holds) PassOn(space, removed);
}

CmHandle PortTable::FindListener(PortSpace space, uint16_t port, const wire::Gid& destination,
                                 uint64_t pool, bool* port_open) const {
  *port_open = false;
  CmHandle found;
  for (auto at = listeners_.lower_bound({space, port, {}}); IsAt(listeners_, at, space, port);
       ++at) {
    const Binding& binding = *at->second;
    if (PoolOf(binding) != pool) continue;
    *port_open = true;
    if (!Covers(binding, destination)) continue;
    if (!binding.address.IsWildcard()) return binding.id;
    found = binding.id;
  }
  return found;
}

size_t PortTable::size() const {
  size_t ports = 0;
  for (auto at = bindings_.begin(); at != bindings_.end();) {
    ++ports;
    at = bindings_.upper_bound({at->first.space, at->first.port, {UINT64_MAX}});
  }
  return ports;
}

}  // namespace rocegw::cm
