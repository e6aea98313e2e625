// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/capture_port.h"

#include "gateway/wire/headers.h"
#include "gateway/wire/icrc.h"

namespace rocegw::port {

size_t CapturePort::Transmit(std::span<TxPacket* const> packets) {
  if (!tap_.active()) return inner_.Transmit(packets);
  // Encoded before the inner port owns them, committed when it is known how many it took.
  blocks_.clear();
  ends_.clear();
  const size_t longest = inner_.limits().max_datagram;
  for (TxPacket* packet : packets) {
    const size_t length = packet->length + wire::kIcrcLength;
    if (length <= longest) {
      wire::SealIcrc(packet->path, 0, packet->data, packet->length, packet->known_crc);
      tap_.Encode({CaptureDirection::kOutbound, packet->path, 0, {packet->data, length}}, blocks_);
    }
    ends_.push_back(blocks_.size());
  }
  const size_t taken = inner_.Transmit(packets);
  if (taken != 0) (void)tap_.Commit(std::span(blocks_).first(ends_[taken - 1]), taken);
  return taken;
}

size_t CapturePort::Receive(std::span<wire::RxDatagram> into) {
  const size_t count = inner_.Receive(into);
  if (count == 0 || !tap_.active()) return count;
  blocks_.clear();
  for (const wire::RxDatagram& datagram : into.first(count)) {
    const wire::RxMeta& meta = datagram.meta;
    uint16_t ip_id = meta.ip_id;
    // Finds out the ID when the port could not see it; a wrong ICRC stays wrong with any.
    if (!meta.ip_id_known) (void)wire::VerifyIcrc(meta, datagram.bytes, &ip_id);
    const wire::Path path{.source = meta.source,
                          .destination = meta.destination,
                          .source_port = meta.source_port,
                          .traffic_class = meta.traffic_class,
                          .hop_limit = meta.hop_limit};
    tap_.Encode({CaptureDirection::kInbound, path, ip_id, datagram.bytes}, blocks_);
  }
  (void)tap_.Commit(blocks_, count);
  return count;
}

}  // namespace rocegw::port
