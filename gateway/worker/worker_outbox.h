// SPDX-License-Identifier: Apache-2.0
// Effects of a worker's queue pairs (transport/outbox.h), each handed to the part of the worker
// that carries it out. Belongs to one worker.
#pragma once

#include "gateway/transport/outbox.h"
#include "gateway/worker/channels/channel_bindings.h"
#include "gateway/worker/memory/memory_executor.h"
#include "gateway/worker/objects/async_events.h"
#include "gateway/worker/objects/request_times.h"
#include "gateway/worker/round.h"

namespace rocegw::worker {

class WorkerOutbox final : public transport::Outbox {
 public:
  // Parts of the worker that the outbox uses; they must outlive it.
  struct Uses {
    SessionTable& sessions;
    Scheduler& scheduler;
    TransmitQueue& transmit;
    MemoryExecutor& memory;
    StagedFrames& staged;
    ChannelBindings& bindings;
    AsyncEvents& events;
    RequestTimes& times;
    const Round& round;
    metrics::WorkerCounters& counters;
  };
  explicit WorkerOutbox(const Uses& uses) : uses_(uses) {}

  port::TxPacket* NewPacket(transport::QpContext& qp) override;
  void Send(transport::QpContext& qp, port::TxPacket* packet) override;
  port::TxPacket* NewFrame(transport::QpContext& qp, flow::Carrier& carrier,
                           uint32_t payload) override;
  void SendFrame(transport::QpContext& qp, flow::Carrier& carrier, port::TxPacket* packet) override;
  void Access(transport::QpContext& qp, const memory::MemoryOp& op, const transport::AccessTag& tag,
              port::TxPacket* fills) override {
    uses_.memory.Access(uses_.sessions.Of(qp), op, tag, fills);
  }
  void CopyPayloads() override { uses_.transmit.CopyPayloads(); }
  flow::Carrier* Reach(transport::QpContext& qp, const transport::Peer& peer,
                       uint32_t beside) override {
    return uses_.bindings.Reach(qp, peer, beside);
  }
  flow::Carrier* Beside(transport::QpContext& qp, const flow::Carrier& carrier,
                        uint32_t paths) override {
    return uses_.bindings.Beside(qp, carrier, paths);
  }
  bool MayAccess(transport::QpContext& qp) override {
    const WorkerSession& session = uses_.sessions.Of(qp);
    return !session.failed && !session.backlogged;
  }
  bool MayRecord(transport::QpContext& qp) override {
    return RecordHeap::MayGrow(*uses_.sessions.Of(qp).account->of_pool);
  }
  void Event(transport::QpContext& qp, verbs::AsyncEvent event) override {
    uses_.events.Raise(qp, event);
  }
  void Completed(transport::QpContext& qp, Duration took) override {
    uses_.times.Add(uses_.sessions.Of(qp), took);
  }
  void Fault(transport::QpContext& qp, const char* reason) override;
  TimePoint now() const override { return uses_.round.now; }

 private:
  const Uses uses_;
};

}  // namespace rocegw::worker
