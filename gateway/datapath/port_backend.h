// SPDX-License-Identifier: Apache-2.0
// Backend of one configured port: kernel sockets, AF_XDP sockets or a DPDK device. Made and
// destroyed on the control thread while no worker runs; each queue belongs to its worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gateway/base/inherited_fds.h"
#include "gateway/base/status.h"
#include "gateway/datapath/config.h"
#include "gateway/port/kernel/local_address.h"
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
  // 0 and "" where the backend has no such property.
  virtual uint64_t receive_buffer_bytes() const { return 0; }
  virtual std::string segmentation() const { return ""; }
  // Returns what makes the port slower than it could be, for display; empty: nothing.
  virtual std::string note() const { return ""; }
  // Returns the largest MTU of which a frame fits the port.
  virtual size_t frame_mtu() const { return SIZE_MAX; }
  // Starts or stops receiving packets for the group. Does nothing for devices that receive every
  // group.
  virtual Status SetMembership(const wire::Gid& /*group*/, bool /*joined*/) { return OkStatus(); }
  // Returns the limit of groups of one address family; nothing: unlimited.
  virtual std::optional<size_t> MembershipLimit(bool /*ipv4*/) const { return std::nullopt; }
  // Adds the descriptors that another process may inherit. Returns false if that process could not
  // continue the port.
  virtual bool Offer(OfferedFds& /*fds*/) const { return false; }
  // Fills in link, MTU and MAC of a device that the kernel does not know.
  virtual void Describe(port::InterfaceInfo& /*device*/) const {}
};

// Opens a port on kernel sockets. config.interface is a name, not "auto". `inherited`: sockets of
// another process; nullptr: none.
StatusOr<std::unique_ptr<PortBackend>> OpenUdp(const PortConfig& config,
                                               const port::SteeringTable& steering,
                                               InheritedFds* inherited = nullptr);
// Opens a port on AF_XDP sockets of the interface.
StatusOr<std::unique_ptr<PortBackend>> OpenXdp(const PortConfig& config,
                                               const port::SteeringTable& steering);
// Opens a port in the other modes. interface_mtu is in bytes; 0 for a device without a netdev.
using DpdkOpener = std::function<StatusOr<std::unique_ptr<PortBackend>>(
    const PortConfig& config, size_t interface_mtu, const port::SteeringTable& steering)>;

}  // namespace rocegw::datapath
