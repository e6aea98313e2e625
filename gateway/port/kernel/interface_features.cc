// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/kernel/interface_features.h"

#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "gateway/base/unique_fd.h"
#include "gateway/port/kernel/netlink.h"

namespace rocegw::port {
namespace {

bool EthtoolCall(int fd, const std::string& interface, void* command) {
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = static_cast<char*>(command);
  return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

// Command structure of the ethtool interface with space for its variable tail.
template <typename Command>
class EthtoolBlock {
 public:
  EthtoolBlock(uint32_t command, size_t tail)
      : words_((sizeof(Command) + tail + sizeof(uint64_t) - 1) / sizeof(uint64_t)) {
    get()->cmd = command;
  }
  Command* get() { return reinterpret_cast<Command*>(words_.data()); }

 private:
  std::vector<uint64_t> words_;
};

uint32_t FeatureCount(int fd, const std::string& interface) {
  EthtoolBlock<ethtool_sset_info> info(ETHTOOL_GSSET_INFO, sizeof(uint32_t));
  info.get()->sset_mask = uint64_t{1} << ETH_SS_FEATURES;
  if (!EthtoolCall(fd, interface, info.get()) || info.get()->sset_mask == 0) return 0;
  return info.get()->data[0];
}

void ReadAll(int fd, const std::string& interface, InterfaceFeatures& out) {
  const uint32_t count = FeatureCount(fd, interface);
  if (count == 0) return;
  EthtoolBlock<ethtool_gstrings> names(ETHTOOL_GSTRINGS, size_t{count} * ETH_GSTRING_LEN);
  names.get()->string_set = ETH_SS_FEATURES;
  names.get()->len = count;
  const uint32_t blocks = (count + 31) / 32;
  EthtoolBlock<ethtool_gfeatures> states(ETHTOOL_GFEATURES,
                                         blocks * sizeof(ethtool_get_features_block));
  states.get()->size = blocks;
  if (!EthtoolCall(fd, interface, names.get()) || !EthtoolCall(fd, interface, states.get())) return;
  for (uint32_t i = 0; i < std::min(count, names.get()->len); ++i) {
    const auto* const name =
        reinterpret_cast<const char*>(names.get()->data + size_t{i} * ETH_GSTRING_LEN);
    const ethtool_get_features_block& block = states.get()->features[i / 32];
    const uint32_t bit = 1u << (i % 32);
    out.features[std::string(name, strnlen(name, ETH_GSTRING_LEN))] = {
        .on = (block.active & bit) != 0,
        .changeable = (block.available & bit) != 0 && (block.never_changed & bit) == 0};
  }
}

// sysfs would say how many of them are used, but it may show another network namespace.
uint32_t AllocatedReceiveQueues(const std::string& interface) {
  auto netlink = NetlinkSocket::Open();
  if (!netlink.ok()) return 1;
  ifinfomsg header{};
  header.ifi_index = static_cast<int>(if_nametoindex(interface.c_str()));
  uint32_t queues = 1;
  (void)netlink->Exchange(
      NetlinkRequest(RTM_GETLINK, 0, header), [&](const NetlinkMessage& message) {
        message.Attributes(sizeof header, [&](uint16_t type, std::span<const uint8_t> value) {
          if (type == IFLA_NUM_RX_QUEUES) queues = std::max(AttributeU32(value), 1u);
        });
      });
  return queues;
}

}  // namespace

StatusOr<InterfaceFeatures> ReadFeatures(const std::string& interface) {
  const UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  if (!fd.valid() || ioctl(fd.get(), SIOCGIFFLAGS, &request) != 0) {
    return Status(errno, "no network interface " + interface + ": " + strerror(errno));
  }
  InterfaceFeatures features;
  features.loopback = (request.ifr_flags & IFF_LOOPBACK) != 0;
  if (ioctl(fd.get(), SIOCGIFHWADDR, &request) == 0)
    features.ethernet = request.ifr_hwaddr.sa_family == ARPHRD_ETHER;
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (EthtoolCall(fd.get(), interface, &driver)) {
    features.driver.assign(driver.driver, strnlen(driver.driver, sizeof driver.driver));
  }
  ReadAll(fd.get(), interface, features);
  return features;
}

InterfaceQueues ReadQueues(const std::string& interface) {
  const UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  if (fd.valid() && EthtoolCall(fd.get(), interface, &channels)) {
    return {.receive = std::max(channels.rx_count + channels.combined_count, 1u),
            .transmit = std::max(channels.tx_count + channels.combined_count, 1u)};
  }
  return {.receive = AllocatedReceiveQueues(interface), .allocated = true};
}

}  // namespace rocegw::port
