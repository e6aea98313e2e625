// SPDX-License-Identifier: Apache-2.0
// Which interface "auto" means: the one that the default route leaves by, else the only one that
// has a link and an address. Loopback is never chosen, but may be configured by name. Pure
// function; start-up only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/port/local_address.h"
#include "gateway/wire/gid.h"

namespace rocegw::datapath {

// default_source: the own address that a packet to anywhere would carry; nothing without a default
// route.
StatusOr<std::string> ChooseInterface(const std::vector<port::InterfaceInfo>& interfaces,
                                      const std::optional<wire::Gid>& default_source);

// The one that has the address. EADDRNOTAVAIL: none has.
StatusOr<std::string> InterfaceOf(const std::vector<port::InterfaceInfo>& interfaces,
                                  const wire::Gid& address);

}  // namespace rocegw::datapath
