// SPDX-License-Identifier: Apache-2.0
// Unreliable datagrams (IBTA 9.8.3): a message is one packet, to the destination of its address
// vector. Received payload is preceded by 40 bytes with the IP header.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/port/steering.h"
#include "gateway/transport/queue_pair.h"
#include "gateway/transport/queues/completion.h"
#include "gateway/transport/queues/shared_receives.h"
#include "gateway/verbs/work_request_state.h"
#include "gateway/wire/crc/icrc.h"

namespace rocegw::transport {
namespace {

using metrics::DropReason;
using verbs::WcStatus;

constexpr uint32_t kGrhLength = 40;

// Writes the received IP header: IPv6 in full, IPv4 in the last 20 bytes (IBTA A17.4.5.3).
void WriteGrh(const wire::RxMeta& meta, size_t udp_payload, uint8_t* out) {
  std::memset(out, 0, kGrhLength);
  const auto udp_length = static_cast<uint16_t>(udp_payload + 8);
  if (meta.source.IsV4()) {
    uint8_t* ip = out + 20;
    const auto total = static_cast<uint16_t>(udp_length + 20);
    ip[0] = 0x45;
    ip[1] = meta.traffic_class;
    ip[2] = static_cast<uint8_t>(total >> 8);
    ip[3] = static_cast<uint8_t>(total);
    ip[4] = static_cast<uint8_t>(meta.ip_id >> 8);
    ip[5] = static_cast<uint8_t>(meta.ip_id);
    ip[6] = 0x40;
    ip[8] = meta.hop_limit;
    ip[9] = 17;
    std::memcpy(ip + 12, meta.source.bytes.data() + 12, 4);
    std::memcpy(ip + 16, meta.destination.bytes.data() + 12, 4);
    uint32_t sum = 0;
    for (int i = 0; i < 20; i += 2) sum += static_cast<uint32_t>(ip[i]) << 8 | ip[i + 1];
    sum = (sum & 0xFFFF) + (sum >> 16);
    const auto checksum = static_cast<uint16_t>(~((sum & 0xFFFF) + (sum >> 16)));
    ip[10] = static_cast<uint8_t>(checksum >> 8);
    ip[11] = static_cast<uint8_t>(checksum);
    return;
  }
  out[0] = static_cast<uint8_t>(0x60 | meta.traffic_class >> 4);
  out[1] = static_cast<uint8_t>(meta.traffic_class << 4);
  out[4] = static_cast<uint8_t>(udp_length >> 8);
  out[5] = static_cast<uint8_t>(udp_length);
  out[6] = 17;
  out[7] = meta.hop_limit;
  std::memcpy(out + 8, meta.source.bytes.data(), 16);
  std::memcpy(out + 24, meta.destination.bytes.data(), 16);
}

class UdQueuePair final : public QueuePair {
 public:
  explicit UdQueuePair(const verbs::QpConfig& config)
      : QueuePair(config),
        sges_(std::max<uint32_t>(1, config.max_send_sge)),
        grh_(config.rq_entries) {}

  uint32_t outstanding() const override { return static_cast<uint32_t>(sends_.size()); }
  Psns psns() const override { return {psn_, psn_, Psn()}; }
  void GiveBackReceives() override {
    for (size_t i = 0; qp_.shares_receives && i < receives_.size(); ++i)
      qp_.srq->GiveBack(receives_[i].cqe.ring_slot);
  }

 protected:
  bool DoReset() override {
    sends_.clear();
    GiveBackReceives();
    receives_.clear();
    held_ = false;
    const bool sends = qp_.sq().Discard();
    const bool receives = PostedReceives{qp_}.Discard();
    return sends && receives;
  }
  void DoReadyToSend(TimePoint) override { psn_ = qp_.attributes.sq_psn; }
  bool Drained() const override { return sends_.empty() && !held_; }
  void DoFlush(Outbox& outbox) override;
  PumpResult DoPump(Outbox& outbox, TimePoint now, PumpBudget& budget) override;
  PumpResult PumpLast(Outbox& outbox, TimePoint now, PumpBudget& budget) override {
    return DoPump(outbox, now, budget);
  }
  DropReason DoPacket(Outbox& outbox, const wire::RxPacket& packet, TimePoint now) override;
  void DoMemoryDone(Outbox& outbox) override;
  void DoMemoryFault(Outbox& outbox, const AccessTag& tag) override;
  void DoHandOver(hand_over::StateStream& state, flow::CarrierNames&) override {
    // Completions wait for memory operations only.
    state.Require(sends_.empty() && receives_.empty(), "datagrams are being completed");
    state(psn_, held_);
    if (!held_) return;
    verbs::HandOver(state, held_request_, qp_.payload);
    verbs::HandOver(state, std::span(sges_).first(qp_.config.max_send_sge),
                    held_request_.sge_count);
  }

