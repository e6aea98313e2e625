// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/path/port_table.h"

#include <algorithm>
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

bool Covers(const PortTable::Binding& binding, const wire::Gid& destination) {
  if (!binding.address.IsWildcard()) return binding.address.address == destination;
  return !binding.af_only || binding.address.address.IsV4() == destination.IsV4();
}

}  // namespace

bool PortTable::Conflicts(const Key& key, const Binding& wanted, bool ignore_reuse) const {
  const auto [first, last] = bindings_.equal_range(key);
  const uint64_t pool = PoolOf(wanted);
  return std::any_of(first, last, [&](const auto& entry) {
    const Binding& held = entry.second;
    if (held.id == wanted.id || PoolOf(held) != pool) return false;
    if (!ignore_reuse && held.reuse && wanted.reuse) return false;
    return Overlap(held, wanted);
  });
}

bool PortTable::Taken(const Key& key, const Binding& wanted) const {
  const auto [first, last] = bindings_.equal_range(key);
  if (first == last) return false;
  const uint64_t pool = PoolOf(wanted);
  return std::any_of(first, last, [&](const auto& entry) { return PoolOf(entry.second) == pool; });
}

bool PortTable::OnlyAutomatic(const Key& key, const Binding& wanted) const {
  const auto [first, last] = bindings_.equal_range(key);
  const uint64_t pool = PoolOf(wanted);
  return std::all_of(first, last, [&](const auto& entry) {
    return entry.second.automatic || PoolOf(entry.second) != pool;
  });
}

PortTable::Binding* PortTable::Find(const Key& key, CmHandle id) {
  const auto [first, last] = bindings_.equal_range(key);
  const auto at =
      std::find_if(first, last, [id](const auto& entry) { return entry.second.id == id; });
  return at == last ? nullptr : &at->second;
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
    if (!Taken({space, port}, wanted)) return port;
    if (shared == 0 && wanted.automatic && OnlyAutomatic({space, port}, wanted)) shared = port;
    if (shared != 0 && i >= kTakenInARow) break;
  }
  return shared;
}

int PortTable::Bind(PortSpace space, Binding& binding, const CmConfig& config,
                    RandomSource& random) {
  if (binding.address.port == 0) {
    binding.address.port = FreePort(space, binding, config, random);
    if (binding.address.port == 0) return EADDRNOTAVAIL;
  } else if (Conflicts({space, binding.address.port}, binding, /*ignore_reuse=*/false)) {
    return EADDRINUSE;
  }
  kept_.Insert(bindings_, {space, binding.address.port}, binding);
  return 0;
}

int PortTable::Listen(PortSpace space, uint16_t port, CmHandle id) {
  Binding* const binding = Find({space, port}, id);
  if (binding == nullptr) return EINVAL;
  if (Conflicts({space, port}, *binding, /*ignore_reuse=*/true)) return EADDRINUSE;
  binding->listening = true;
  return 0;
}

void PortTable::SetOptions(PortSpace space, uint16_t port, CmHandle id, bool reuse, bool af_only) {
  Binding* const binding = Find({space, port}, id);
  if (binding == nullptr) return;
  binding->reuse = reuse;
  binding->af_only = af_only;
}

void PortTable::Unbind(PortSpace space, uint16_t port, CmHandle id) {
  const auto [first, last] = bindings_.equal_range({space, port});
  const auto at =
      std::find_if(first, last, [id](const auto& entry) { return entry.second.id == id; });
  if (at != last) kept_.Erase(bindings_, at);
}

CmHandle PortTable::FindListener(PortSpace space, uint16_t port, const wire::Gid& destination,
                                 uint64_t pool, bool* port_open) const {
  *port_open = false;
  CmHandle found;
  const auto [first, last] = bindings_.equal_range({space, port});
  for (auto at = first; at != last; ++at) {
    const Binding& binding = at->second;
    if (!binding.listening || PoolOf(binding) != pool) continue;
    *port_open = true;
    if (!Covers(binding, destination)) continue;
    if (!binding.address.IsWildcard()) return binding.id;
    found = binding.id;
  }
  return found;
}

size_t PortTable::size() const {
  size_t ports = 0;
  for (auto at = bindings_.begin(); at != bindings_.end(); at = bindings_.upper_bound(at->first))
    ++ports;
  return ports;
}

}  // namespace rocegw::cm
