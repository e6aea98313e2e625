// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/udp/udp_receiver.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cstring>

namespace rocegw::port {
namespace {

wire::Gid GidOf(const in6_addr& address) {
  wire::Gid gid;
  std::memcpy(gid.bytes.data(), &address, gid.bytes.size());
  return gid;
}

template <typename T>
bool Read(const cmsghdr& header, T& value) {
  if (header.cmsg_len < CMSG_LEN(sizeof value)) return false;
  std::memcpy(&value, CMSG_DATA(&header), sizeof value);
  return true;
}

void ParseName(const msghdr& message, wire::RxMeta& meta) {
  const auto* name = static_cast<const sockaddr*>(message.msg_name);
  if (message.msg_namelen >= sizeof(sockaddr_in6) && name->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(name);
    meta.source = GidOf(v6->sin6_addr);
    meta.source_port = ntohs(v6->sin6_port);
  } else if (message.msg_namelen >= sizeof(sockaddr_in) && name->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(name);
    meta.source = wire::Gid::FromV4(ntohl(v4->sin_addr.s_addr));
    meta.source_port = ntohs(v4->sin_port);
  }
}

// Index of the loopback interface in every network namespace.
constexpr unsigned kLoopbackIndex = 1;

void ParseIpv4Control(const cmsghdr& header, wire::RxMeta& meta, bool& loopback) {
  if (header.cmsg_type == IP_TOS) {
    (void)Read(header, meta.traffic_class);
  } else if (header.cmsg_type == IP_TTL) {
    int ttl = 0;
    if (Read(header, ttl)) meta.hop_limit = static_cast<uint8_t>(ttl);
  } else if (header.cmsg_type == IP_PKTINFO) {
    in_pktinfo info{};
    if (!Read(header, info)) return;
    meta.destination = wire::Gid::FromV4(ntohl(info.ipi_addr.s_addr));
    loopback = static_cast<unsigned>(info.ipi_ifindex) == kLoopbackIndex;
  }
}

void ParseIpv6Control(const cmsghdr& header, wire::RxMeta& meta, bool& loopback) {
  if (header.cmsg_type == IPV6_PKTINFO) {
    in6_pktinfo info{};
    if (!Read(header, info)) return;
    meta.destination = GidOf(info.ipi6_addr);
    loopback = info.ipi6_ifindex == kLoopbackIndex;
    return;
  }
  int value = 0;
  if (!Read(header, value)) return;
  if (header.cmsg_type == IPV6_TCLASS) meta.traffic_class = static_cast<uint8_t>(value);
  if (header.cmsg_type == IPV6_HOPLIMIT) meta.hop_limit = static_cast<uint8_t>(value);
}

}  // namespace

UdpMessage ParseMessage(const msghdr& message) {
  UdpMessage result;
  ParseName(message, result.meta);
  auto* writable = const_cast<msghdr*>(&message);  // CMSG_NXTHDR takes no const
  for (cmsghdr* header = CMSG_FIRSTHDR(writable); header != nullptr;
       header = CMSG_NXTHDR(writable, header)) {
    if (header->cmsg_level == IPPROTO_IP) {
      ParseIpv4Control(*header, result.meta, result.loopback);
    } else if (header->cmsg_level == IPPROTO_IPV6) {
      ParseIpv6Control(*header, result.meta, result.loopback);
    } else if (header->cmsg_level == IPPROTO_UDP && header->cmsg_type == UDP_GRO) {
      int segment = 0;
      if (Read(*header, segment) && segment > 0) result.segment = static_cast<size_t>(segment);
    } else if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SO_RXQ_OVFL) {
      (void)Read(*header, result.overflow);
    }
  }
  return result;
}

