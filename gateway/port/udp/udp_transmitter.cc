// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/udp/udp_transmitter.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gateway/port/udp/udp_socket.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/headers.h"
#include "gateway/wire/link_local.h"

namespace rocegw::port {
namespace {

bool SamePath(const wire::Path& a, const wire::Path& b) {
  return a.source_port == b.source_port && a.traffic_class == b.traffic_class &&
         a.hop_limit == b.hop_limit && a.destination == b.destination && a.source == b.source;
}

// Most pieces of one datagram: headers, payload by reference, pad and ICRC.
constexpr size_t kMostPieces = 3;

bool IsLinkLocalOrMulticast(const wire::Gid& gid) {
  return gid.bytes[0] == 0xFF || wire::IsLinkLocal(gid);
}

// Writer of control messages into the buffer of one msghdr.
class ControlWriter {
 public:
  explicit ControlWriter(uint8_t* buffer) : buffer_(buffer) {}

  template <typename T>
  void Add(int level, int type, const T& value) {
    auto* header = reinterpret_cast<cmsghdr*>(buffer_ + length_);
    header->cmsg_level = level;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(sizeof value);
    std::memcpy(CMSG_DATA(header), &value, sizeof value);
    length_ += CMSG_SPACE(sizeof value);
  }
  size_t length() const { return length_; }

 private:
  uint8_t* buffer_;
  size_t length_ = 0;
};

socklen_t WriteName(const wire::Gid& gid, uint16_t port, unsigned interface_index,
                    sockaddr_storage& name) {
  if (gid.IsV4()) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(name);
    v4 = {};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    v4.sin_addr.s_addr = htonl(gid.V4());
    return sizeof v4;
  }
  auto& v6 = reinterpret_cast<sockaddr_in6&>(name);
  v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  std::memcpy(&v6.sin6_addr, gid.bytes.data(), gid.bytes.size());
  if (IsLinkLocalOrMulticast(gid)) v6.sin6_scope_id = interface_index;
  return sizeof v6;
}

void WriteIpv4Control(const wire::Path& path, ControlWriter& control) {
  if (path.source.IsV4()) {
    in_pktinfo info{};
    info.ipi_spec_dst.s_addr = htonl(path.source.V4());
    control.Add(IPPROTO_IP, IP_PKTINFO, info);
  }
  control.Add(IPPROTO_IP, IP_TOS, int{path.traffic_class});
  if (path.hop_limit != 0) control.Add(IPPROTO_IP, IP_TTL, int{path.hop_limit});
}

void WriteIpv6Control(const wire::Path& path, unsigned interface_index, ControlWriter& control) {
  if (!path.source.IsV4() && !path.source.IsZero()) {
    in6_pktinfo info{};
    std::memcpy(&info.ipi6_addr, path.source.bytes.data(), path.source.bytes.size());
    if (IsLinkLocalOrMulticast(path.destination)) info.ipi6_ifindex = interface_index;
    control.Add(IPPROTO_IPV6, IPV6_PKTINFO, info);
  }
  control.Add(IPPROTO_IPV6, IPV6_TCLASS, int{path.traffic_class});
  if (path.hop_limit != 0) control.Add(IPPROTO_IPV6, IPV6_HOPLIMIT, int{path.hop_limit});
}

}  // namespace

size_t SegmentRun(std::span<TxPacket* const> packets) {
  const TxPacket& first = *packets[0];
  size_t total = first.length + wire::kIcrcLength;
  size_t count = 1;
  while (count < packets.size() && count < kMaxSegments) {
    const TxPacket& next = *packets[count];
    total += next.length + wire::kIcrcLength;
    if (next.length > first.length || total > kMaxUdpPayload || !SamePath(first.path, next.path)) {
      break;
    }
    ++count;
    if (next.length < first.length) break;  // only the last segment may be shorter
  }
  return count;
}

UdpTransmitter::UdpTransmitter(const UdpTransmitterConfig& config, PortCounters& counters)
    : config_(config),
      segment_ipv4_(config.segment_ipv4),
      segment_ipv6_(config.segment_ipv6),
      pool_(config.packets, config.limits.max_datagram),
      source_ports_({.keep = config.source_ports,
                     .receiving = config.udp_port,
                     .send_buffer_bytes = config.send_buffer_bytes,
                     .own = config.own_ports,
                     .reserved = config.reserved_ports},
                    counters),
      messages_(kMessages),
      names_(kMessages),
      controls_(kMessages),
      vectors_(kQueue * kMostPieces),
      run_lengths_(kMessages),
      counters_(counters) {
  queue_.reserve(kQueue);
}

