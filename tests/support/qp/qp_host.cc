// SPDX-License-Identifier: Apache-2.0
#include "tests/support/qp/qp_host.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "gateway/hand_over/state_stream.h"
#include "gateway/memory/direct_copy.h"
#include "gateway/transport/endpoint/endpoint_queue_pair.h"
#include "gateway/wire/codec.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/describe/describe.h"
#include "tests/support/qp/carrier_addresses.h"

namespace rocegw::testing {

QpHost::QpHost(const Options& options)
    : options_(options),
      memory_(options.memory_bytes),
      key_(0x1000 + options.qpn),
      rings_(options),
      counters_(std::make_unique<metrics::WorkerCounters>()),
      tables_{regions_, *counters_} {
  verbs::RegionConfig region;
  region.key = MemoryKey{key_};
  region.session = SessionId{1};
  region.pd = 1;
  region.access = verbs::kAccessLocalWrite | verbs::kAccessRemoteRead | verbs::kAccessRemoteWrite |
                  verbs::kAccessRemoteAtomic | verbs::kAccessFlushGlobal;
  region.iova = kBase;
  region.address = kBase;
  region.length = memory_.size();
  EXPECT_TRUE(regions_.Link(region));

  cq_ = std::make_unique<verbs::CompletionQueue>(rings_.Cq());
  config_ = rings_.Qp();
  config_.gids = options_.gids;
  config_.peers = options_.peers;
  config_.port_mtu = options_.port_mtu;
  qp_ = MakeQp();
}

std::unique_ptr<transport::QueuePair> QpHost::MakeQp() {
  const verbs::QpConfig& config = config_;
  std::unique_ptr<transport::QueuePair> made;
  if (options_.type == verbs::QpType::kRc || options_.type == verbs::QpType::kXrcSend) {
    made = transport::MakeRcQueuePair(config, options_.cc);
  } else if (options_.type == verbs::QpType::kXrcReceive) {
    made = transport::MakeXrcTarget(config, options_.cc, *options_.domain);
  } else if (options_.type == verbs::QpType::kUc) {
    made = transport::MakeUcQueuePair(config);
  } else if (options_.type == verbs::QpType::kEndpoint) {
    made = transport::MakeEndpoint(config);
  } else {
    made = transport::MakeUdQueuePair(config);
  }
  transport::QpContext& context = made->context();
  context.send_cq = context.recv_cq = cq_.get();
  context.TakeReceivesFrom(options_.srq);
  context.worker = &tables_;
  return made;
}

void QpHost::HandOver() {
  const transport::QpContext& old = qp_->context();
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  CarrierAddresses names;
  hand_over::StateStream out(bytes, now_, versions);
  qp_->HandOver(out, names);
  ASSERT_TRUE(out.ok()) << out.failure();
  std::unique_ptr<transport::QueuePair> fresh = MakeQp();
  fresh->context().handle = old.handle;
  fresh->context().owner = old.owner;
  fresh->context().peers = old.peers;
  hand_over::StateStream in(bytes, now_);
  fresh->HandOver(in, names);
  ASSERT_TRUE(in.ok() && in.at_end()) << (in.ok() ? "not at the end" : in.failure());
  qp_ = std::move(fresh);
}

void QpHost::HandOverIfAsked() {
  static const bool asked = std::getenv("ROCEGW_HAND_OVER") != nullptr;
  const transport::QpContext& qp = qp_->context();
  if (asked && ops_.empty() && qp.tickets_issued == qp.tickets_done) HandOver();
}

QpHost::~QpHost() {
  for (Packet* packet : outgoing_) delete packet;
}

verbs::QpAttributes QpHost::DefaultLimits() {
  verbs::QpAttributes a;
  a.access = verbs::kAccessRemoteRead | verbs::kAccessRemoteWrite | verbs::kAccessRemoteAtomic |
             verbs::kAccessFlushGlobal;
  a.max_rd_atomic = a.max_dest_rd_atomic = 4;
  a.timeout = 14;
  a.retry_count = 7;
  a.rnr_retry = 7;
  a.min_rnr_timer = 1;
  return a;
}

int QpHost::ToInit(verbs::QpAttributes want) {
  want.state = verbs::QpState::kInit;
  return Modify(
      verbs::kAttrState | verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrAccessFlags, want);
}

int QpHost::ToRtr(verbs::QpAttributes want) {
  want.state = verbs::QpState::kRtr;
  uint32_t mask = verbs::kAttrState | verbs::kAttrAv | verbs::kAttrPathMtu | verbs::kAttrDestQpn |
                  verbs::kAttrRqPsn;
  if (options_.type == verbs::QpType::kRc || options_.type == verbs::QpType::kXrcReceive)
    mask |= verbs::kAttrMaxDestRdAtomic | verbs::kAttrMinRnrTimer;
  return Modify(mask, want);
}

int QpHost::ToRts(verbs::QpAttributes want) {
  want.state = verbs::QpState::kRts;
  uint32_t mask = verbs::kAttrState | verbs::kAttrSqPsn;
  if (options_.type == verbs::QpType::kXrcReceive) mask |= verbs::kAttrTimeout;
  if (options_.type == verbs::QpType::kRc || options_.type == verbs::QpType::kXrcSend)
    mask |= verbs::kAttrTimeout | verbs::kAttrRetryCnt | verbs::kAttrRnrRetry |
            verbs::kAttrMaxQpRdAtomic;
  return Modify(mask, want);
}

int QpHost::ToState(verbs::QpState state) {
  verbs::QpAttributes want;
  want.state = state;
  return Modify(verbs::kAttrState, want);
}

void QpHost::Connect(QpHost& a, QpHost& b, uint8_t path_mtu, uint32_t psn_a, uint32_t psn_b,
                     const verbs::QpAttributes& limits) {
  const auto bring_up = [&](QpHost& self, QpHost& peer, uint32_t own_psn, uint32_t peer_psn) {
    verbs::QpAttributes want = limits;
    want.path_mtu = path_mtu;
    want.dest_qpn = Qpn{peer.options_.qpn};
    want.rq_psn = Psn(peer_psn);
    want.sq_psn = Psn(own_psn);
    want.path.source = self.options_.gid;
    want.path.destination = peer.options_.gid;
    ASSERT_EQ(self.ToInit(want), 0);
    ASSERT_EQ(self.ToRtr(want), 0);
    ASSERT_EQ(self.ToRts(want), 0);
  };
  bring_up(a, b, psn_a, psn_b);
  bring_up(b, a, psn_b, psn_a);
}

RingEnd::Sges QpHost::Keyed(const std::vector<Sge>& sges) const {
  RingEnd::Sges out;
  for (const Sge& sge : sges) out.push_back({kBase + sge.offset, sge.length, key_});
  return out;
}

void QpHost::PostSend(const rocegw_send_wqe& wqe, const std::vector<Sge>& sges,
                      const std::vector<uint8_t>* inline_payload) {
  ASSERT_TRUE(rings_.PostSend(wqe, Keyed(sges), inline_payload));
}

void QpHost::PostReceive(uint64_t wr_id, const std::vector<Sge>& sges) {
  ASSERT_TRUE(rings_.PostReceive(wr_id, Keyed(sges)));
}

void QpHost::Deliver(const WirePacket& packet, TimePoint now) {
  now_ = now;
  HandOverIfAsked();
  wire::RxPacket decoded;
  last_drop = wire::Decode({packet.meta, packet.bytes}, decoded);
  if (last_drop == metrics::DropReason::kNone) {
    last_drop = qp_->OnPacket(*this, decoded, now);
  }
  if (last_drop != metrics::DropReason::kNone) counters_->Drop(last_drop);
}

void QpHost::Pump(TimePoint now) {
  now_ = now;
  HandOverIfAsked();
  qp_->OnDoorbell(*this);
  const auto pump = [&] {
    transport::PumpBudget budget{64};
    return qp_->Pump(*this, now, budget);
  };
  while (pump() == transport::PumpResult::kMore && port_budget != 0) {
  }
}

void QpHost::Deadline(TimePoint now) {
  now_ = now;
  HandOverIfAsked();
  qp_->OnDeadline(*this, now);
}

port::TxPacket* QpHost::NewPacket(transport::QpContext&) {
  if (port_budget == 0) return nullptr;
  --port_budget;
  auto* packet = new Packet;
  packet->room.resize(9000);
  packet->tx.data = packet->room.data();
  packet->tx.cookie = packet;
  return &packet->tx;
}

void QpHost::Send(transport::QpContext&, port::TxPacket* packet) {
  outgoing_.push_back(static_cast<Packet*>(packet->cookie));
}

void QpHost::Access(transport::QpContext& qp, const memory::MemoryOp& op,
                    const transport::AccessTag& tag, port::TxPacket* fills) {
  QueuedOp queued{op, tag, fills, {}, qp.config.session};
  if (op.kind == memory::OpKind::kWrite) {
    const uint8_t* from =
        op.buffer != nullptr ? op.buffer : reinterpret_cast<const uint8_t*>(&op.compare);
    queued.copy.assign(from, from + op.length);
  }
  if (fills != nullptr) ++static_cast<Packet*>(fills->cookie)->unread;
  ops_.push_back(std::move(queued));
}

bool QpHost::Execute(QueuedOp& queued, uint64_t& original) {
  const memory::MemoryOp& op = queued.op;
  if (op.address < poison_to_ && op.address + op.length > poison_from_) return false;
  EXPECT_GE(op.address, kBase);
  EXPECT_LE(op.address + op.length, kBase + memory_.size());
  uint8_t* bytes = memory_.data() + (op.address - kBase);
  switch (op.kind) {
    case memory::OpKind::kRead:
      std::memcpy(op.buffer, bytes, op.length);
      break;
    case memory::OpKind::kWrite:
      std::memcpy(bytes, queued.copy.data(), op.length);
      break;
    case memory::OpKind::kCompareSwap:
    case memory::OpKind::kFetchAdd:
    case memory::OpKind::kAtomicStore:
    case memory::OpKind::kAtomicLoad:
    case memory::OpKind::kFetchAnd:
    case memory::OpKind::kFetchOr:
    case memory::OpKind::kFetchXor: {
      std::memcpy(&original, bytes, 8);
      const uint64_t value = memory::AtomicResult(op, original);
      std::memcpy(bytes, &value, 8);
      break;
    }
  }
  return true;
}

void QpHost::RunMemory(size_t count) {
  for (; count > 0 && !ops_.empty(); --count) {
    QueuedOp queued = std::move(ops_.front());
    ops_.pop_front();
    Finish(std::move(queued));
  }
  Collect();
}

void QpHost::RunMemoryOf(SessionId session) {
  for (size_t i = 0; i < ops_.size();) {
    if (ops_[i].session != session) {
      ++i;
      continue;
    }
    QueuedOp queued = std::move(ops_[i]);
    ops_.erase(ops_.begin() + static_cast<ptrdiff_t>(i));
    Finish(std::move(queued));
  }
  Collect();
}

void QpHost::Finish(QueuedOp queued) {
  Packet* packet = queued.fills == nullptr ? nullptr : static_cast<Packet*>(queued.fills->cookie);
  if (packet != nullptr) --packet->unread;
  uint64_t original = 0;
  if (!Execute(queued, original)) {
    if (packet != nullptr) packet->dropped = true;
    qp_->OnMemoryFault(*this, queued.tag);
  } else if (queued.tag.purpose == transport::AccessPurpose::kAtomic) {
    qp_->OnAtomicResult(queued.tag, original);
  }
  qp_->OnMemoryDone(*this, queued.tag.ticket);
}

void QpHost::Settle() {
  while (!ops_.empty()) RunMemory(ops_.size());
  Collect();
}

void QpHost::Collect() {
  while (!outgoing_.empty() && outgoing_.front()->unread == 0) {
    Packet* packet = outgoing_.front();
    outgoing_.pop_front();
    if (!packet->dropped && packet->tx.length != 0) {
      wire::SealIcrc(packet->tx.path, 7, packet->tx.data, packet->tx.length, packet->tx.known_crc);
      WirePacket out;
      out.bytes.assign(packet->tx.data, packet->tx.data + packet->tx.length + 4);
      out.meta.source = packet->tx.path.source;
      out.meta.destination = packet->tx.path.destination;
      out.meta.source_port = packet->tx.path.source_port;
      out.meta.traffic_class = packet->tx.path.traffic_class;
      out.meta.hop_limit = packet->tx.path.hop_limit;
      out.meta.ip_id_known = true;
      out.meta.ip_id = 7;
      sent.push_back(std::move(out));
    }
    delete packet;
  }
}

}  // namespace rocegw::testing