UdpReceiver::UdpReceiver(size_t buffers, PortCounters& counters, const OwnSourcePorts* own_ports)
    : bytes_(new uint8_t[std::max<size_t>(buffers, 1) * kBufferBytes]),
      names_(std::max<size_t>(buffers, 1)),
      controls_(names_.size()),
      vectors_(names_.size()),
      messages_(names_.size()),
      counters_(counters),
      own_ports_(own_ports) {
  for (size_t i = 0; i < messages_.size(); ++i) {
    vectors_[i] = {bytes_.get() + i * kBufferBytes, kBufferBytes};
    messages_[i].msg_hdr.msg_name = &names_[i];
    messages_[i].msg_hdr.msg_iov = &vectors_[i];
    messages_[i].msg_hdr.msg_iovlen = 1;
    messages_[i].msg_hdr.msg_control = controls_[i].bytes;
    messages_[i].msg_hdr.msg_namelen = sizeof(sockaddr_storage);
    messages_[i].msg_hdr.msg_controllen = kControl;
  }
}

bool UdpReceiver::Refill(int fd) {
  // The kernel shortens these lengths; only those used last time need a reset.
  for (size_t i = 0; i < received_; ++i) {
    messages_[i].msg_hdr.msg_namelen = sizeof(sockaddr_storage);
    messages_[i].msg_hdr.msg_controllen = kControl;
  }
  next_ = 0;
  const int count = recvmmsg(fd, messages_.data(), static_cast<unsigned>(messages_.size()),
                             MSG_DONTWAIT, nullptr);
  received_ = count > 0 ? static_cast<size_t>(count) : 0;
  if (received_ != 0) counters_.rx_calls.Add();
  return received_ != 0;
}

// Returns true for packets from a program of this host. A program with several addresses can name
// another interface for what it sends to this host, so the interface alone does not tell.
bool UdpReceiver::IsForeignLoopback() const {
  const wire::RxMeta& meta = current_.meta;
  return (current_.loopback || meta.source == meta.destination) &&
         !own_ports_->Has(meta.source.IsV4(), meta.source_port);
}

// Makes the next received message current. Returns false if there is none.
bool UdpReceiver::OpenMessage() {
  while (next_ < received_) {
    const mmsghdr& message = messages_[next_];
    const auto* bytes = static_cast<const uint8_t*>(vectors_[next_].iov_base);
    ++next_;
    current_ = ParseMessage(message.msg_hdr);
    if (!overflow_known_) last_overflow_ = current_.overflow;
    overflow_known_ = true;
    if (current_.overflow != last_overflow_) {
      metrics::Counter& dropped = filtered_ ? counters_.rx_flood : counters_.rx_overflow;
      dropped.Add(static_cast<uint32_t>(current_.overflow - last_overflow_));
      last_overflow_ = current_.overflow;
    }
    if ((message.msg_hdr.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
      counters_.rx_malformed.Add();
      continue;
    }
    if (own_ports_ != nullptr && IsForeignLoopback()) {
      counters_.rx_foreign_loopback.Add();
      continue;
    }
    rest_ = {bytes, message.msg_len};
    size_t packets = 1;
    if (current_.segment == 0 || current_.segment >= rest_.size()) {
      current_.segment = rest_.size();
    } else {
      packets = (rest_.size() + current_.segment - 1) / current_.segment;
      counters_.rx_merged.Add(packets);
    }
    counters_.rx_packets.Add(packets);
    counters_.rx_bytes.Add(rest_.size());
    open_ = true;
    return true;
  }
  return false;
}

size_t UdpReceiver::Receive(int fd, std::span<wire::RxDatagram> into) {
  // Remaining datagrams are returned first, and alone: a refill would overwrite them.
  if (!open_ && next_ == received_ && !Refill(fd)) return 0;
  size_t count = 0;
  while (count < into.size() && (open_ || OpenMessage())) {
    const size_t length = std::min(current_.segment, rest_.size());
    into[count].meta = current_.meta;
    into[count].bytes = rest_.first(length);
    ++count;
    rest_ = rest_.subspan(length);
    open_ = !rest_.empty();
  }
  return count;
}

void UdpReceiver::Reset() {
  next_ = received_;
  open_ = false;
  rest_ = {};
  last_overflow_ = 0;
}

}  // namespace rocegw::port
