// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/capture/capture_port.h"

#include <algorithm>

#include "gateway/port/steering.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/headers.h"

namespace rocegw::port {
namespace {

// Returns the queue pair that receives a datagram. The BTH of a channel frame names the channel,
// which queue pairs of many tenants share; the frame names the queue pair. Packets of the channel
// itself belong to no queue pair.
Qpn ReceiverOf(std::span<const uint8_t> datagram) {
  constexpr size_t kEndpoint = wire::kBthLength + 8;
  const bool frame = datagram.size() >= wire::kBthLength + wire::kFrameBaseLength &&
                     datagram[0] == static_cast<uint8_t>(wire::Opcode::kChannelFrame);
  if (!frame) return DestinationQpn(datagram);
  return Qpn{uint32_t{datagram[kEndpoint]} << 16 | uint32_t{datagram[kEndpoint + 1]} << 8 |
             datagram[kEndpoint + 2]};
}

}  // namespace
bool CapturePort::AnyActive() const {
  return std::any_of(taps_.begin(), taps_.end(),
                     [](const CaptureTap& tap) { return tap.active(); });
}

void CapturePort::Clear() {
  for (Record& record : records_) {
    record.blocks.clear();
    record.marks.clear();
  }
}

void CapturePort::Encode(const CaptureTap::Packet& packet) {
  for (size_t i = 0; i < taps_.size(); ++i) {
    Record& record = records_[i];
    Record::Mark mark = record.marks.empty() ? Record::Mark() : record.marks.back();
    if (!packet.datagram.empty() && taps_[i].active() && taps_[i].Encode(packet, record.blocks)) {
      mark = {record.blocks.size(), mark.packets + 1};
    }
    record.marks.push_back(mark);
  }
}

void CapturePort::Commit(size_t count) {
  if (count == 0) return;
  for (size_t i = 0; i < taps_.size(); ++i) {
    const Record::Mark& mark = records_[i].marks[count - 1];
    if (mark.packets != 0)
      (void)taps_[i].Commit(std::span(records_[i].blocks).first(mark.end), mark.packets);
  }
}

size_t CapturePort::Transmit(std::span<TxPacket* const> packets) {
  if (!AnyActive()) return inner_.Transmit(packets);
  // Encoded before the inner port owns the packets, committed once it is known how many it took.
  Clear();
  const PortLimits limits = inner_.limits();
  for (TxPacket* packet : packets) {
    CaptureTap::Packet captured{.direction = CaptureDirection::kOutbound,
                                .interface = interface_,
                                .qpn = packet->source_qpn,
                                .path = packet->path,
                                .ip_id = 0,
                                .datagram = {}};
    const size_t length = packet->length + wire::kIcrcLength;
    if (length <= limits.MaxDatagramTo(packet->path.destination)) {
      wire::SealIcrc(packet->path, 0, packet->data, packet->length, packet->known_crc);
      captured.datagram = {packet->data, length};
    }
    Encode(captured);
  }
  const size_t taken = inner_.Transmit(packets);
  Commit(taken);
  return taken;
}

size_t CapturePort::Receive(std::span<wire::RxDatagram> into) {
  const size_t count = inner_.Receive(into);
  if (count == 0 || !AnyActive()) return count;
  Clear();
  for (const wire::RxDatagram& datagram : into.first(count)) {
    const wire::RxMeta& meta = datagram.meta;
    uint16_t ip_id = meta.ip_id;
    // Recovers the ID if the port could not see it; a wrong ICRC is wrong for every ID.
    if (!meta.ip_id_known) (void)wire::VerifyIcrc(meta, datagram.bytes, &ip_id);
    const wire::Path path{.source = meta.source,
                          .destination = meta.destination,
                          .source_port = meta.source_port,
                          .traffic_class = meta.traffic_class,
                          .hop_limit = meta.hop_limit};
    Encode({.direction = CaptureDirection::kInbound,
            .interface = interface_,
            .qpn = ReceiverOf(datagram.bytes),
            .path = path,
            .ip_id = ip_id,
            .datagram = datagram.bytes});
  }
  Commit(count);
  return count;
}

}  // namespace rocegw::port