TxPacket* UdpTransmitter::Acquire() {
  Slot* const slot = pool_.Get();
  if (slot != nullptr) slot->outside_from = config_.outside_from;
  return slot;
}

void UdpTransmitter::Release(TxPacket* packet) { pool_.Put(static_cast<Slot*>(packet)); }

size_t UdpTransmitter::Transmit(std::span<TxPacket* const> packets) {
  for (size_t i = 0; i < packets.size(); ++i) {
    if (waiting() == kQueue && !Send() && waiting() == kQueue) return i;
    auto* slot = static_cast<Slot*>(packets[i]);
    if (slot->length + wire::kIcrcLength > config_.limits.MaxDatagramTo(slot->path.destination)) {
      counters_.tx_lost.Add();
      pool_.Put(slot);
      continue;
    }
    if (queue_.size() == kQueue) {
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(head_));
      head_ = 0;
    }
    slot->sealed_id = -1;
    queue_.push_back(slot);
  }
  return packets.size();
}

void UdpTransmitter::Seal(Slot& slot, uint16_t ip_id, uint16_t port) {
  if (slot.sealed_id == static_cast<int32_t>(ip_id) && slot.sealed_port == port) return;
  wire::Path path = slot.path;
  path.source_port = port;
  if (slot.refers()) {
    wire::SealIcrcAround(path, ip_id, slot.data, slot.length, slot.outside);
  } else {
    wire::SealIcrc(path, ip_id, slot.data, slot.length, slot.known_crc);
  }
  slot.sealed_id = ip_id;
  slot.sealed_port = port;
}

// Lists the pieces of memory that hold the sealed datagrams, one datagram after the other. Returns
// their number. The kernel's work grows with the number of pieces: what follows a payload by
// reference (pad and ICRC) is copied into the headroom of the next datagram, to be one piece with
// that datagram's headers.
size_t UdpTransmitter::Gather(std::span<TxPacket* const> run, iovec* vectors) {
  size_t count = 0;
  std::span<const uint8_t> rest;  // end of the datagram before, not listed yet
  for (TxPacket* const packet : run) {
    uint8_t* const begin = packet->data - rest.size();
    std::copy(rest.begin(), rest.end(), begin);
    const size_t whole = packet->length + wire::kIcrcLength;
    const size_t first = packet->refers() ? packet->outside.offset : whole;
    vectors[count++] = {begin, rest.size() + first};
    rest = {};
    if (!packet->refers()) continue;
    const wire::OutsidePart& outside = packet->outside;
    vectors[count++] = {const_cast<uint8_t*>(outside.bytes), outside.length};
    rest = std::span<const uint8_t>(packet->data, whole).subspan(first + outside.length);
  }
  if (!rest.empty()) vectors[count++] = {const_cast<uint8_t*>(rest.data()), rest.size()};
  return count;
}

// Returns the number of vectors that the message takes.
size_t UdpTransmitter::BuildMessage(size_t index, std::span<TxPacket* const> run, uint16_t port,
                                    iovec* vectors) {
  for (size_t i = 0; i < run.size(); ++i)
    Seal(*static_cast<Slot*>(run[i]), static_cast<uint16_t>(i), port);
  const size_t pieces = Gather(run, vectors);
  const wire::Path& path = run[0]->path;
  ControlWriter control(controls_[index].bytes);
  if (path.destination.IsV4()) {
    WriteIpv4Control(path, control);
  } else {
    WriteIpv6Control(path, config_.interface_index, control);
  }
  if (run.size() > 1) {
    const auto segment = static_cast<uint16_t>(run[0]->length + wire::kIcrcLength);
    control.Add(IPPROTO_UDP, UDP_SEGMENT, segment);
  }
  msghdr& message = messages_[index].msg_hdr;
  message = {};
  message.msg_name = &names_[index];
  message.msg_namelen =
      WriteName(path.destination, config_.udp_port, config_.interface_index, names_[index]);
  message.msg_iov = vectors;
  message.msg_iovlen = pieces;
  message.msg_control = controls_[index].bytes;
  message.msg_controllen = control.length();
  run_lengths_[index] = static_cast<uint16_t>(run.size());
  return pieces;
}

