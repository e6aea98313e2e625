// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "gateway/datapath/port_backend.h"
#include "gateway/port/xdp/xdp_port.h"

namespace rocegw::datapath {
namespace {

class XdpBackend final : public PortBackend {
 public:
  explicit XdpBackend(std::unique_ptr<port::XdpPortGroup> group) : group_(std::move(group)) {}

  port::PacketPort& queue(size_t worker) override { return group_->queue(worker); }
  std::string note() const override { return group_->Shortcoming(); }
  size_t frame_mtu() const override { return group_->frame_mtu(); }

 private:
  std::unique_ptr<port::XdpPortGroup> group_;
};

}  // namespace

StatusOr<std::unique_ptr<PortBackend>> OpenXdp(const PortConfig& config,
                                               const port::SteeringTable& steering) {
  auto group = port::XdpPortGroup::Create({.interface = config.interface}, steering);
  if (!group.ok()) return group.status();
  return std::unique_ptr<PortBackend>(std::make_unique<XdpBackend>(std::move(*group)));
}

}  // namespace rocegw::datapath
