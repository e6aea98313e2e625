// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/port_table.h"

#include <algorithm>
#include <cerrno>

namespace rocegw::cm {
namespace {

// Tens of thousands of taken ports are not walked along for each new id.
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
  const auto at = ports_.find(key);
  if (at == ports_.end()) return false;
  return std::any_of(at->second.begin(), at->second.end(), [&](const Binding& held) {
    if (held.id == wanted.id) return false;
    if (!ignore_reuse && held.reuse && wanted.reuse) return false;
    return Overlap(held, wanted);
  });
}

bool PortTable::OnlyAutomatic(const Key& key) const {
  const auto at = ports_.find(key);
  return at == ports_.end() || std::all_of(at->second.begin(), at->second.end(),
                                           [](const Binding& held) { return held.automatic; });
}

// A peer only ever sees an active id's port as information, so active ids share one when so many in
// a row are taken.
uint16_t PortTable::FreePort(PortSpace space, const Binding& wanted, const CmConfig& config,
                             RandomSource& random) const {
  const uint32_t count = config.last_ephemeral_port - config.first_ephemeral_port + 1u;
  const uint32_t start = static_cast<uint32_t>(random.Next() % count);
  uint16_t shared = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const auto port = static_cast<uint16_t>(config.first_ephemeral_port + (start + i) % count);
    const auto at = ports_.find({space, port});
    if (at == ports_.end()) return port;
    if (shared == 0 && wanted.automatic && OnlyAutomatic({space, port})) shared = port;
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
  ports_[{space, binding.address.port}].push_back(binding);
  return 0;
}

int PortTable::Listen(PortSpace space, uint16_t port, CmHandle id) {
  const auto at = ports_.find({space, port});
  if (at == ports_.end()) return EINVAL;
  for (Binding& binding : at->second) {
    if (binding.id != id) continue;
    if (Conflicts({space, port}, binding, /*ignore_reuse=*/true)) return EADDRINUSE;
    binding.listening = true;
    return 0;
  }
  return EINVAL;
}

void PortTable::SetOptions(PortSpace space, uint16_t port, CmHandle id, bool reuse, bool af_only) {
  const auto at = ports_.find({space, port});
  if (at == ports_.end()) return;
  for (Binding& binding : at->second) {
    if (binding.id != id) continue;
    binding.reuse = reuse;
    binding.af_only = af_only;
  }
}

void PortTable::Unbind(PortSpace space, uint16_t port, CmHandle id) {
  const auto at = ports_.find({space, port});
  if (at == ports_.end()) return;
  std::erase_if(at->second, [id](const Binding& held) { return held.id == id; });
  if (at->second.empty()) ports_.erase(at);
}

CmHandle PortTable::FindListener(PortSpace space, uint16_t port, const wire::Gid& destination,
                                 bool* port_open) const {
  *port_open = false;
  CmHandle found;
  const auto at = ports_.find({space, port});
  if (at == ports_.end()) return found;
  for (const Binding& binding : at->second) {
    if (!binding.listening) continue;
    *port_open = true;
    if (!Covers(binding, destination)) continue;
    if (!binding.address.IsWildcard()) return binding.id;
    found = binding.id;
  }
  return found;
}

}  // namespace rocegw::cm
