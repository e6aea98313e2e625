// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/interface_choice.h"

#include <algorithm>
#include <cerrno>

namespace rocegw::daemon {

StatusOr<std::string> ChooseInterface(const std::vector<port::InterfaceInfo>& interfaces,
                                      const std::optional<wire::Gid>& default_source) {
  std::vector<std::string> usable;
  std::string all;
  for (const port::InterfaceInfo& interface : interfaces) {
    all += (all.empty() ? "" : ", ") + interface.name;
    if (interface.loopback || !interface.link || interface.addresses.empty()) continue;
    usable.push_back(interface.name);
    const auto& addresses = interface.addresses;
    if (default_source && std::any_of(addresses.begin(), addresses.end(), [&](const auto& address) {
          return address.gid == *default_source;
        })) {
      return interface.name;
    }
  }
  if (usable.size() == 1) return usable.front();
  if (usable.empty()) {
    return Status(ENODEV,
                  "no network interface is up with an address; bring one up, or name one with "
                  "ports: [{interface: NAME}] (there are: " +
                      (all.empty() ? "none" : all) + ")");
  }
  std::string candidates;
  for (const std::string& name : usable) candidates += (candidates.empty() ? "" : ", ") + name;
  return Status(ENODEV,
                "there is no default route to choose the network interface by; name one with "
                "ports: [{interface: NAME}] (candidates: " +
                    candidates + ")");
}

}  // namespace rocegw::daemon
