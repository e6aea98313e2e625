// SPDX-License-Identifier: Apache-2.0
// How a connection manager id gets from a destination address to a pair of GIDs: by the kernel's
// routes, or by what the daemon knows where the kernel does not. Control thread; must not wait for
// the network.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/cm/cm_types.h"
#include "gateway/session/options.h"
#include "gateway/wire/gid.h"

namespace rocegw::session {

// The address that this host would send from to `destination`; interface_index is needed for
// link-local destinations only.
using SourceLookup =
    std::function<StatusOr<wire::Gid>(const wire::Gid& destination, uint32_t interface_index)>;

// The kernel's answer (port/kernel/local_address.h).
StatusOr<wire::Gid> SourceByKernel(const wire::Gid& destination, uint32_t interface_index);

struct Route {
  wire::Gid source;
  wire::Gid destination;
};

// Answers of a lookup for a moment: who connects many times to the same few hosts asks the system
// once. A route that changes is followed within that moment.
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

// `source` may be a wildcard: then by lookup. A loopback destination becomes an address of this
// gateway. ENODEV when the route does not lead through one of the devices.
StatusOr<Route> ResolveRoute(const cm::Endpoint& source, const cm::Endpoint& destination,
                             const std::vector<Device>& devices, const SourceLookup& lookup);

}  // namespace rocegw::session
