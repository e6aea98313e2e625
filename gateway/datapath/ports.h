// SPDX-License-Identifier: Apache-2.0
// The configured ports, one verbs device each. Makes their queues, describes each device to
// clients, and follows addresses, MTU and link state of its interface. Control thread; the queues
// belong to the workers, which must have stopped before destruction.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/inherited_fds.h"
#include "gateway/base/status.h"
#include "gateway/datapath/config.h"
#include "gateway/datapath/port_backend.h"
#include "gateway/port/capture/capture_port.h"
#include "gateway/port/kernel/local_address.h"
#include "gateway/port/packet_port.h"
#include "gateway/port/port_counters.h"
#include "gateway/port/steering.h"
#include "gateway/session/options.h"
#include "gateway/session/state/captures.h"
#include "gateway/session/state/state_rows.h"

namespace rocegw::datapath {

// Traffic of all queues of a port since the start.
struct PortTraffic {
  uint64_t tx_packets = 0;
  uint64_t tx_bytes = 0;
  uint64_t tx_lost = 0;
  uint64_t rx_packets = 0;
  uint64_t rx_bytes = 0;
  uint64_t rx_overflow = 0;
};

class Ports {
 public:
  // Opens all ports. Errors name the port, the problem and the remedy. Without open_dpdk, only mode
  // udp works. `inherited`: sockets of another process; nullptr: none.
  static StatusOr<std::unique_ptr<Ports>> Create(const Config& config,
                                                 const port::SteeringTable& steering,
                                                 const DpdkOpener& open_dpdk,
                                                 InheritedFds* inherited = nullptr);
  // Adds the descriptors that another process may inherit. Returns the name of a port that could
  // not be continued; empty: none.
  std::string Offer(OfferedFds& fds) const;

  size_t device_count() const { return ports_.size(); }
  // Returns a worker's queue of every port, by device index.
  std::vector<port::PacketPort*> QueuesOf(WorkerIndex worker) const;
  // For captures: the taps, and every worker's queues with and without recording.
  port::CaptureTaps& taps() { return taps_; }
  std::vector<session::CaptureQueues> RecordingQueues() const;
  // Returns the names of the queues in captures, in the order of their numbers.
  std::vector<std::string> QueueNames() const;
  const session::Device& device(size_t index) const { return ports_[index].device; }

  // Readable when addresses, links or routes may have changed; call Refresh then.
  int monitor_fd() const { return monitor_->fd(); }
  // Queries the system again and returns the indices of changed devices.
  std::vector<size_t> Refresh();
  // Returns true if a device has no netdev: nothing becomes readable when its link changes.
  bool HasOwnDevices() const;
  // Queries the links of devices without a netdev and returns the indices of changed devices.
  std::vector<size_t> RefreshOwnDevices();

  // Returns the local address for packets to a destination: from a device without a netdev if one
  // of its prefixes covers the destination, else from the kernel, else from a device with a router.
  StatusOr<wire::Gid> SourceFor(const wire::Gid& destination, uint32_t interface_index) const;

  // Writes the GIDs of all ports by index, or reads them into ports that have no user yet.
  void HandOverGids(hand_over::StateStream& state);

  // Starts or stops receiving packets for a multicast group on that device.
  Status SetMembership(size_t device, const wire::Gid& group, bool joined) const {
    return ports_[device].backend->SetMembership(group, joined);
  }

  // As PortBackend::MembershipLimit.
  std::optional<size_t> MembershipLimit(size_t device, bool ipv4) const {
    return ports_[device].backend->MembershipLimit(ipv4);
  }

  // Returns the bytes that may be in flight per flow without overrunning a receiver configured like
  // this one.
  uint32_t SafeWindow() const;
  // Returns the speed of the fastest port; 0: unknown.
  uint64_t LinkBytesPerSecond() const;

  void AddRows(session::StateSnapshot& snapshot) const;
  PortTraffic TrafficOf(size_t device) const;

  // Counters of all queues that are not zero, by name, and their sums before this process.
  using Counts = std::map<std::string, uint64_t>;
  Counts CountsByName() const;
  // Adds what a gateway before this one counted. Names of other ports are ignored.
  void GoOnFrom(const Counts& counts);

 private:
  struct Port {
    PortConfig config;
    session::Device device;
    port::GidTable gids;
    port::InterfaceInfo interface;
    std::unique_ptr<PortBackend> backend;
    unsigned opened_index = 0;  // interface that the backend is bound to; 0: to none
    std::vector<std::unique_ptr<port::CapturePort>> recording;  // by worker

    // Returns true if an interface of the same name has taken the place of the backend's.
    bool replaced() const { return opened_index != 0 && interface.index != opened_index; }
  };

  Ports() = default;
  static Status Open(Port& port, const DpdkOpener& open_dpdk, const port::SteeringTable& steering,
                     InheritedFds* inherited);
  static Status Look(Port& port);
  std::vector<size_t> LookAgain(bool own_devices_only);
  wire::Gid InsteadOf(const wire::Gid& source) const;
  static session::PortRow RowOf(const Port& port);

  port::CaptureTaps taps_;
  // Counters of a queue by their place in port::kPortCounters, with those before this process.
  using QueueCounts = std::array<uint64_t, std::size(port::kPortCounters)>;
  QueueCounts CountsOf(size_t device, size_t worker) const;
  static std::string NameOf(const Port& port, size_t worker, size_t counter);

  std::vector<Port> ports_;
  size_t workers_ = 0;
  std::map<std::pair<size_t, size_t>, QueueCounts> before_;  // by device and worker
  std::optional<port::AddressMonitor> monitor_;
};

// Returns true if `destination` lies in the network of the local address.
bool Covers(const InterfaceAddress& own, const wire::Gid& destination);

// Returns the largest path MTU (256 to 4096 bytes of payload) whose packets fit the interface MTU;
// 0: none.
uint32_t PathMtuFor(size_t interface_mtu);

// Returns the EUI-64 of a MAC address: eight bytes in network order, read as a native integer.
// Without a MAC, the result is derived from `fallback` and marked as locally administered: the same
// in every build.
uint64_t NodeGuid(const port::MacAddress& mac, const std::string& fallback);

// Names this host, as the machine's id (machine-id(5)) and the host name do.
std::string HostIdentity();

}  // namespace rocegw::datapath
