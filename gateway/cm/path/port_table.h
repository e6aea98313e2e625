// SPDX-License-Identifier: Apache-2.0
// Who holds which port: bindings per (port space, port), each on one address or on all. Port spaces
// know nothing of each other nor of the kernel's sockets. Two ids conflict when their addresses
// overlap, unless both allow reuse; listening is exclusive even then. "All" addresses are those
// that the id's pool owns, or those that no pool owns if its pool owns none: ids of pools that
// share no address never conflict. Control thread; errors are errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "gateway/base/containers/kept_nodes.h"
#include "gateway/base/ids.h"
#include "gateway/cm/cm_config.h"
#include "gateway/cm/cm_types.h"

namespace rocegw::cm {

class PortTable {
 public:
  struct Binding {
    CmHandle id;
    SessionId owner;
    Endpoint address;
    bool reuse = false;
    bool af_only = false;    // a wildcard stands for its own address family only
    bool automatic = false;  // ephemeral port of an active id
    bool listening = false;
  };

  // The pool of a session if that pool owns addresses, else 0. Not set: 0 for all. May change its
  // answers at any time.
  using AddressOwner = std::function<uint64_t(SessionId)>;
  AddressOwner address_owner;

  // Port 0 picks an ephemeral one and writes it into binding.address. EADDRINUSE, or EADDRNOTAVAIL
  // when no port is free.
  int Bind(PortSpace space, Binding& binding, const CmConfig& config, RandomSource& random);

  // The id must be bound. EADDRINUSE when any other id overlaps, reuse or not.
  int Listen(PortSpace space, uint16_t port, CmHandle id);

  // Options may be set after binding too.
  void SetOptions(PortSpace space, uint16_t port, CmHandle id, bool reuse, bool af_only);

  void Unbind(PortSpace space, uint16_t port, CmHandle id);

  // The listener for a request to `destination`, an address that `pool` owns (0: no pool does): one
  // on just that address before a wildcard. 0: none. *port_open says whether any id that may have
  // addresses of that owner listens on the port.
  CmHandle FindListener(PortSpace space, uint16_t port, const wire::Gid& destination, uint64_t pool,
                        bool* port_open) const;

  // Ports that somebody holds; takes as long as there are many.
  size_t size() const;

  // Room for so many bindings more (kept_nodes.h).
  void Keep(size_t wanted) { kept_.SetWanted(wanted); }
  bool Refill(size_t most) { return kept_.Refill(bindings_, most); }

 private:
  using Key = std::pair<PortSpace, uint16_t>;
  using Bindings = std::multimap<Key, Binding>;
  // nullptr: the id is not bound there.
  Binding* Find(const Key& key, CmHandle id);
  uint64_t PoolOf(const Binding& binding) const {
    return address_owner ? address_owner(binding.owner) : 0;
  }
  bool Taken(const Key& key, const Binding& wanted) const;
  bool Conflicts(const Key& key, const Binding& wanted, bool ignore_reuse) const;
  bool OnlyAutomatic(const Key& key, const Binding& wanted) const;
  uint16_t FreePort(PortSpace space, const Binding& wanted, const CmConfig& config,
                    RandomSource& random) const;

  Bindings bindings_;
  KeptNodes<Bindings> kept_;
};

}  // namespace rocegw::cm
