// SPDX-License-Identifier: Apache-2.0
#include "tests/support/qp/scripted_peer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "gateway/wire/codec.h"
#include "gateway/wire/crc/icrc.h"

namespace rocegw::testing {
namespace {

const wire::Gid kPeerGid = wire::Gid::FromV4(0xC0000202);
constexpr uint32_t kRemoteKey = 0x5EED;

}  // namespace

ScriptedPeer::ScriptedPeer(const Options& options)
    : options_(options), host_(options.host), attributes_(options.limits) {
  attributes_.path_mtu = options.mtu;
  attributes_.dest_qpn = Qpn{kQpn};
  attributes_.rq_psn = Psn(options.peer_psn);
  attributes_.sq_psn = Psn(options.host_psn);
  attributes_.path.source = options.host.gid;
  attributes_.path.destination = kPeerGid;
  attributes_.path.source_port = 0xD234;
  host_.Pump(now_);
  const auto reach = [&](verbs::QpState state, int error) {
    EXPECT_EQ(error, 0) << "on the way to " << static_cast<int>(state);
  };
  if (options.state == verbs::QpState::kReset) return;
  reach(verbs::QpState::kInit, host_.ToInit(attributes_));
  if (options.state == verbs::QpState::kInit) return;
  reach(verbs::QpState::kRtr, host_.ToRtr(attributes_));
  if (options.state == verbs::QpState::kRtr) return;
  reach(verbs::QpState::kRts, host_.ToRts(attributes_));
  if (options.state == verbs::QpState::kRts) return;
  reach(options.state, host_.ToState(options.state));
}

wire::Headers ScriptedPeer::To(wire::Opcode opcode, uint32_t psn, bool ack_request) const {
  wire::Headers headers;
  headers.bth.opcode = opcode;
  headers.bth.dest_qpn = Qpn{options_.host.qpn};
  headers.bth.psn = Psn(psn);
  headers.bth.ack_request = ack_request;
  return headers;
}

wire::Headers ScriptedPeer::Write(wire::Opcode opcode, uint32_t psn, uint64_t offset,
                                  uint32_t length, bool ack_request) const {
  wire::Headers headers = To(opcode, psn, ack_request);
  headers.reth = {host_.Address(offset), host_.key(), length};
  return headers;
}

wire::Headers ScriptedPeer::Read(uint32_t psn, uint64_t offset, uint32_t length) const {
  return Write(wire::Opcode::kRcReadRequest, psn, offset, length, true);
}

wire::Headers ScriptedPeer::CompareSwap(uint32_t psn, uint64_t offset, uint64_t compare,
                                        uint64_t swap) const {
  wire::Headers headers = To(wire::Opcode::kRcCompareSwap, psn, true);
  headers.atomic = {host_.Address(offset), host_.key(), swap, compare};
  return headers;
}

wire::Headers ScriptedPeer::FetchAdd(uint32_t psn, uint64_t offset, uint64_t add) const {
  wire::Headers headers = To(wire::Opcode::kRcFetchAdd, psn, true);
  headers.atomic = {host_.Address(offset), host_.key(), add, 0};
  return headers;
}

wire::Headers ScriptedPeer::Ack(uint32_t psn, uint8_t syndrome, uint32_t msn) const {
  wire::Headers headers = To(wire::Opcode::kRcAck, psn);
  headers.aeth = {syndrome, msn};
  return headers;
}

wire::Headers ScriptedPeer::ReadResponse(wire::Opcode opcode, uint32_t psn) const {
  wire::Headers headers = To(opcode, psn);
  headers.aeth = {wire::kSyndromeAck, 0};
  return headers;
}

wire::Headers ScriptedPeer::AtomicAck(uint32_t psn, uint64_t original) const {
  wire::Headers headers = To(wire::Opcode::kRcAtomicAck, psn);
  headers.aeth = {wire::kSyndromeAck, 0};
  headers.atomic_ack = original;
  return headers;
}

std::vector<uint8_t> ScriptedPeer::Bytes(size_t length, uint8_t first) {
  std::vector<uint8_t> bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<uint8_t>(first + i * 7 + i / 256);
  return bytes;
}

WirePacket ScriptedPeer::Build(wire::Headers headers, const std::vector<uint8_t>& payload) const {
  headers.bth.pad_count = static_cast<uint8_t>(-payload.size() & 3);
  WirePacket packet;
  packet.meta.source = kPeerGid;
  packet.meta.destination = options_.host.gid;
  packet.meta.source_port = 0xC123;
  packet.meta.ip_id_known = true;
  packet.meta.ip_id = 9;
  packet.bytes.resize(wire::kMaxHeaderLength);
  packet.bytes.resize(wire::EncodeHeaders(headers, packet.bytes.data()));
  packet.bytes.insert(packet.bytes.end(), payload.begin(), payload.end());
  packet.bytes.resize(packet.bytes.size() + headers.bth.pad_count);
  const size_t length = packet.bytes.size();
  packet.bytes.resize(length + wire::kIcrcLength);
  wire::Path path;
  path.source = packet.meta.source;
  path.destination = packet.meta.destination;
  path.source_port = packet.meta.source_port;
  wire::SealIcrc(path, packet.meta.ip_id, packet.bytes.data(), length);
  return packet;
}

metrics::DropReason ScriptedPeer::Deliver(const wire::Headers& headers,
                                          const std::vector<uint8_t>& payload) {
  return DeliverRaw(Build(headers, payload));
}

metrics::DropReason ScriptedPeer::DeliverMarked(const wire::Headers& headers,
                                                const std::vector<uint8_t>& payload) {
  WirePacket packet = Build(headers, payload);
  packet.meta.traffic_class |= wire::kEcnCe;
  return DeliverRaw(packet);
}

metrics::DropReason ScriptedPeer::DeliverRaw(const WirePacket& packet) {
  // The port's buffer is gone when the call returns: a copy that no one else holds shows it.
  const WirePacket copy = packet;
  host_.Deliver(copy, now_);
  return host_.last_drop;
}

std::vector<SentPacket> TakeSent(QpHost& host) {
  std::vector<SentPacket> out;
  for (const WirePacket& packet : host.sent) {
    wire::RxPacket decoded;
    EXPECT_EQ(wire::Decode({packet.meta, packet.bytes}, decoded), metrics::DropReason::kNone);
    out.push_back({decoded.headers,
                   {decoded.payload.begin(), decoded.payload.end()},
                   packet.meta.traffic_class,
                   packet.meta.destination});
  }
  host.sent.clear();
  return out;
}

std::vector<SentPacket> ScriptedPeer::TakeSent() {
  std::vector<SentPacket> out = testing::TakeSent(host_);
  for (const SentPacket& packet : out) {
    EXPECT_EQ(packet.destination, kPeerGid);
    EXPECT_EQ(packet.headers.bth.dest_qpn, Qpn{kQpn});
  }
  return out;
}

std::vector<SentPacket> ScriptedPeer::Out() {
  do {
    host_.Pump(now_);
    host_.Settle();
    host_.Pump(now_);
  } while (!host_.queued().empty());
  host_.Collect();
  return TakeSent();
}

std::vector<SentPacket> ScriptedPeer::OutWithoutMemory() {
  host_.Pump(now_);
  host_.Collect();
  return TakeSent();
}

SentPacket ScriptedPeer::OutOne() {
  std::vector<SentPacket> out = Out();
  EXPECT_EQ(out.size(), 1u);
  return out.empty() ? SentPacket{} : out.front();
}

std::vector<SentPacket> ScriptedPeer::Advance(Duration by) {
  const TimePoint end = now_ + by;
  std::vector<SentPacket> out;
  for (;;) {
    const TimePoint due = host_.qp().deadline();
    if (due > end) break;
    now_ = std::max(now_, due);
    host_.Deadline(now_);
    for (SentPacket& packet : Out()) out.push_back(std::move(packet));
    if (host_.qp().deadline() <= now_) {
      ADD_FAILURE() << "a deadline that was delivered is still due";
      break;
    }
  }
  now_ = end;
  return out;
}

void ScriptedPeer::Post(uint8_t opcode, uint64_t offset, uint32_t length, uint64_t remote,
                        uint16_t flags, uint64_t compare_add, uint64_t swap) {
  rocegw_send_wqe wqe{};
  wqe.wr_id = next_wr_id++;
  wqe.opcode = opcode;
  wqe.flags = flags;
  if (opcode != ROCEGW_WR_SEND) {
    wqe.u.rdma.remote_address = remote;
    wqe.u.rdma.rkey = kRemoteKey;
    wqe.u.rdma.compare_add = compare_add;
    wqe.u.rdma.swap = swap;
  }
  host_.PostSend(wqe, {{offset, length}});
}

void ScriptedPeer::PostSend(uint64_t offset, uint32_t length, uint16_t flags) {
  Post(ROCEGW_WR_SEND, offset, length, 0, flags);
}

void ScriptedPeer::PostWrite(uint64_t offset, uint32_t length, uint64_t remote, uint16_t flags) {
  Post(ROCEGW_WR_RDMA_WRITE, offset, length, remote, flags);
}

void ScriptedPeer::PostRead(uint64_t offset, uint32_t length, uint64_t remote, uint16_t flags) {
  Post(ROCEGW_WR_RDMA_READ, offset, length, remote, flags);
}

void ScriptedPeer::PostFetchAdd(uint64_t offset, uint64_t add, uint64_t remote, uint16_t flags) {
  Post(ROCEGW_WR_ATOMIC_FETCH_AND_ADD, offset, 8, remote, flags, add);
}

void ScriptedPeer::PostCompareSwap(uint64_t offset, uint64_t compare, uint64_t swap,
                                   uint64_t remote, uint16_t flags) {
  Post(ROCEGW_WR_ATOMIC_CMP_AND_SWP, offset, 8, remote, flags, compare, swap);
}

void ScriptedPeer::PostReceive(uint64_t offset, uint32_t length) {
  host_.PostReceive(next_wr_id++, {{offset, length}});
}

rocegw_cqe ScriptedPeer::PollOne() {
  const std::vector<rocegw_cqe> all = Poll();
  EXPECT_EQ(all.size(), 1u);
  rocegw_cqe none{};
  none.status = 0xFF;
  return all.empty() ? none : all.front();
}

}  // namespace rocegw::testing
