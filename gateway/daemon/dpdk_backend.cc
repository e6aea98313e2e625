// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/dpdk_backend.h"

#include <cstdio>
#include <utility>

#include "gateway/port/dpdk/dpdk_environment.h"
#include "gateway/port/dpdk/dpdk_port.h"
#include "gateway/process/log/foreign_lines.h"

namespace rocegw::daemon {
namespace {

class DpdkBackend final : public datapath::PortBackend {
 public:
  explicit DpdkBackend(std::unique_ptr<port::DpdkPortGroup> group) : group_(std::move(group)) {}

  port::PacketPort& queue(size_t worker) override { return group_->queue(worker); }
  void Describe(port::InterfaceInfo& device) const override {
    device.mtu = group_->mtu();
    device.mac = group_->mac();
    device.up = true;
    device.link = group_->link();
  }

 private:
  std::unique_ptr<port::DpdkPortGroup> group_;
};

}  // namespace

Status StartSharedDpdk(const port::DpdkEnvironment& environment) {
  static std::FILE* const kLog = process::ForeignStream("DPDK");
  return port::StartDpdk(environment, kLog);
}

StatusOr<std::unique_ptr<datapath::PortBackend>> OpenDpdk(const PortConfig& config,
                                                          const port::DpdkEnvironment& environment,
                                                          size_t interface_mtu,
                                                          const port::SteeringTable& steering) {
  if (Status started = StartSharedDpdk(environment); !started.ok()) return started;
  port::DpdkPortConfig dpdk;
  if (config.mode == PortMode::kAfPacket) {
    dpdk.interface = config.interface;
    dpdk.device = port::AfPacketDevice(config.interface, steering.worker_count(), interface_mtu);
    dpdk.mtu = interface_mtu;
  } else {
    dpdk.device = config.mode == PortMode::kPci ? config.pci : config.vdev;
    dpdk.mtu = config.mtu;
    dpdk.vlan = static_cast<uint16_t>(config.vlan);
    dpdk.mac = config.mac;
    for (const InterfaceAddress& address : config.addresses) {
      dpdk.network.addresses.push_back(
          {address.address, static_cast<uint8_t>(address.prefix_length), false});
    }
    for (const wire::Gid& router : config.routers) {
      (router.IsV4() ? dpdk.network.router_ipv4 : dpdk.network.router_ipv6) = router;
    }
    for (const NeighbourConfig& neighbour : config.neighbours) {
      dpdk.network.neighbours.push_back({neighbour.address, neighbour.mac});
    }
  }
  auto group = port::DpdkPortGroup::Create(dpdk, steering);
  if (!group.ok()) return group.status();
  return std::unique_ptr<datapath::PortBackend>(std::make_unique<DpdkBackend>(std::move(*group)));
}

}  // namespace rocegw::daemon
