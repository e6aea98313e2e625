// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/capture/capture_port.h"

#include <algorithm>

#include "gateway/port/steering.h"
#include "gateway/wire/channel_bundle.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/headers.h"

namespace rocegw::port {
namespace {

constexpr size_t kDestinationAt = wire::kBthLength + 8;
constexpr size_t kSourceAt = wire::kBthLength + 12;

bool IsFrame(std::span<const uint8_t> datagram) {
  return datagram.size() >= wire::kBthLength + wire::kFrameBaseLength &&
         datagram[0] == static_cast<uint8_t>(wire::Opcode::kChannelFrame);
}

bool IsBundle(std::span<const uint8_t> datagram) {
  return datagram.size() >= wire::kBthLength + wire::kIcrcLength &&
         datagram[0] == static_cast<uint8_t>(wire::Opcode::kChannelBundle);
}

Qpn QpnAt(std::span<const uint8_t> datagram, size_t at) {
  return Qpn{uint32_t{datagram[at]} << 16 | uint32_t{datagram[at + 1]} << 8 | datagram[at + 2]};
}

// Returns the queue pair that receives a datagram. The BTH of a channel frame names the channel,
// which queue pairs of many tenants share; the frame names the queue pair. Packets of the channel
// itself belong to no queue pair.
Qpn ReceiverOf(std::span<const uint8_t> datagram) {
  return IsFrame(datagram) ? QpnAt(datagram, kDestinationAt) : DestinationQpn(datagram);
}

// Encodes the entries of a bundle that the tap's filter wants, each as a datagram of its own: a
// bundle has frames of other queue pairs, and perhaps of other tenants. Returns their number.
uint64_t EncodeEntries(const CaptureTap& tap, const CaptureTap::Packet& bundle,
                       std::vector<uint8_t>& blocks) {
  constexpr size_t kOutside = wire::kBthLength + wire::kIcrcLength;
  std::span<const uint8_t> rest =
      bundle.datagram.subspan(wire::kBthLength, bundle.datagram.size() - kOutside);
  if (wire::CheckBundle(rest) != metrics::DropReason::kNone) return 0;
  const bool outbound = bundle.direction == CaptureDirection::kOutbound;
  uint64_t wanted = 0;
  wire::BundleEntry entry;
  std::vector<uint8_t> alone;
  while (wire::TakeEntry(rest, entry)) {
    const size_t length = wire::UnbundleTo(bundle.datagram, entry, alone);
    wire::SealIcrc(bundle.path, bundle.ip_id, alone.data(), length);
    CaptureTap::Packet packet = bundle;
    packet.datagram = alone;
    packet.qpn = IsFrame(alone) ? QpnAt(alone, outbound ? kSourceAt : kDestinationAt) : Qpn{};
    wanted += tap.Encode(packet, blocks) ? 1 : 0;
  }
  return wanted;
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
    if (!packet.datagram.empty() && taps_[i].active()) {
      const bool split = IsBundle(packet.datagram) && taps_[i].filter().SelectsQueuePairs();
      const uint64_t count = split ? EncodeEntries(taps_[i], packet, record.blocks)
                             : taps_[i].Encode(packet, record.blocks) ? 1
                                                                      : 0;
      if (count != 0) mark = {record.blocks.size(), mark.packets + count};
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
      packet->Flatten();
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
