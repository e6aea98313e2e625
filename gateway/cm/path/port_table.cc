// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/path/port_table.h"

#include <cerrno>

namespace rocegw::cm {
namespace {

// Limit of a search for a free port, which would otherwise pass tens of thousands of used ports per
// id.
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
    if (!ignore_reuse && held.reuse && wanted.reuse) return false;
    return held.id != wanted.id && Overlap(held, wanted) && PoolOf(held) == pool;
  });
}

bool PortTable::Taken(PortSpace space, uint16_t port, const Binding& wanted) const {
  return AnyOf(bindings_, space, port,
               [&](const Binding& held) { return PoolOf(held) == PoolOf(wanted); });
}

bool PortTable::OnlyAutomatic(PortSpace space, uint16_t port, const Binding& wanted) const {
  return !AnyOf(bindings_, space, port, [&](const Binding& held) {
    return !held.automatic && PoolOf(held) == PoolOf(wanted);
  });
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

// Peers use an active id's port only as information, so active ids share a port when the search
// fails.
uint16_t PortTable::FreePort(PortSpace space, const Binding& wanted, const CmConfig& config,
                             RandomSource& random) const {
  const uint32_t count = config.last_ephemeral_port - config.first_ephemeral_port + 1u;
  const uint32_t start = static_cast<uint32_t>(random.Next() % count);
  uint16_t shared = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const auto port = static_cast<uint16_t>(config.first_ephemeral_port + (start + i) % count);
    if (!Taken(space, port, wanted)) return port;
    if (shared == 0 && wanted.automatic && OnlyAutomatic(space, port, wanted)) shared = port;
    if (shared != 0 && i >= kTakenInARow) break;
  }
  return shared;
}

int PortTable::Bind(PortSpace space, Binding& binding, const CmConfig& config,
                    RandomSource& random) {
  uint16_t& port = binding.address.port;
  if (port == 0) {
    port = FreePort(space, binding, config, random);
    if (port == 0) return EADDRNOTAVAIL;
  } else if (Conflicts(space, port, binding, /*ignore_reuse=*/false) ||
             SessionHasMost(space, port, binding.owner)) {
    return EADDRINUSE;
  }
  kept_.Insert(bindings_, {space, port, binding.id}, binding);
  return 0;
}

int PortTable::Listen(PortSpace space, uint16_t port, CmHandle id) {
  Binding* const binding = Find(space, port, id);
  if (binding == nullptr) return EINVAL;
  if (Conflicts(space, port, *binding, /*ignore_reuse=*/true)) return EADDRINUSE;
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
  listeners_.erase(at->first);
  kept_.Erase(bindings_, at);
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
