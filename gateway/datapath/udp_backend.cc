// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <optional>
#include <utility>

#include "gateway/datapath/port_backend.h"
#include "gateway/port/udp/udp_port.h"

namespace rocegw::datapath {
namespace {

class UdpBackend final : public PortBackend {
 public:
  UdpBackend(std::unique_ptr<port::UdpPortGroup> group, std::string interface)
      : group_(std::move(group)), interface_(std::move(interface)) {}

  port::PacketPort& queue(size_t worker) override { return group_->queue(worker); }
  uint64_t receive_buffer_bytes() const override { return group_->receive_buffer_bytes(); }
  std::string note() const override {
    const std::string& squatter = group_->lock_squatter();
    return squatter.empty() ? "" : squatter + " holds the name of the instance lock: end it";
  }
  std::string segmentation() const override { return group_->segmentation_reason(); }
  // Only queue 0 joins the group: its worker hands copies to the others.
  Status SetMembership(const wire::Gid& group, bool joined) override {
    return joined ? group_->JoinMulticast(group, interface_, 0)
                  : group_->LeaveMulticast(group, interface_, 0);
  }
  std::optional<size_t> MembershipLimit(bool ipv4) const override {
    return port::UdpPortGroup::MembershipLimit(ipv4);
  }
  bool Offer(OfferedFds& fds) const override {
    group_->Offer(fds);
    return true;
  }

 private:
  std::unique_ptr<port::UdpPortGroup> group_;
  std::string interface_;
};

port::Segmentation Translate(Segmentation segmentation) {
  switch (segmentation) {
    case Segmentation::kOn:
      return port::Segmentation::kOn;
    case Segmentation::kOff:
      return port::Segmentation::kOff;
    case Segmentation::kAuto:
      break;
  }
  return port::Segmentation::kAuto;
}

}  // namespace

StatusOr<std::unique_ptr<PortBackend>> OpenUdp(const PortConfig& config,
                                               const port::SteeringTable& steering,
                                               InheritedFds* inherited) {
  port::UdpPortConfig udp;
  udp.interfaces = {config.interface};
  udp.segmentation = Translate(config.segmentation);
  udp.steer_by_qpn = config.steering == Steering::kQpn;
  udp.socket_receive_buffer = config.receive_buffer_bytes;
  udp.only_address = config.only_address;
  // Gateways with one address each may share a network namespace, so loopback packets may be
  // theirs.
  udp.refuse_foreign_loopback = !config.only_address;
  auto group = port::UdpPortGroup::Create(udp, steering, inherited);
  if (!group.ok()) return group.status();
  return std::unique_ptr<PortBackend>(
      std::make_unique<UdpBackend>(std::move(*group), config.interface));
}

}  // namespace rocegw::datapath
