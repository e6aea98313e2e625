// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/control/network_control.h"

#include <cerrno>
#include <cstring>

#include "gateway/wire/codec.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::worker {

ControlReply NetworkControl::Do(const SendMad& body) {
  if (body.device >= uses_.ports.size()) return Failed(ENODEV);
  port::TxPacket* const packet = uses_.transmit.Acquire(body.device);
  if (packet == nullptr) return Failed(EAGAIN);
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kUdSendOnly;
  headers.bth.dest_qpn = body.destination;
  headers.bth.psn = Psn(gsi_psn_++);
  headers.deth = {wire::kGsiQkey, kGsiQpn};
  const size_t header_length = wire::EncodeHeaders(headers, packet->data);
  std::memcpy(packet->data + header_length, body.mad.data(), body.mad.size());
  packet->length = static_cast<uint32_t>(header_length + body.mad.size());
  packet->known_crc = {};
  packet->source_qpn = kGsiQpn;
  packet->path = body.path;
  uses_.transmit.Add({packet, body.device});
  uses_.counters.mad_tx_packets.Add();
  return {};
}

ControlReply NetworkControl::Do(const UsePorts& body) {
  if (body.ports.size() != uses_.ports.size()) return Failed(EINVAL);
  uses_.ports = body.ports;
  return {};
}

ControlReply NetworkControl::Do(const UseChannels& body) {
  uses_.channels.Use(body.options, congestion_, policy_, uses_.round.now);
  return {};
}

ControlReply NetworkControl::Do(const NameMember& body) {
  uses_.channels.SetMember(body.peer, body.member);
  return {};
}

ControlReply NetworkControl::Do(const KnowPeer& body) {
  uses_.discovery.Know(body.peer, body.known);
  return {};
}

ControlReply NetworkControl::Do(const UseKeys& body) {
  uses_.channels.SetKeys(body.keys);
  return {};
}

ControlReply NetworkControl::Do(const Multicast& body) {
  if (!body.attached)
    return Failed(uses_.multicast.Detach(body.device, body.group, body.qpn) ? 0 : ENOENT);
  uses_.multicast.Attach(body.device, body.group, body.qpn);
  return {};
}

ControlReply NetworkControl::Do(const SnapshotChannels&) {
  ControlReply reply;
  reply.channels = uses_.channels.Snapshots();
  return reply;
}

ControlReply NetworkControl::Do(const SnapshotPeers&) {
  ControlReply reply;
  reply.peers = uses_.channels.Traffic();
  return reply;
}

}  // namespace rocegw::worker
