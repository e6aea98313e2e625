// SPDX-License-Identifier: Apache-2.0
// Who holds which port: bindings per (port space, port), each on one address or on all. Port spaces
// know nothing of each other nor of the kernel's sockets. Two ids conflict when their addresses
// overlap, unless both allow reuse; listening is exclusive even then. Control thread; errors are
// errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "gateway/base/kept_nodes.h"
#include "gateway/cm/cm_config.h"
#include "gateway/cm/cm_types.h"

namespace rocegw::cm {

class PortTable {
 public:
  struct Binding {
    CmHandle id;
    Endpoint address;
    bool reuse = false;
    bool af_only = false;    // a wildcard stands for its own address family only
    bool automatic = false;  // ephemeral port of an active id
    bool listening = false;
  };

  // Port 0 picks an ephemeral one and writes it into binding.address. EADDRINUSE, or EADDRNOTAVAIL
  // when no port is free.
  int Bind(PortSpace space, Binding& binding, const CmConfig& config, RandomSource& random);

  // The id must be bound. EADDRINUSE when any other id overlaps, reuse or not.
  int Listen(PortSpace space, uint16_t port, CmHandle id);

  // Options may be set after binding too.
  void SetOptions(PortSpace space, uint16_t port, CmHandle id, bool reuse, bool af_only);

  void Unbind(PortSpace space, uint16_t port, CmHandle id);

  // The listener for a request to `destination`: one on just that address before a wildcard. 0:
  // none. *port_open says whether anybody listens on the port at all.
  CmHandle FindListener(PortSpace space, uint16_t port, const wire::Gid& destination,
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
  bool Conflicts(const Key& key, const Binding& wanted, bool ignore_reuse) const;
  bool OnlyAutomatic(const Key& key) const;
  uint16_t FreePort(PortSpace space, const Binding& wanted, const CmConfig& config,
                    RandomSource& random) const;

  Bindings bindings_;
  KeptNodes<Bindings> kept_;
};

}  // namespace rocegw::cm
