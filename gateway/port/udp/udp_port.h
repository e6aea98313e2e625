// SPDX-License-Identifier: Apache-2.0
// Port mode "udp": RoCEv2 over kernel UDP sockets, without privileges. A group has one queue per
// worker; the kernel selects a packet's queue with the steering table's program. The daemon creates
// and restarts groups on its control thread while no worker runs. Each queue then belongs to its
// worker, which must run in the network namespace in which the group was created.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gateway/base/inherited_fds.h"
#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/port/packet_port.h"
#include "gateway/port/port_config.h"
#include "gateway/port/port_counters.h"
#include "gateway/port/steering.h"
#include "gateway/port/udp/own_source_ports.h"
#include "gateway/port/udp/reserved_source_ports.h"
#include "gateway/port/udp/udp_receiver.h"
#include "gateway/port/udp/udp_transmitter.h"

namespace rocegw::port {

class UdpPort final : public PacketPort {
 public:
  PortLimits limits() const override;
  TxPacket* Acquire() override { return transmitter_.Acquire(); }
  void Release(TxPacket* packet) override { transmitter_.Release(packet); }
  size_t Transmit(std::span<TxPacket* const> packets) override {
    return transmitter_.Transmit(packets);
  }
  bool Flush() override { return transmitter_.Flush(); }
  size_t Receive(std::span<wire::RxDatagram> into) override {
    return receiver_.Receive(socket_.get(), into);
  }
  bool Filter(const FloodFilter& filter) override;
  int wake_fd() const override { return socket_.get(); }
  const PortCounters& counters() const override { return counters_; }
  // Returns false also after the kernel refused to segment.
  bool segments(bool ipv4) const { return transmitter_.segments(ipv4); }

 private:
  friend class UdpPortGroup;
  UdpPort(const UdpTransmitterConfig& transmit, size_t receive_buffers);
  // Receives from this socket, and sends from it while there is no other; invalid: from none.
  void SetSocket(UniqueFd socket, size_t send_buffer_bytes);

  const PortLimits limits_;
  PortCounters counters_;
  UniqueFd socket_;
  UdpTransmitter transmitter_;
  UdpReceiver receiver_;
};

class UdpPortGroup {
 public:
  // Opens steering.worker_count() queues. Errors name a remedy: another gateway in this network
  // namespace, a used port, an unknown interface. `inherited`: sockets and lock of another process
  // with the same steering, all or none; nullptr: none.
  static StatusOr<std::unique_ptr<UdpPortGroup>> Create(const UdpPortConfig& config,
                                                        const SteeringTable& steering,
                                                        InheritedFds* inherited = nullptr);

  // Adds receive sockets and lock to what another process may inherit.
  void Offer(OfferedFds& fds) const;

  size_t queues() const { return ports_.size(); }
  UdpPort& queue(size_t index) { return *ports_[index]; }

  // Closes every socket, then opens all of them with this table, which must have the same worker
  // count: closing one socket would shift the others in the kernel's group.
  Status Restart(const SteeringTable& steering);

  // Bytes of received packets that the kernel stores per queue before it drops: bounds how much a
  // peer should have in flight.
  size_t receive_buffer_bytes() const { return receive_buffer_bytes_; }
  // Reason why IPv4 packets are, or are not, sent in segmented calls; one line for display.
  const std::string& segmentation_reason() const { return segmentation_reason_; }
  // Program of another user that holds the instance lock's name; empty: none.
  const std::string& lock_squatter() const { return lock_squatter_; }

  // Joins a multicast group on this interface, on one queue's socket.
  Status JoinMulticast(const wire::Gid& group, const std::string& interface, size_t queue);
  Status LeaveMulticast(const wire::Gid& group, const std::string& interface, size_t queue);
  // Returns the number of groups of one address family that the kernel lets one socket join: the
  // sysctl net.ipv4.igmp_max_memberships; for IPv6 what fits into net.core.optmem_max. Nothing:
  // unknown.
  static std::optional<size_t> MembershipLimit(bool ipv4);

 private:
  UdpPortGroup() = default;
  Status Open(const SteeringTable& steering, InheritedFds* inherited = nullptr);
  std::string NameOf(size_t queue) const;

  UdpPortConfig config_;
  OwnSourcePorts own_ports_;
  ReservedSourcePorts reserved_ports_;
  UniqueFd lock_;
  std::string lock_squatter_;
  std::vector<std::unique_ptr<UdpPort>> ports_;
  size_t receive_buffer_bytes_ = 0;
  std::string segmentation_reason_;
};

}  // namespace rocegw::port
