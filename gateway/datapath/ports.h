// SPDX-License-Identifier: Apache-2.0
// The configured ports, one verbs device each: makes their queues, tells what clients may know of
// each device, and follows addresses, MTU and link state of its interface. Control thread; the
// queues themselves belong to the workers, which must have ended before this does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/status.h"
#include "gateway/datapath/config.h"
#include "gateway/datapath/port_backend.h"
#include "gateway/port/capture_port.h"
#include "gateway/port/local_address.h"
#include "gateway/port/packet_port.h"
#include "gateway/port/steering.h"
#include "gateway/session/captures.h"
#include "gateway/session/options.h"
#include "gateway/session/state_rows.h"

namespace rocegw::datapath {

class Ports {
 public:
  // Errors name the port, what is wrong and the remedy. Without open_dpdk there is mode udp alone.
  static StatusOr<std::unique_ptr<Ports>> Create(const Config& config,
                                                 const port::SteeringTable& steering,
                                                 const DpdkOpener& open_dpdk);

  size_t device_count() const { return ports_.size(); }
  // A worker's queue of every port, by device index.
  std::vector<port::PacketPort*> QueuesOf(WorkerIndex worker) const;
  // For captures: taps, and every worker's queues with and without what records.
  port::CaptureTaps& taps() { return taps_; }
  std::vector<session::CaptureQueues> RecordingQueues() const;
  // What captures call the queues, in the order of their numbers.
  std::vector<std::string> QueueNames() const;
  const session::Device& device(size_t index) const { return ports_[index].device; }

  // Readable when addresses, links or routes may have changed; then Refresh.
  int monitor_fd() const { return monitor_->fd(); }
  // Asks the system again; the devices that are no longer as before.
  std::vector<size_t> Refresh();

  // The own address for packets to a destination: of a device that is not the kernel's when one of
  // its prefixes covers the destination, else what the kernel says, else of a device with a router.
  StatusOr<wire::Gid> SourceFor(const wire::Gid& destination, uint32_t interface_index) const;

  // Packets for a multicast group arrive at that device from now on, or no longer.
  Status SetMembership(size_t device, const wire::Gid& group, bool joined) const {
    return ports_[device].backend->SetMembership(group, joined);
  }

  // As PortBackend's.
  std::optional<size_t> MembershipLimit(size_t device, bool ipv4) const {
    return ports_[device].backend->MembershipLimit(ipv4);
  }

  // Bytes that may be in flight per flow without overrunning a receiver set up like this one.
  uint32_t SafeWindow() const;
  // Of the fastest port; 0: no link says how fast it is.
  uint64_t LinkBytesPerSecond() const;

  void AddRows(session::StateSnapshot& snapshot) const;

 private:
  struct Port {
    PortConfig config;
    session::Device device;
    port::GidTable gids;
    port::InterfaceInfo interface;
    std::unique_ptr<PortBackend> backend;
    std::vector<std::unique_ptr<port::CapturePort>> recording;  // by worker
  };

  Ports() = default;
  static Status Open(Port& port, const DpdkOpener& open_dpdk, const port::SteeringTable& steering);
  static Status Look(Port& port);
  wire::Gid InsteadOf(const wire::Gid& source) const;
  static session::PortRow RowOf(const Port& port);

  port::CaptureTaps taps_;
  std::vector<Port> ports_;
  size_t workers_ = 0;
  std::optional<port::AddressMonitor> monitor_;
};

// Whether an address lies in the network of an own address.
bool Covers(const InterfaceAddress& own, const wire::Gid& destination);

// The largest path MTU (bytes of payload: 256 to 4096) for which every packet fits an interface
// MTU; 0: none does.
uint32_t PathMtuFor(size_t interface_mtu);

// EUI-64 of a MAC address, as eight bytes in network order read into a native integer. An interface
// without a MAC gets one made from `fallback`, marked as locally administered.
uint64_t NodeGuid(const port::MacAddress& mac, const std::string& fallback);

}  // namespace rocegw::datapath
