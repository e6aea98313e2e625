// SPDX-License-Identifier: Apache-2.0
// What stands behind one configured port: kernel sockets or a DPDK device. Made and destroyed on
// the control thread while no worker runs; each queue belongs to its worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gateway/base/status.h"
#include "gateway/datapath/config.h"
#include "gateway/port/local_address.h"
#include "gateway/port/packet_port.h"
#include "gateway/port/steering.h"

namespace rocegw::datapath {

class PortBackend {
 public:
  virtual ~PortBackend() = default;

  virtual port::PacketPort& queue(size_t worker) = 0;
  const port::PacketPort& queue(size_t worker) const {
    return const_cast<PortBackend*>(this)->queue(worker);
  }
  // 0 and "" where the notion does not apply.
  virtual uint64_t receive_buffer_bytes() const { return 0; }
  virtual std::string segmentation() const { return ""; }
  // Packets for the group arrive from now on, or no longer need to. Without anything to do where
  // the device hears every group.
  virtual Status SetMembership(const wire::Gid& /*group*/, bool /*joined*/) { return OkStatus(); }
  // The most groups of one address family that the device hears at a time; nothing: no bound.
  virtual std::optional<size_t> MembershipLimit(bool /*ipv4*/) const { return std::nullopt; }
  // For a device that the kernel does not know: fills link, MTU and MAC.
  virtual void Describe(port::InterfaceInfo& /*device*/) const {}
};

// config.interface is a name here, no longer "auto". interface_mtu is in bytes.
StatusOr<std::unique_ptr<PortBackend>> OpenUdp(const PortConfig& config,
                                               const port::SteeringTable& steering);
// The same for the modes that are no kernel sockets. interface_mtu is 0 for a device of its own.
using DpdkOpener = std::function<StatusOr<std::unique_ptr<PortBackend>>(
    const PortConfig& config, size_t interface_mtu, const port::SteeringTable& steering)>;

}  // namespace rocegw::datapath
