// SPDX-License-Identifier: Apache-2.0
// Table of bound ports: bindings per (port space, port), each on one address or on all. Port spaces
// are independent of each other and of the kernel's sockets. Two ids conflict if their addresses
// overlap, unless both allow reuse; listening is always exclusive. An active id that was given a
// port conflicts with none, since peers use its port only as information. "All" addresses are those
// that the id's pool owns, or those without owner if its pool owns none: ids of pools that share no
// address never conflict. Control thread; errors are errno.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include "gateway/base/containers/kept_nodes.h"
#include "gateway/base/ids.h"
#include "gateway/cm/cm_config.h"
#include "gateway/cm/cm_types.h"
#include "gateway/cm/path/port_shares.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::cm {

class PortTable {
 public:
  struct Binding {
    CmHandle id;
    SessionId owner;
    Endpoint address;
    bool reuse = false;
    bool af_only = false;    // a wildcard covers its own address family only
    bool automatic = false;  // ephemeral port of an active id
    bool listening = false;
    // Holds the port in the shares, as a port of this scope and pool (port_shares.h).
    bool holds = false;
    uint64_t scope = 0;
    uint64_t pool = 0;
  };

  PortTable(uint16_t first_ephemeral, uint16_t last_ephemeral)
      : shares_(first_ephemeral, last_ephemeral) {}

  // Returns the pool of a session if that pool owns addresses, else 0. Unset: 0 for all. Its
  // results may change at any time.
  using AddressOwner = std::function<uint64_t(SessionId)>;
  AddressOwner address_owner;

  // Returns the pool of a session, for the shares of the ephemeral ports. Unset: 0 for all.
  AddressOwner pool_of;

  // Limit of ids of one session that share a port. Binding looks at all ids of the port.
  static constexpr size_t kMostOfSession = 1024;

  // Binds an id. Port 0 picks an ephemeral port and writes it into binding.address. EADDRINUSE,
  // also if the session has kMostOfSession ids on the port, or EADDRNOTAVAIL if no port is free or
  // the pool or the session holds its share of the ephemeral ports.
  int Bind(PortSpace space, Binding& binding, RandomSource& random);

  // Marks a bound id as listening. EADDRINUSE if any other id overlaps, with reuse or without;
  // EADDRNOTAVAIL as for Bind.
  int Listen(PortSpace space, uint16_t port, CmHandle id);

  // Sets options of an id, also after binding.
  void SetOptions(PortSpace space, uint16_t port, CmHandle id, bool reuse, bool af_only);

  void Unbind(PortSpace space, uint16_t port, CmHandle id);

  // Returns the listener for a request to `destination`, an address that `pool` owns (0: no owner).
  // A listener on that address is preferred to a wildcard; 0: none. *port_open: an id that may have
  // addresses of that owner listens on the port.
  CmHandle FindListener(PortSpace space, uint16_t port, const wire::Gid& destination, uint64_t pool,
                        bool* port_open) const;

  void HandOver(hand_over::StateStream& state);

  // Returns the number of used ports, in linear time.
  size_t size() const;

  // Keeps memory for so many further bindings (kept_nodes.h).
  void Keep(size_t wanted) { kept_.SetWanted(wanted); }
  bool Refill(size_t most) { return kept_.Refill(bindings_, most); }

 private:
  // Bindings of one port stand in the order of their ids.
  struct Key {
    PortSpace space = PortSpace::kTcp;
    uint16_t port = 0;
    CmHandle id;
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  using Bindings = std::map<Key, Binding>;
  // A request looks at listeners only: any number of other ids may share their port.
  using Listeners = std::map<Key, const Binding*>;

  // Returns nullptr if the id is not bound to that port.
  Binding* Find(PortSpace space, uint16_t port, CmHandle id);
  uint64_t PoolOf(const Binding& binding) const {
    return address_owner ? address_owner(binding.owner) : 0;
  }
  bool Taken(PortSpace space, uint16_t port, const Binding& wanted) const;
  bool Conflicts(PortSpace space, uint16_t port, const Binding& wanted, bool ignore_reuse) const;
  bool SessionHasMost(PortSpace space, uint16_t port, SessionId session) const;
  uint16_t PortToShare(PortSpace space, const Binding& wanted, uint64_t start) const;
  uint16_t PortToHold(PortSpace space, const Binding& wanted, uint64_t start) const;
  bool IsHeld(PortSpace space, uint16_t port, uint64_t scope) const;
  // Makes the binding the holder of its port, unless another one is.
  void Hold(PortSpace space, Binding& binding);
  // Passes the port of a removed binding on to another one that may hold it.
  void PassOn(PortSpace space, const Binding& removed);

  PortShares shares_;
  Bindings bindings_;
  Listeners listeners_;
  KeptNodes<Bindings> kept_;
};

}  // namespace rocegw::cm