// Fills messages_ with what one socket can send next. Returns 0 if no socket could be opened.
size_t UdpTransmitter::BuildMessages(int& fd) {
  const wire::Path& lead = static_cast<Slot*>(queue_[head_])->path;
  const bool ipv4 = lead.destination.IsV4();
  const UdpSourcePorts::Socket socket = source_ports_.Get(ipv4, lead.source_port);
  fd = socket.fd;
  if (fd < 0) return 0;
  const bool may_segment = segments(ipv4);
  size_t singles = singles_;
  size_t built = 0;
  size_t position = head_;
  size_t pieces = 0;
  while (position < queue_.size() && built < kMessages) {
    const wire::Path& path = queue_[position]->path;
    if (path.source_port != lead.source_port || path.destination.IsV4() != ipv4) break;
    const std::span<TxPacket* const> rest(queue_.begin() + static_cast<ptrdiff_t>(position),
                                          queue_.end());
    const size_t run = may_segment && singles == 0 ? SegmentRun(rest) : 1;
    if (singles != 0) --singles;
    pieces += BuildMessage(built, rest.first(run), socket.port, &vectors_[pieces]);
    position += run;
    ++built;
  }
  return built;
}

void UdpTransmitter::Retire(size_t packets) {
  for (size_t i = 0; i < packets; ++i) pool_.Put(static_cast<Slot*>(queue_[head_ + i]));
  head_ += packets;
  singles_ -= std::min(singles_, packets);
  if (head_ == queue_.size()) {
    queue_.clear();
    head_ = 0;
  }
}

// Handles the kernel's refusal of the first message. Returns false on back-pressure: try later.
bool UdpTransmitter::Recover(int error) {
  if (error == EINTR) return true;
  if (error == EAGAIN || error == EWOULDBLOCK) {
    counters_.tx_pushback.Add();
    return false;
  }
  const size_t refused = run_lengths_[0];
  if (refused > 1 && (error == EIO || error == EINVAL || error == EMSGSIZE)) {
    singles_ = refused;
    trial_ = error != EMSGSIZE;
    return true;
  }
  trial_ = false;
  counters_.tx_lost.Add(refused);
  Retire(refused);
  return true;
}

bool UdpTransmitter::Flush() {
  if (Send()) return true;
  for (size_t i = head_; i < queue_.size(); ++i) {
    auto* const slot = static_cast<Slot*>(queue_[i]);
    if (!slot->refers()) continue;
    slot->Flatten();
    // The program may have changed the payload since the ICRC was computed.
    slot->sealed_id = -1;
    counters_.tx_copied.Add();
  }
  return false;
}

// Returns false if packets wait because the kernel takes no more now.
bool UdpTransmitter::Send() {
  while (waiting() != 0) {
    int fd = -1;
    const size_t built = BuildMessages(fd);
    if (built == 0) {
      counters_.tx_lost.Add();
      Retire(1);
      continue;
    }
    const int sent = sendmmsg(fd, messages_.data(), static_cast<unsigned>(built), MSG_NOSIGNAL);
    if (sent <= 0) {
      if (!Recover(errno)) return false;
      continue;
    }
    if (trial_) {
      (queue_[head_]->path.destination.IsV4() ? segment_ipv4_ : segment_ipv6_) = false;
      trial_ = false;
    }
    counters_.tx_calls.Add();
    size_t packets = 0;
    size_t bytes = 0;
    for (int i = 0; i < sent; ++i) {
      packets += run_lengths_[static_cast<size_t>(i)];
      bytes += messages_[static_cast<size_t>(i)].msg_len;
      if (run_lengths_[static_cast<size_t>(i)] > 1) {
        counters_.tx_segmented.Add(run_lengths_[static_cast<size_t>(i)]);
      }
    }
    counters_.tx_packets.Add(packets);
    counters_.tx_bytes.Add(bytes);
    Retire(packets);
  }
  return true;
}

void UdpTransmitter::Reset() {
  counters_.tx_lost.Add(waiting());
  Retire(waiting());
  singles_ = 0;
  trial_ = false;
  source_ports_.CloseAll();
}

}  // namespace rocegw::port
