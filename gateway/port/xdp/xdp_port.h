// SPDX-License-Identifier: Apache-2.0
// Port mode "af_xdp": RoCEv2 over AF_XDP sockets on an interface shared with the kernel, whose
// addresses, routes and neighbours are used. An own XDP program gives UDP packets for port 4791 at
// an own address to the sockets and leaves every other frame to the kernel. DPDK's af_xdp driver is
// not used: it attaches programs without a link, so they outlive a killed process, and it hides the
// descriptors that an idle worker waits on. One queue per worker. The control thread creates and
// destroys groups while no worker runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "gateway/base/status.h"
#include "gateway/port/packet_port.h"
#include "gateway/port/port_config.h"
#include "gateway/port/steering.h"

namespace rocegw::port {

class XdpPortGroup {
 public:
  // Opens steering.worker_count() queues. Errors name a remedy: missing capabilities, another XDP
  // program on the interface, a kernel without AF_XDP, a VLAN interface, locked memory.
  static StatusOr<std::unique_ptr<XdpPortGroup>> Create(const XdpPortConfig& config,
                                                        const SteeringTable& steering);
  // Returns the bytes that a port of so many workers locks at an interface MTU, or a little less
  // where the interface has many queues.
  static uint64_t LockedMemory(const XdpPortConfig& config, size_t workers, size_t mtu);
  ~XdpPortGroup();
  XdpPortGroup(const XdpPortGroup&) = delete;
  XdpPortGroup& operator=(const XdpPortGroup&) = delete;

  size_t queues() const;
  PacketPort& queue(size_t index);
  // Returns the largest MTU of the interface of which a frame fits the port.
  size_t frame_mtu() const;
  // Returns what makes the port slower than it could be, with the remedy; empty: nothing.
  std::string Shortcoming() const;

 private:
  struct State;
  explicit XdpPortGroup(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rocegw::port
