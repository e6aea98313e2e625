// SPDX-License-Identifier: Apache-2.0
// DPDK port modes: any ethdev device, shared with the kernel (af_packet on an interface) or
// exclusive (memif, ring, pcap, null, tap, PCI). One queue per worker. A device with fewer queues
// delivers everything to the first workers, which hand packets over; transmit queues are then
// shared under a lock. The control thread creates and destroys groups while no worker runs, after
// StartDpdk. This header needs no DPDK header.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "gateway/base/status.h"
#include "gateway/port/frame.h"
#include "gateway/port/packet_port.h"
#include "gateway/port/port_config.h"
#include "gateway/port/steering.h"

namespace rocegw::port {

// Returns the DPDK device string for a kernel interface, with frames for its MTU.
std::string AfPacketDevice(const std::string& interface, size_t queues, size_t mtu);

class DpdkPortGroup {
 public:
  // Opens steering.worker_count() queues. Errors name a remedy: no such device or interface, a
  // device in use, unsupported settings.
  static StatusOr<std::unique_ptr<DpdkPortGroup>> Create(const DpdkPortConfig& config,
                                                         const SteeringTable& steering);
  ~DpdkPortGroup();
  DpdkPortGroup(const DpdkPortGroup&) = delete;
  DpdkPortGroup& operator=(const DpdkPortGroup&) = delete;

  size_t queues() const;
  PacketPort& queue(size_t index);
  // Returns on how many queues the device itself receives.
  size_t receive_queues() const;
  const MacAddress& mac() const;
  size_t mtu() const;
  // Returns true if the device reports a link.
  bool link() const;

 private:
  struct State;
  explicit DpdkPortGroup(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rocegw::port
