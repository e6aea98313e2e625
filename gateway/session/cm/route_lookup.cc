// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/cm/route_lookup.h"

#include <algorithm>
#include <cerrno>

#include "gateway/port/kernel/local_address.h"

namespace rocegw::session {
namespace {

bool IsOurs(const wire::Gid& gid, const std::vector<Device>& devices) {
  return std::any_of(devices.begin(), devices.end(), [&](const Device& device) {
    return std::find(device.gids.begin(), device.gids.end(), gid) != device.gids.end();
  });
}

constexpr Duration kRecent = Milliseconds(50);
constexpr size_t kMostRecent = 16;

// Returns the first address of that family.
wire::Gid AnyOfFamily(bool v4, const std::vector<Device>& devices) {
  for (const Device& device : devices) {
    for (const wire::Gid& gid : device.gids) {
      if (!gid.IsZero() && gid.IsV4() == v4) return gid;
    }
  }
  return {};
}

}  // namespace

StatusOr<wire::Gid> SourceByKernel(const wire::Gid& destination, uint32_t interface_index) {
  return port::SourceFor(destination, interface_index);
}

RecentSources::RecentSources(SourceLookup lookup) : lookup_(std::move(lookup)) {
  known_.reserve(kMostRecent);
}

StatusOr<wire::Gid> RecentSources::Find(const wire::Gid& destination, uint32_t interface_index,
                                        TimePoint now) {
  std::erase_if(known_, [&](const Known& known) { return known.until <= now; });
  for (const Known& known : known_) {
    if (known.destination == destination && known.interface_index == interface_index)
      return known.source;
  }
  auto found = lookup_(destination, interface_index);
  if (found.ok() && known_.size() != kMostRecent)
    known_.push_back({destination, interface_index, *found, now + kRecent});
  return found;
}

StatusOr<Route> ResolveRoute(const cm::Endpoint& source, const cm::Endpoint& destination,
                             const std::vector<Device>& devices, const SourceLookup& lookup) {
  const bool named = !source.IsWildcard() && !source.IsLoopback();
  if (named && source.address.IsV4() != destination.address.IsV4()) {
    return Status(EINVAL, "source and destination are of different address families");
  }
  if (named && !IsOurs(source.address, devices))
    return Status(ENODEV, "source is no address of this gateway");
  if (destination.IsLoopback()) {
    const wire::Gid own = named ? source.address : AnyOfFamily(destination.address.IsV4(), devices);
    if (own.IsZero()) return Status(ENODEV, "this gateway has no address of that family");
    return Route{own, own};
  }
  if (destination.IsWildcard()) return Status(EINVAL, "destination is a wildcard");
  if (named) return Route{source.address, destination.address};
  // An own address is reached from itself; the kernel would say the same for addresses that it has.
  if (IsOurs(destination.address, devices)) return Route{destination.address, destination.address};
  auto found = lookup(destination.address, destination.scope_id);
  if (!found.ok()) return found.status();
  if (!IsOurs(*found, devices))
    return Status(ENODEV, "the route does not lead through a device of this gateway");
  return Route{*found, destination.address};
}

}  // namespace rocegw::session
