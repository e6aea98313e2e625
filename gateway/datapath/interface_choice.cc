// SPDX-License-Identifier: Apache-2.0
#include "gateway/datapath/interface_choice.h"

#include <algorithm>
#include <cerrno>

namespace rocegw::datapath {

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

StatusOr<std::string> InterfaceOf(const std::vector<port::InterfaceInfo>& interfaces,
                                  const wire::Gid& address) {
  for (const port::InterfaceInfo& interface : interfaces) {
    const auto& own = interface.addresses;
    if (std::any_of(own.begin(), own.end(), [&](const auto& a) { return a.gid == address; }))
      return interface.name;
  }
  return Status(EADDRNOTAVAIL, "no network interface here has the address " +
                                   wire::AddressText(address) +
                                   "; `ip address` lists what there is");
}

}  // namespace rocegw::datapath
