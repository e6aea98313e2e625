// SPDX-License-Identifier: Apache-2.0
// Memory operations of a worker's sessions: executed here or by a copy engine for trusted sessions,
// by the session's copier thread for others, and always reported to their queue pairs in order.
// Packets and frames that the operations fill wait for them here. Belongs to one worker.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gateway/metrics/worker_counters.h"
#include "gateway/transport/outbox.h"
#include "gateway/worker/control/control_sender.h"
#include "gateway/worker/memory/engine_copies.h"
#include "gateway/worker/memory/flushed_memory.h"
#include "gateway/worker/objects/qp_activity.h"
#include "gateway/worker/objects/session_table.h"
#include "gateway/worker/send/held_packets.h"
#include "gateway/worker/send/transmit_queue.h"

namespace rocegw::worker {

class MemoryExecutor {
 public:
  // Parts of the worker that the executor uses; they must outlive it.
  struct Uses {
    WorkerIndex worker = 0;
    SessionTable& sessions;
    QpTable& qps;
    QpActivity& activity;
    Scheduler& scheduler;
    TransmitQueue& transmit;
    ControlSender& control;
    transport::Outbox& outbox;  // for queue pairs, when their operations are done
    metrics::WorkerCounters& counters;
    memory::CopySettings engine;
  };
  explicit MemoryExecutor(const Uses& uses);

  void AddSession(WorkerSession& session);
  // Executes the operations of a trusted session without queue pairs by a copier from now on.
  void UseCopier(WorkerSession& session, memory::Copier& copier);
  // Releases what waits for operations of the session, and answers the late replies.
  void RemoveSession(WorkerSession& session);

  // Begins a burst of at most so many datagrams, which ends with Flush, and notes that the next one
  // is being processed. Only bursts use the copy engine.
  void BeginBurst(size_t datagrams) { engine_.BeginBurst(static_cast<uint32_t>(datagrams)); }
  void NextDatagram() { engine_.NextDatagram(); }

  // Queues an operation (transport::Outbox::Access).
  void Access(WorkerSession& session, const memory::MemoryOp& op, const transport::AccessTag& tag,
              port::TxPacket* fills);
  // Sends a packet or frame behind the operations of its session that were queued before.
  void Send(WorkerSession& session, const Outgoing& out);
  void Send(WorkerSession& session, channel::StagedFrame& frame);
  // Returns how many of `packets` the session's queue pairs may send now; they may have to wait
  // here.
  uint32_t MaySend(const WorkerSession& session, uint32_t packets) const {
    if (session.link.copier == nullptr) return packets;
    if (session.backlogged || session.packets_held >= kMostHeld) return 0;
    return static_cast<uint32_t>(
        std::min<size_t>(packets, held_.MayAdd(*session.account->of_pool)));
  }

  // Executes what is queued, or hands it to the copiers. Until then operations refer to payloads of
  // received packets and to objects that a control message may remove.
  FlushedMemory Flush();
  // Takes what copiers have done. Returns true if there was something.
  bool Collect();

  // Returns true if no operation is queued or with a copier, and no packet or frame waits for one.
  bool idle() const;

  // Replies once no operation can use an unlinked object of the session: operations that were
  // checked against it may still be with the copier, or be part of its next batch.
  void ReplyWhenUnused(SessionId session, uint64_t cookie, bool known);

 private:
  // Limit of packets of one session that wait for its memory.
  static constexpr size_t kMostHeld = 128;

  void List(WorkerSession& session);
  void FlushTrusted(WorkerSession& session);
  void FlushEngine(WorkerSession& session);
  void SubmitToCopier(WorkerSession& session);
  bool Collect(WorkerSession& session);
  void CollectBatch(WorkerSession& session, memory::Batch& batch);
  void Report(std::span<AccessNote> notes, std::span<const memory::MemoryOp> ops);
  void ReportFault(WorkerSession& session, AccessNote& note);
  void Count(const memory::MemoryCounts& counts);

  const Uses uses_;
  EngineCopies engine_;
  std::vector<WorkerSession*> with_ops_;
  std::vector<WorkerSession*> with_copier_;
  HeldPackets held_;
};

}  // namespace rocegw::worker
