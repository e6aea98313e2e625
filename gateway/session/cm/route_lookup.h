// SPDX-License-Identifier: Apache-2.0
// Route of a connection manager id: finds the pair of GIDs for a destination address, by the
// kernel's routes, or by the daemon's own data for addresses that the kernel lacks. Control thread;
// must not wait for the network.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/cm/cm_types.h"
#include "gateway/session/options.h"
#include "gateway/wire/gid.h"

namespace rocegw::session {

// Returns the address that this host would send from to `destination`; interface_index is needed
// for link-local destinations only.
using SourceLookup =
    std::function<StatusOr<wire::Gid>(const wire::Gid& destination, uint32_t interface_index)>;

// Asks the kernel (port/kernel/local_address.h).
StatusOr<wire::Gid> SourceByKernel(const wire::Gid& destination, uint32_t interface_index);

struct Route {
  wire::Gid source;
  wire::Gid destination;
};

// Short-lived cache of a lookup's results: a program that connects many times to a few hosts
// queries the system once. A changed route is followed after that time.
class RecentSources {
 public:
  explicit RecentSources(SourceLookup lookup);
  StatusOr<wire::Gid> Find(const wire::Gid& destination, uint32_t interface_index, TimePoint now);
  void Forget() { known_.clear(); }

 private:
  struct Known {
    wire::Gid destination;
    uint32_t interface_index;
    wire::Gid source;
    TimePoint until;
  };
  SourceLookup lookup_;
  std::vector<Known> known_;
};

// Resolves a route. A wildcard `source` is looked up. A loopback destination becomes an address of
// this gateway. ENODEV if the route does not use one of the devices.
StatusOr<Route> ResolveRoute(const cm::Endpoint& source, const cm::Endpoint& destination,
                             const std::vector<Device>& devices, const SourceLookup& lookup);

}  // namespace rocegw::session
