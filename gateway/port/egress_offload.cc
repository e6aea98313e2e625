// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/egress_offload.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "gateway/base/unique_fd.h"

namespace rocegw::port {
namespace {

constexpr char kFeature[] = "tx-udp-segmentation";

bool EthtoolCall(int fd, const std::string& interface, void* command) {
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = static_cast<char*>(command);
  return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

// Room for a command structure of the ethtool interface with its variable tail.
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

// -1 when the kernel knows no such feature.
int FeatureIndex(int fd, const std::string& interface, uint32_t count) {
  EthtoolBlock<ethtool_gstrings> names(ETHTOOL_GSTRINGS, size_t{count} * ETH_GSTRING_LEN);
  names.get()->string_set = ETH_SS_FEATURES;
  names.get()->len = count;
  if (!EthtoolCall(fd, interface, names.get())) return -1;
  for (uint32_t i = 0; i < count && i < names.get()->len; ++i) {
    const auto* name =
        reinterpret_cast<const char*>(names.get()->data + size_t{i} * ETH_GSTRING_LEN);
    if (strncmp(name, kFeature, ETH_GSTRING_LEN) == 0) return static_cast<int>(i);
  }
  return -1;
}

bool FeatureOn(int fd, const std::string& interface, uint32_t count, uint32_t index) {
  const uint32_t blocks = (count + 31) / 32;
  EthtoolBlock<ethtool_gfeatures> features(ETHTOOL_GFEATURES,
                                           blocks * sizeof(ethtool_get_features_block));
  features.get()->size = blocks;
  if (!EthtoolCall(fd, interface, features.get())) return false;
  return (features.get()->features[index / 32].active >> (index % 32) & 1) != 0;
}

}  // namespace

StatusOr<EgressOffload> ReadEgressOffload(const std::string& interface) {
  const UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  if (!fd.valid() || ioctl(fd.get(), SIOCGIFFLAGS, &request) != 0) {
    return Status(errno, "no network interface " + interface + ": " + strerror(errno));
  }
  EgressOffload offload;
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (EthtoolCall(fd.get(), interface, &driver)) {
    offload.driver.assign(driver.driver, strnlen(driver.driver, sizeof driver.driver));
  }
  offload.software = (request.ifr_flags & IFF_LOOPBACK) != 0 || offload.driver == "veth" ||
                     offload.driver == "tun" || offload.driver == "dummy";
  const uint32_t count = FeatureCount(fd.get(), interface);
  const int index = count == 0 ? -1 : FeatureIndex(fd.get(), interface, count);
  offload.udp_segmentation =
      index >= 0 && FeatureOn(fd.get(), interface, count, static_cast<uint32_t>(index));
  return offload;
}

}  // namespace rocegw::port