 private:
  struct Pending {
    rocegw_cqe cqe{};
    uint32_t ticket = 0;
    bool silent = false;  // unsignaled success
  };

  enum class Sent : uint8_t { kYes, kPortFull };
  WcStatus Check(const verbs::DatagramRequest& request) const;
  Sent SendOne(Outbox& outbox, const verbs::DatagramRequest& request, WcStatus& status);
  void FinishSend(Outbox& outbox, const verbs::DatagramRequest& request, WcStatus status);
  void Receive(Outbox& outbox, const wire::RxPacket& packet, const verbs::ReceiveRequest& request);

  Psn psn_;
  std::vector<rocegw_sge> sges_;
  std::array<rocegw_sge, verbs::kMaxSge> receive_sges_{};
  // IP headers to be placed, by receive slot. They must live until the receive completes.
  std::deque<std::array<uint8_t, kGrhLength>> grh_;
  // A request that waits because the port had no buffer.
  bool held_ = false;
  verbs::DatagramRequest held_request_;
  GrowingRing<Pending> sends_;
  GrowingRing<Pending> receives_;
};

WcStatus UdQueuePair::Check(const verbs::DatagramRequest& request) const {
  static_assert(verbs::GidTable::kSize > UINT8_MAX, "each index of an address vector is in it");
  const bool known_source =
      qp_.rare.gids != nullptr && !qp_.rare.gids->entries[request.av.sgid_index].IsZero();
  if (!known_source) return WcStatus::kLocalQpOperation;
  // A packet cannot cross address families.
  wire::Gid destination;
  std::memcpy(destination.bytes.data(), request.av.dgid, destination.bytes.size());
  if (destination.IsV4() != qp_.rare.gids->entries[request.av.sgid_index].IsV4())
    return WcStatus::kLocalQpOperation;
  if (qp_.rare.peers != nullptr && !qp_.rare.peers->Allow(destination))
    return WcStatus::kLocalQpOperation;
  if (request.length > verbs::MtuBytes(qp_.rare.port_mtu)) return WcStatus::kLocalLength;
  const bool keyed = request.ring_payload == nullptr || (request.flags & ROCEGW_WQE_COPIED) != 0;
  if (keyed && !verbs::CheckKeys(qp_.worker->regions, qp_.config.send_keys(),
                                 std::span(sges_).first(request.sge_count), 0)) {
    return WcStatus::kLocalProtection;
  }
  return WcStatus::kSuccess;
}

UdQueuePair::Sent UdQueuePair::SendOne(Outbox& outbox, const verbs::DatagramRequest& request,
                                       WcStatus& status) {
  status = Check(request);
  if (status != WcStatus::kSuccess) return Sent::kYes;
  port::TxPacket* packet = outbox.NewPacket(qp_);
  if (packet == nullptr) return Sent::kPortFull;
  wire::Headers headers;
  const bool immediate = request.opcode == verbs::SendOpcode::kSendImm;
  headers.bth.opcode = immediate ? wire::Opcode::kUdSendOnlyImm : wire::Opcode::kUdSendOnly;
  headers.bth.pad_count = static_cast<uint8_t>(-request.length & 3);
  headers.bth.dest_qpn = request.remote_qpn;
  headers.bth.psn = psn_;
  headers.bth.solicited = (request.flags & ROCEGW_WQE_SOLICITED) != 0;
  // A Q_Key with its top bit set selects the queue pair's own Q_Key (IBTA 10.2.5).
  headers.deth = {(request.remote_qkey >> 31) != 0 ? qp_.attributes.qkey : request.remote_qkey,
                  qp_.config.qpn};
  headers.immediate = request.immediate;
  psn_ = psn_ + 1;
  wire::Path path;
  path.source = qp_.rare.gids->entries[request.av.sgid_index];
  std::memcpy(path.destination.bytes.data(), request.av.dgid, 16);
  path.traffic_class = request.av.traffic_class;
  path.hop_limit = request.av.hop_limit == 0 ? 64 : request.av.hop_limit;
  path.source_port =
      port::SourcePort(port::PathHash(path.source, path.destination, 0), request.remote_qpn);
  packet->path = path;
  const size_t header_length = wire::EncodeHeaders(headers, packet->data);
  uint8_t* body = packet->data + header_length;
  std::memset(body + request.length, 0, headers.bth.pad_count);
  packet->length = static_cast<uint32_t>(header_length) + request.length + headers.bth.pad_count;
  packet->known_crc = {};
  if (request.ring_payload != nullptr) {
    const uint32_t crc = wire::CrcCopy(0, body, request.ring_payload, request.length);
    packet->known_crc = {header_length, request.length, crc};
    qp_.worker->counters.memory_ring_operations.Add();
  } else {
    (void)verbs::WalkPieces(
        qp_.worker->regions, qp_.config.send_keys(), std::span(sges_).first(request.sge_count), 0,
        0, request.length, [&](const verbs::Piece& piece) {
          const memory::MemoryOp op{.kind = memory::OpKind::kRead,
                                    .length = piece.length,
                                    .address = piece.address,
                                    .direct = piece.direct,
                                    .buffer = body + piece.offset};
          outbox.Access(qp_, op,
                        {qp_.handle, ++qp_.tickets_issued, AccessPurpose::kSendPayload,
                         headers.bth.psn, request.ring_slot},
                        packet);
        });
  }
  outbox.Send(qp_, packet);
  qp_.CountBytesSent(request.length);
  return Sent::kYes;
}

void UdQueuePair::FinishSend(Outbox& outbox, const verbs::DatagramRequest& request,
                             WcStatus status) {
  rocegw_cqe cqe = MakeCompletion(qp_, status, request.wr_id, request.ring_slot);
  cqe.opcode = static_cast<uint8_t>(verbs::WcOpcode::kSend);
  cqe.byte_length = request.length;
  const bool signaled = qp_.config.signal_all || (request.flags & ROCEGW_WQE_SIGNALED) != 0;
  sends_.push_back({cqe, qp_.tickets_issued, status == WcStatus::kSuccess && !signaled});
  DoMemoryDone(outbox);
  // IBTA 10.2.2.4: a failed send stops the send queue. As most devices do, this enters the error
  // state.
  if (status != WcStatus::kSuccess) (void)qp_.EnterError();
}

PumpResult UdQueuePair::DoPump(Outbox& outbox, TimePoint, PumpBudget& budget) {
  if (qp_.state() != verbs::QpState::kRts) return PumpResult::kIdle;
  while (budget.left()) {
    if (!held_) {
      const auto look = qp_.sq().Check();
      if (look == shm::WorkQueue::Look::kFault)
        outbox.Fault(qp_, "send queue producer index out of range");
      if (look != shm::WorkQueue::Look::kReady) return PumpResult::kIdle;
      const uint8_t* slot = qp_.sq().Slot();
      const uint32_t index = qp_.sq().Fetch();
      qp_.worker->counters.wqe_send_requests.Add();
      const WcStatus parsed =
          verbs::ParseDatagram(qp_.config, qp_.payload, slot, index, held_request_, sges_);
      if (parsed != WcStatus::kSuccess) {
        qp_.worker->counters.wqe_bad_requests.Add();
        FinishSend(outbox, held_request_, parsed);
        return PumpResult::kIdle;
      }
    }
    WcStatus status = WcStatus::kSuccess;
    held_ = SendOne(outbox, held_request_, status) == Sent::kPortFull;
    if (held_) return PumpResult::kMore;
    budget.Take(held_request_.length);
    FinishSend(outbox, held_request_, status);
    if (qp_.state() != verbs::QpState::kRts) return PumpResult::kIdle;
  }
  return PumpResult::kMore;
}

DropReason UdQueuePair::DoPacket(Outbox& outbox, const wire::RxPacket& packet, TimePoint) {
  if (packet.traits->service != wire::Service::kUd) return DropReason::k_wrong_service;
  if (!qp_.receives()) return DropReason::k_qp_state;
  if (packet.headers.deth.qkey != qp_.attributes.qkey) return DropReason::k_wrong_qkey;
  if (qp_.rare.peers != nullptr && !qp_.rare.peers->Allow(packet.meta.source))
    return DropReason::k_peer_not_allowed;
  PostedReceives posted{qp_};
  if (posted.Check(outbox) != shm::WorkQueue::Look::kReady) return DropReason::k_ud_no_receive;
  verbs::ReceiveRequest request;
  const uint8_t* slot = posted.Slot();
  const uint32_t index = posted.number();
  WcStatus status = verbs::ParseReceive(qp_.config, slot, index, request, receive_sges_);
  if (status == WcStatus::kSuccess &&
      !verbs::CheckKeys(qp_.worker->regions, qp_.receive_keys(),
                        std::span(receive_sges_).first(request.sge_count),
                        verbs::kAccessLocalWrite)) {
    status = WcStatus::kLocalProtection;
  }
  if (status == WcStatus::kSuccess && packet.payload.size() + kGrhLength > request.capacity) {
    // IBTA 9.8.3.2.2: the receive is kept for the next datagram.
    return DropReason::k_ud_too_long;
  }
  posted.Fetch(outbox);
  if (status != WcStatus::kSuccess) {
    receives_.push_back(
        {MakeCompletion(qp_, status, request.wr_id, index), qp_.tickets_issued, false});
    DoMemoryDone(outbox);
    (void)qp_.EnterError();
    outbox.Event(qp_, verbs::AsyncEvent::kQpFatal);
    return DropReason::k_operation_error;
  }
  Receive(outbox, packet, request);
  return DropReason::kNone;
}

void UdQueuePair::Receive(Outbox& outbox, const wire::RxPacket& packet,
                          const verbs::ReceiveRequest& request) {
  const auto length = static_cast<uint32_t>(packet.payload.size());
  // Slots that a shared receive queue gained by resizing have no payload areas.
  const bool later = qp_.shares_receives && request.ring_slot >= qp_.payload_slots();
  const uint32_t slot = later ? request.ring_slot : request.ring_slot & (qp_.payload_slots() - 1);
  const size_t udp_payload =
      packet.traits->header_length + ((length + 3) & ~3u) + wire::kIcrcLength;
  rocegw_cqe cqe = MakeCompletion(qp_, WcStatus::kSuccess, request.wr_id, request.ring_slot);
  cqe.opcode = static_cast<uint8_t>(verbs::WcOpcode::kReceive);
  cqe.byte_length = length + kGrhLength;
  cqe.source_qpn = packet.headers.deth.source_qpn.value;
  cqe.flags = ROCEGW_CQE_GRH;
  if (packet.meta.source.IsV4()) cqe.flags |= ROCEGW_CQE_IPV4;
  if (packet.traits->has_immediate) {
    cqe.flags |= ROCEGW_CQE_WITH_IMM;
    cqe.imm_or_rkey = packet.headers.immediate;
  }
  if (packet.headers.bth.solicited) cqe.flags |= ROCEGW_CQE_SOLICITED;
  if (!later && length + kGrhLength <= qp_.config.rq_payload_stride) {
    uint8_t* out =
        qp_.payload.rq_payload + static_cast<size_t>(slot) * qp_.config.rq_payload_stride;
    WriteGrh(packet.meta, udp_payload, out);
    std::memcpy(out + kGrhLength, packet.payload.data(), length);
    cqe.flags |= ROCEGW_CQE_PAYLOAD_IN_RING;
    qp_.worker->counters.memory_ring_operations.Add();
  } else {
    if (slot >= grh_.size()) grh_.resize(slot + 1);
    WriteGrh(packet.meta, udp_payload, grh_[slot].data());
    const auto place = [&](uint32_t offset, const uint8_t* bytes, uint32_t count) {
      (void)verbs::WalkPieces(
          qp_.worker->regions, qp_.receive_keys(),
          std::span(receive_sges_).first(request.sge_count), verbs::kAccessLocalWrite, offset,
          count, [&](const verbs::Piece& piece) {
            const memory::MemoryOp op{.kind = memory::OpKind::kWrite,
                                      .length = piece.length,
                                      .address = piece.address,
                                      .direct = piece.direct,
                                      .buffer = const_cast<uint8_t*>(bytes) + piece.offset};
            outbox.Access(qp_, op,
                          {qp_.handle, ++qp_.tickets_issued, AccessPurpose::kReceive,
                           packet.headers.bth.psn, request.ring_slot},
                          nullptr);
          });
    };
    place(0, grh_[slot].data(), kGrhLength);
    place(kGrhLength, packet.payload.data(), length);
  }
  qp_.CountBytesReceived(length);
  receives_.push_back({cqe, qp_.tickets_issued, false});
  DoMemoryDone(outbox);
}

void UdQueuePair::DoMemoryDone(Outbox& outbox) {
  while (!sends_.empty() && qp_.IsDone(sends_.front().ticket)) {
    const Pending done = sends_.front();
    sends_.pop_front();
    qp_.sq().Release(done.cqe.ring_slot + 1);
    if (done.silent) {
      qp_.CountSendCompleted();
    } else if (!PushSend(qp_, outbox, done.cqe)) {
      (void)qp_.EnterError();
    }
  }
  while (!receives_.empty() && qp_.IsDone(receives_.front().ticket)) {
    const Pending done = receives_.front();
    receives_.pop_front();
    if (!qp_.shares_receives) qp_.rq().Release(done.cqe.ring_slot + 1);
    if (!PushReceive(qp_, outbox, done.cqe)) (void)qp_.EnterError();
  }
  if (qp_.state() == verbs::QpState::kError && receives_.empty())
    PostedReceives{qp_}.ReportLast(outbox);
}

void UdQueuePair::DoMemoryFault(Outbox&, const AccessTag& tag) {
  qp_.worker->counters.memory_fault_operations.Add();
  GrowingRing<Pending>& queue = tag.purpose == AccessPurpose::kReceive ? receives_ : sends_;
  for (size_t i = 0; i < queue.size(); ++i) {
    if (queue[i].cqe.ring_slot != tag.request) continue;
    queue[i].cqe.status = static_cast<uint8_t>(WcStatus::kLocalProtection);
    queue[i].silent = false;
  }
  (void)qp_.EnterError();
}

void UdQueuePair::DoFlush(Outbox& outbox) {
  if (held_) {
    held_ = false;
    sends_.push_back(
        {MakeCompletion(qp_, WcStatus::kFlush, held_request_.wr_id, held_request_.ring_slot),
         qp_.tickets_issued, false});
  }
  while (qp_.sq().Check() == shm::WorkQueue::Look::kReady) {
    const uint8_t* slot = qp_.sq().Slot();
    const uint32_t index = qp_.sq().Fetch();
    (void)verbs::ParseDatagram(qp_.config, qp_.payload, slot, index, held_request_, sges_);
    sends_.push_back({MakeCompletion(qp_, WcStatus::kFlush, held_request_.wr_id, index),
                      qp_.tickets_issued, false});
  }
  // Flushes receives of its own only: those of a shared receive queue belong to others as well.
  while (qp_.rq().Check() == shm::WorkQueue::Look::kReady) {
    verbs::ReceiveRequest request;
    const uint8_t* slot = qp_.rq().Slot();
    const uint32_t index = qp_.rq().Fetch();
    (void)verbs::ParseReceive(qp_.config, slot, index, request, receive_sges_);
    receives_.push_back(
        {MakeCompletion(qp_, WcStatus::kFlush, request.wr_id, index), qp_.tickets_issued, false});
  }
  DoMemoryDone(outbox);
}

}  // namespace

std::unique_ptr<QueuePair> MakeUdQueuePair(const verbs::QpConfig& config) {
  return std::make_unique<UdQueuePair>(config);
}

}  // namespace rocegw::transport
