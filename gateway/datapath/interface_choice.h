// SPDX-License-Identifier: Apache-2.0
// Choice of the interface "auto": the one of the default route, else the only one that has a link
// and an address. Loopback is never chosen, but may be configured by name. Pure functions; used at
// start-up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/port/kernel/local_address.h"
#include "gateway/wire/gid.h"

namespace rocegw::datapath {

// default_source: source address of a packet to the default route; nothing without a default route.
StatusOr<std::string> ChooseInterface(const std::vector<port::InterfaceInfo>& interfaces,
                                      const std::optional<wire::Gid>& default_source);

// Returns the interface that has the address, or EADDRNOTAVAIL.
StatusOr<std::string> InterfaceOf(const std::vector<port::InterfaceInfo>& interfaces,
                                  const wire::Gid& address);

}  // namespace rocegw::datapath
