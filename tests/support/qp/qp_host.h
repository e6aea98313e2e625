// SPDX-License-Identifier: Apache-2.0
// Side of a connection for tests: a queue pair with rings, a completion queue and memory in this
// process; the test makes each step. Sent packets are collected for the test's network. Memory
// operations are executed by Settle, so a test can check pending state before.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "gateway/transport/queue_pair.h"
#include "gateway/transport/queues/shared_receives.h"
#include "gateway/transport/xrc_domain.h"
#include "gateway/verbs/mr_table.h"
#include "tests/support/qp/ring_end.h"

namespace rocegw::testing {

struct WirePacket {
  std::vector<uint8_t> bytes;  // BTH .. ICRC
  wire::RxMeta meta;
};

class QpHost : public transport::Outbox {
 public:
  struct Options : RingOptions {
    wire::Gid gid = wire::Gid::FromV4(0xC0000201);
    size_t memory_bytes = 1 << 20;
    flow::CcConfig cc;
    const verbs::GidTable* gids = nullptr;    // for UD
    const verbs::PeerRules* peers = nullptr;  // for UD
    uint8_t port_mtu = 5;
    transport::SharedReceives* srq = nullptr;  // daemon's part of `shared`
    transport::XrcDomain* domain = nullptr;    // domain of an XRC receiver
  };
  explicit QpHost(const Options& options);
  ~QpHost() override;

  // Connects both ends to each other and moves them to RTS.
  static void Connect(QpHost& a, QpHost& b, uint8_t path_mtu, uint32_t psn_a, uint32_t psn_b,
                      const verbs::QpAttributes& limits = DefaultLimits());
  // Default attributes: the peer has all rights.
  static verbs::QpAttributes DefaultLimits();
  // Perform one transition of a connected queue pair each. `want` has all attributes up to RTS.
  int ToInit(verbs::QpAttributes want);
  int ToRtr(verbs::QpAttributes want);
  int ToRts(verbs::QpAttributes want);
  int ToState(verbs::QpState state);
  int Modify(uint32_t mask, const verbs::QpAttributes& attributes) {
    return qp_->Modify(*this, mask, attributes, now_);
  }

  // Memory: one region with all rights. Addresses begin at kBase.
  static constexpr uint64_t kBase = 0x100000;
  std::vector<uint8_t>& memory() { return memory_; }
  uint32_t key() const { return key_; }
  uint64_t Address(uint64_t offset) const { return kBase + offset; }
  // Makes further accesses to [from, from + length) fault.
  void Poison(uint64_t from, uint64_t length) {
    poison_from_ = kBase + from;
    poison_to_ = poison_from_ + length;
  }
  verbs::MrTable& regions() { return regions_; }

  // Steps of the client library.
  struct Sge {
    uint64_t offset;
    uint32_t length;
  };
  void PostSend(const rocegw_send_wqe& wqe, const std::vector<Sge>& sges,
                const std::vector<uint8_t>* inline_payload = nullptr);
  void PostReceive(uint64_t wr_id, const std::vector<Sge>& sges);
  std::vector<rocegw_cqe> Poll() { return rings_.Poll(); }
  // Channels beside the bound one, by path.
  std::vector<flow::Carrier*> beside;
  flow::Carrier* Beside(transport::QpContext&, const flow::Carrier&, uint32_t paths) override {
    return paths <= beside.size() ? beside[paths - 1] : nullptr;
  }
  // For endpoints: carriers to the peer, by path.
  std::vector<flow::Carrier*> reach;
  // Carriers that replace them for other peers, with one path each.
  std::vector<flow::Carrier*> elsewhere;
  flow::Carrier* Reach(transport::QpContext&, const transport::Peer& peer,
                       uint32_t paths) override {
    for (flow::Carrier* const carrier : elsewhere)
      if (carrier->peer() == peer.path.destination) return paths == 0 ? carrier : nullptr;
    return paths < reach.size() ? reach[paths] : nullptr;
  }
  RingEnd& rings() { return rings_; }

  // Steps of the worker.
  void Deliver(const WirePacket& packet, TimePoint now);
  void Pump(TimePoint now);
  void Deadline(TimePoint now);
  // Executes all queued memory operations, reports them, and moves packets to `sent`.
  void Settle();
  // The same with the oldest `count` operations only; packets that wait for others stay.
  void RunMemory(size_t count);
  // Executes all operations of one session's memory before those of others.
  void RunMemoryOf(SessionId session);
  // Moves sent packets to `sent`, up to the first one that waits for memory.
  void Collect();
  struct QueuedOp {
    memory::MemoryOp op;
    transport::AccessTag tag;
    port::TxPacket* fills;
    std::vector<uint8_t> copy;  // bytes of a write
    SessionId session;
  };
  const std::deque<QueuedOp>& queued() const { return ops_; }
  std::deque<WirePacket> sent;

  // Writes the state of the queue pair, reads it into a fresh one and destroys the old one, as if
  // another gateway took over. Not while memory operations are queued. With the environment
  // variable ROCEGW_HAND_OVER, Deliver, Pump and Deadline do so first.
  void HandOver();

  transport::QueuePair& qp() { return *qp_; }
  transport::QpContext& context() { return qp_->context(); }
  metrics::WorkerCounters& counters() { return *counters_; }
  std::vector<verbs::AsyncEvent> events;
  bool may_access = true;
  bool may_record = true;
  std::vector<const char*> faults;
  metrics::DropReason last_drop = metrics::DropReason::kNone;
  // Number of packets that the port provides before it has none.
  uint32_t port_budget = 1u << 30;

  // transport::Outbox
  port::TxPacket* NewPacket(transport::QpContext&) override;
  void Send(transport::QpContext&, port::TxPacket* packet) override;
  void Access(transport::QpContext&, const memory::MemoryOp& op, const transport::AccessTag& tag,
              port::TxPacket* fills) override;
  bool MayAccess(transport::QpContext&) override { return may_access; }
  bool MayRecord(transport::QpContext&) override { return may_record; }
  void Event(transport::QpContext&, verbs::AsyncEvent event) override { events.push_back(event); }
  void Fault(transport::QpContext&, const char* reason) override { faults.push_back(reason); }
  TimePoint now() const override { return now_; }
  // Sets the time of what follows; Deliver, Pump and Deadline do so too.
  void At(TimePoint now) { now_ = now; }

 private:
  RingEnd::Sges Keyed(const std::vector<Sge>& sges) const;

  struct Packet {
    port::TxPacket tx;
    std::vector<uint8_t> room;
    uint32_t unread = 0;  // pending operations that fill the packet
    bool dropped = false;
  };
  bool Execute(QueuedOp& queued, uint64_t& original);
  void Finish(QueuedOp queued);
  std::unique_ptr<transport::QueuePair> MakeQp();
  void HandOverIfAsked();

  Options options_;
  TimePoint now_;
  std::vector<uint8_t> memory_;
  uint32_t key_;
  uint64_t poison_from_ = 1;
  uint64_t poison_to_ = 0;
  RingEnd rings_;
  verbs::MrTable regions_;
  std::unique_ptr<metrics::WorkerCounters> counters_;
  const transport::WorkerTables tables_;
  std::unique_ptr<verbs::CompletionQueue> cq_;
  verbs::QpConfig config_;
  std::unique_ptr<transport::QueuePair> qp_;
  std::deque<QueuedOp> ops_;
  std::deque<Packet*> outgoing_;
};

}  // namespace rocegw::testing
