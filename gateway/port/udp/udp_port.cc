// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/udp/udp_port.h"

#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "gateway/port/egress_offload.h"
#include "gateway/port/frame.h"
#include "gateway/port/instance_lock.h"
#include "gateway/port/kernel/local_address.h"
#include "gateway/port/udp/flood_program.h"
#include "gateway/port/udp/udp_socket.h"

namespace rocegw::port {
namespace {

constexpr size_t kUdpBurst = 64;
// Payload 4096 with the longest headers, and space for jumbo channel frames.
constexpr size_t kLargestDatagram = 9216;
// Upper bound of the option memory that one IPv6 membership takes (struct ipv6_mc_socklist).
constexpr size_t kIpv6MembershipBytes = 128;
constexpr size_t kSmallestDatagram = 256 + 44;

struct SegmentationChoice {
  bool ipv4 = false;
  bool ipv6 = false;
  std::string reason;
};

std::string HardwareSegments(const std::string& interface, const std::string& driver) {
  return "off for IPv4: " + interface + " (" + driver +
         ") segments in hardware and may not count the IPv4 ID up; to allow it, `ethtool -K " +
         interface + " tx-udp-segmentation off`";
}

StatusOr<SegmentationChoice> ChooseSegmentation(const UdpPortConfig& config) {
  if (config.segmentation == Segmentation::kOff) {
    return SegmentationChoice{false, false, "off by configuration"};
  }
  if (config.segmentation == Segmentation::kOn) {
    return SegmentationChoice{true, true, "on by configuration"};
  }
  SegmentationChoice choice{true, true, "on: every interface counts the IPv4 ID up"};
  if (config.interfaces.empty()) {
    choice.ipv4 = false;
    choice.reason = "off for IPv4: no interface named, so none is known to count the IPv4 ID up";
  }
  for (const std::string& interface : config.interfaces) {
    auto offload = ReadEgressOffload(interface);
    if (!offload.ok()) return offload.status();
    if (offload->counts_ip_id()) continue;
    choice.ipv4 = false;
    choice.reason = HardwareSegments(interface, offload->driver);
    break;
  }
  return choice;
}

StatusOr<size_t> ChooseMaxDatagram(const UdpPortConfig& config) {
  size_t longest = kLargestDatagram;
  for (const std::string& interface : config.interfaces) {
    auto info = ReadInterface(interface);
    if (!info.ok()) return info.status();
    longest = std::min(longest, MaxDatagram(info->mtu));
  }
  if (config.max_datagram != 0) longest = std::min(longest, config.max_datagram);
  if (longest < kSmallestDatagram) {
    return Status(EINVAL, "the interfaces' MTU leaves " + std::to_string(longest) +
                              " bytes for a datagram, too few for the smallest path MTU; raise it "
                              "with `ip link set dev NAME mtu 1500` or more");
  }
  return longest;
}

// Returns 0 or errno.
int SetMembership(int fd, const wire::Gid& group, const std::string& interface, bool joined) {
  const unsigned index = if_nametoindex(interface.c_str());
  if (index == 0) return ENODEV;
  int result = 0;
  if (group.IsV4()) {
    ip_mreqn request{};
    request.imr_multiaddr.s_addr = htonl(group.V4());
    request.imr_ifindex = static_cast<int>(index);
    result = setsockopt(fd, IPPROTO_IP, joined ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &request,
                        sizeof request);
  } else {
    ipv6_mreq request{};
    std::memcpy(&request.ipv6mr_multiaddr, group.bytes.data(), group.bytes.size());
    request.ipv6mr_interface = index;
    result = setsockopt(fd, IPPROTO_IPV6, joined ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &request,
                        sizeof request);
  }
  return result == 0 ? 0 : errno;
}

}  // namespace

UdpPort::UdpPort(const UdpTransmitterConfig& transmit, size_t receive_buffers)
    : limits_(transmit.limits),
      transmitter_(transmit, counters_),
      receiver_(receive_buffers, counters_, transmit.own_ports) {}

PortLimits UdpPort::limits() const { return limits_; }

void UdpPort::SetSocket(UniqueFd socket, size_t send_buffer_bytes) {
  socket_ = std::move(socket);
  const bool sends = socket_.valid() && LetSend(socket_.get(), send_buffer_bytes);
  transmitter_.SetReceiveSocket(sends ? socket_.get() : -1);
}

bool UdpPort::Filter(const FloodFilter& filter) {
  // The program judges what came merged by its first datagram.
  SetMergedReceive(socket_.get(), filter.empty());
  const bool done = FilterInput(socket_.get(), FloodProgram(filter));
  receiver_.SetFiltered(done && !filter.empty());
  return done;
}

StatusOr<std::unique_ptr<UdpPortGroup>> UdpPortGroup::Create(const UdpPortConfig& config,
                                                             const SteeringTable& steering,
                                                             InheritedFds* inherited) {
  auto max_datagram = ChooseMaxDatagram(config);
  if (!max_datagram.ok()) return max_datagram.status();
  auto segmentation = ChooseSegmentation(config);
  if (!segmentation.ok()) return segmentation.status();
  std::unique_ptr<UdpPortGroup> group(new UdpPortGroup);
  group->config_ = config;
  if (!config.only_address) {
    if (inherited != nullptr)
      group->lock_ = inherited->Take(FdKind::kInstanceLock, std::to_string(config.udp_port));
    if (!group->lock_.valid()) {
      auto lock = LockInstance(config.udp_port);
      if (!lock.ok()) return lock.status();
      // A gateway of this user that found its lock held by another program has no lock.
      if (Status free = IsPortFree(config.udp_port); !free.ok()) return free;
      group->lock_ = std::move(lock->fd);
      group->lock_squatter_ = std::move(lock->squatter);
    }
  } else if (steering.worker_count() != 1) {
    // Another gateway with all addresses could join a group of sockets.
    return Status(EINVAL, "a port with one address alone has one worker");
  }
  group->segmentation_reason_ = segmentation->reason;
  const UdpTransmitterConfig transmit{
      .packets = std::max<size_t>(config.packets_per_queue, 1),
      .limits = {.max_datagram = *max_datagram, .burst = kUdpBurst},
      .segment_ipv4 = segmentation->ipv4,
      .segment_ipv6 = segmentation->ipv6,
      .udp_port = config.udp_port,
      .interface_index =
          config.interfaces.empty() ? 0 : if_nametoindex(config.interfaces[0].c_str()),
      .source_ports = config.source_ports_per_queue,
      .send_buffer_bytes = config.socket_send_buffer,
      .own_ports = config.refuse_foreign_loopback ? &group->own_ports_ : nullptr,
      .reserved_ports = &group->reserved_ports_};
  // Another user of the host cannot send from the port unless the sockets have one address only.
  if (!config.only_address) {
    group->reserved_ports_.Open(config.udp_port);
    group->own_ports_.SetReceiving(config.udp_port);
  }
  for (size_t i = 0; i < steering.worker_count(); ++i) {
    group->ports_.emplace_back(new UdpPort(transmit, config.receive_buffers));
  }
  if (Status status = group->Open(steering, inherited); !status.ok()) return status;
  return group;
}

std::string UdpPortGroup::NameOf(size_t queue) const {
  return std::to_string(config_.udp_port) + "/" +
         (config_.only_address ? wire::AddressText(*config_.only_address) : "*") + "/" +
         std::to_string(queue);
}

void UdpPortGroup::Offer(OfferedFds& fds) const {
  if (lock_.valid())
    fds.push_back({FdKind::kInstanceLock, std::to_string(config_.udp_port), lock_.get()});
  for (size_t i = 0; i < ports_.size(); ++i)
    fds.push_back({FdKind::kUdpReceive, NameOf(i), ports_[i]->socket_.get()});
}

Status UdpPortGroup::Open(const SteeringTable& steering, InheritedFds* inherited) {
  const std::vector<sock_filter> program = steering.ReuseportProgram();
  receive_buffer_bytes_ = SIZE_MAX;
  for (size_t i = 0; i < ports_.size(); ++i) {
    const auto& port = ports_[i];
    if (inherited != nullptr) {
      UniqueFd socket = inherited->Take(FdKind::kUdpReceive, NameOf(i));
      if (socket.valid()) {
        receive_buffer_bytes_ = std::min(
            receive_buffer_bytes_, SetReceiveBuffer(socket.get(), config_.socket_receive_buffer));
        port->SetSocket(std::move(socket), config_.socket_send_buffer);
        port->receiver_.ContinueSocket();
        // The other process may have filtered.
        (void)port->Filter({});
        continue;
      }
    }
    ReceiveSocketOptions options{.port = config_.udp_port,
                                 .buffer_bytes = config_.socket_receive_buffer};
    options.address = config_.only_address;
    if (!options.address && config_.steer_by_qpn && i == 0) options.steering = program;
    auto socket = OpenReceiveSocket(options);
    if (!socket.ok()) return socket.status();
    port->SetSocket(std::move(socket->fd), config_.socket_send_buffer);
    receive_buffer_bytes_ = std::min(receive_buffer_bytes_, socket->buffer_bytes);
  }
  return OkStatus();
}

Status UdpPortGroup::Restart(const SteeringTable& steering) {
  if (steering.worker_count() != ports_.size()) {
    return {EINVAL, "a restart cannot change the number of queues"};
  }
  for (auto& port : ports_) {
    port->SetSocket({}, 0);
    port->transmitter_.Reset();
    port->receiver_.Reset();
  }
  return Open(steering);
}

Status UdpPortGroup::JoinMulticast(const wire::Gid& group, const std::string& interface,
                                   size_t queue) {
  if (config_.only_address) {
    return {EOPNOTSUPP, "a port with one address alone hears no multicast group"};
  }
  const int error = SetMembership(ports_[queue]->socket_.get(), group, interface, true);
  if (error == 0 || error == EADDRINUSE) return OkStatus();
  return {error, "cannot join the multicast group on " + interface + ": " + strerror(error)};
}

std::optional<size_t> UdpPortGroup::MembershipLimit(bool ipv4) {
  std::ifstream file(ipv4 ? "/proc/sys/net/ipv4/igmp_max_memberships"
                          : "/proc/sys/net/core/optmem_max");
  size_t value = 0;
  if (!(file >> value)) return std::nullopt;
  return ipv4 ? value : value / kIpv6MembershipBytes;
}

Status UdpPortGroup::LeaveMulticast(const wire::Gid& group, const std::string& interface,
                                    size_t queue) {
  const int error = SetMembership(ports_[queue]->socket_.get(), group, interface, false);
  if (error == 0) return OkStatus();
  return {error, "cannot leave the multicast group on " + interface + ": " + strerror(error)};
}

}  // namespace rocegw::port
