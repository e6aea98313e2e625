// SPDX-License-Identifier: Apache-2.0
// The DPDK port modes: any device that DPDK's ethdev knows, shared with the kernel (af_packet on an
// interface) or on its own (memif, ring, pcap, null, tap, PCI). One queue per worker; a device with
// fewer queues delivers everything to the first workers, which hand over, and transmit queues are
// then shared under a lock. The control thread makes and destroys groups while no worker runs;
// StartDpdk comes first. No DPDK header is needed to use this.
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

// The DPDK device for a kernel interface, with frames that hold its MTU.
std::string AfPacketDevice(const std::string& interface, size_t queues, size_t mtu);

class DpdkPortGroup {
 public:
  // steering.worker_count() queues. Refused with a remedy: no such device or interface, a device
  // that is in use, settings it does not take.
  static StatusOr<std::unique_ptr<DpdkPortGroup>> Create(const DpdkPortConfig& config,
                                                         const SteeringTable& steering);
  ~DpdkPortGroup();
  DpdkPortGroup(const DpdkPortGroup&) = delete;
  DpdkPortGroup& operator=(const DpdkPortGroup&) = delete;

  size_t queues() const;
  PacketPort& queue(size_t index);
  // How many of them the device itself receives on.
  size_t receive_queues() const;
  const MacAddress& mac() const;
  size_t mtu() const;
  // Whether the device says that it is connected.
  bool link() const;

 private:
  struct State;
  explicit DpdkPortGroup(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rocegw::port
