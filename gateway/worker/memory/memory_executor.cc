// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/memory/memory_executor.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rocegw::worker {
namespace {

// A full burst is executed at once, so that one system call moves many pieces.
constexpr size_t kFlushAt = 1024;
// Limit of the heap of operations of a session whose copier is busy; beyond it, nothing new is
// accepted from or for the session. Without the limit, single packets per round would fill the
// copier's ring at once, and a channel message that is refused in its middle must start afresh.
constexpr size_t kMostStaging = size_t{1} << 20;
// Limit of the heap of submitted batches of one session. Both limits together bound the heap that a
// session with blocked memory keeps (session/objects/session_costs.h).
constexpr size_t kMostInHand = size_t{1} << 20;
// A copier that has less than this takes a batch of any size, so that it does not run dry.
constexpr size_t kLittleInHand = kMostInHand / 4;

// Returns the heap of a number of operations: staged bytes, the operations, their notes, and
// replies and completions that wait for them.
size_t CostOf(size_t operations, size_t staged_bytes) {
  constexpr size_t kOfReply = 64;
  return staged_bytes + operations * (sizeof(memory::MemoryOp) + sizeof(AccessNote) + kOfReply);
}

}  // namespace

MemoryExecutor::MemoryExecutor(const Uses& uses)
    : uses_(uses), engine_(uses.engine, uses.counters) {}

void MemoryExecutor::AddSession(WorkerSession& session) {
  if (session.link.copier != nullptr) with_copier_.push_back(&session);
}

void MemoryExecutor::UseCopier(WorkerSession& session, memory::Copier& copier) {
  // Operations of queue pairs that were unlinked may be left.
  while (session.HasOps()) FlushTrusted(session);
  session.link.copier = &copier;
  with_copier_.push_back(&session);
}

void MemoryExecutor::RemoveSession(WorkerSession& session) {
  // The last frames of its queue pairs may have been queued in this round. A packet whose payload
  // was not read must not leave with what is in its buffer: Flush voids it.
  if (session.link.copier == nullptr)
    while (session.HasOps()) FlushTrusted(session);
  std::erase(with_ops_, &session);
  std::erase(with_copier_, &session);
  for (const CopierBatch& batch : session.submitted)
    for (const Outgoing& out : batch.packets) uses_.transmit.Release(out);
  for (const Outgoing& out : session.held) uses_.transmit.Release(out);
  held_.Remove(*session.account->of_pool, session.packets_held);
  for (const auto& late : session.late_replies) uses_.control.Reply(late.cookie, {});
}

void MemoryExecutor::Access(WorkerSession& session, const memory::MemoryOp& op,
                            const transport::AccessTag& tag, port::TxPacket* fills) {
  List(session);
  if (session.link.copier == nullptr && session.ops.empty() && engine_.Take(session, op, tag))
    return;
  session.ops.push_back(op);
  session.notes.push_back({.tag = tag, .fills = fills, .destination = op.buffer});
  if (session.link.copier == nullptr) {
    // A read of shared pages needs no system call: executing it at once is a tenth faster than in a
    // batch. Writes are not faster (measured: bench_loop). Only if all earlier operations are done,
    // to keep the order.
    if (op.kind == memory::OpKind::kRead && op.direct != nullptr && session.engine.ops.empty() &&
        session.done_ahead + 1 == session.ops.size() &&
        session.link.space->Execute({&session.ops.back(), 1}, session.counts) == 1) {
      ++session.done_ahead;
    }
    if (session.ops.size() >= kFlushAt) FlushTrusted(session);
    return;
  }
  // The copier may run after the packet and the queue pair are destroyed, so it works on staged
  // bytes. Until the batch is submitted, their place is an offset.
  const size_t at = session.staging.size();
  session.staging.resize(at + op.length);
  if (op.kind == memory::OpKind::kWrite) {
    std::memcpy(session.staging.data() + at,
                op.buffer != nullptr ? op.buffer : reinterpret_cast<const uint8_t*>(&op.compare),
                op.length);
  }
  session.notes.back().staged_at = at;
  session.ops.back().want_crc = false;
}

void MemoryExecutor::Send(WorkerSession& session, const Outgoing& out) {
  if (session.link.copier == nullptr || !session.MustWait()) return uses_.transmit.Add(out);
  session.held.push_back(out);
  ++session.packets_held;
  held_.Add(*session.account->of_pool);
  List(session);
}

void MemoryExecutor::Send(WorkerSession& session, channel::StagedFrame& frame) {
  if (!session.MustWait()) return frame.carrier->OnReady(frame);
  session.reading.push_back(&frame);
  List(session);
}

void MemoryExecutor::List(WorkerSession& session) {
  if (session.listed) return;
  session.listed = true;
  with_ops_.push_back(&session);
}

FlushedMemory MemoryExecutor::Flush() {
  engine_.BeginBurst(0);
  uses_.scheduler.Mark();
  // Reporting may queue further operations of the same session.
  for (size_t i = 0; i < with_ops_.size(); ++i) {
    WorkerSession& session = *with_ops_[i];
    session.listed = false;
    if (session.link.copier != nullptr) {
      SubmitToCopier(session);
    } else {
      while (session.HasOps()) FlushTrusted(session);
    }
    uses_.scheduler.ChargeTo(*session.account);
  }
  // A session that could not submit has listed itself again.
  std::erase_if(with_ops_, [](const WorkerSession* session) { return !session->listed; });
  return {};
}

void MemoryExecutor::FlushEngine(WorkerSession& session) {
  engine_.Finish(session);
  EngineOps done;
  std::swap(done, session.engine);
  // As in FlushTrusted: nothing is acknowledged for a program that was killed.
  if (session.link.space->Gone()) {
    for (AccessNote& note : done.notes) ReportFault(session, note);
  } else {
    Report(done.notes, {});
  }
  if (!session.engine.ops.empty()) return;
  // Keeps the capacity for the next burst.
  done.ops.clear();
  done.notes.clear();
  done.heads.clear();
  std::swap(done, session.engine);
}

void MemoryExecutor::FlushTrusted(WorkerSession& session) {
  // Reports may queue operations, which must not overtake the others.
  engine_.BeginBurst(0);
  if (!session.engine.ops.empty()) FlushEngine(session);
  std::vector<memory::MemoryOp> ops;
  std::vector<AccessNote> notes;
  ops.swap(session.ops);
  notes.swap(session.notes);
  memory::MemoryCounts counts = std::exchange(session.counts, {});
  const size_t done_ahead = std::exchange(session.done_ahead, 0);
  for (size_t i = done_ahead; i < ops.size(); ++i) {
    if (ops[i].is_atomic()) ops[i].buffer = reinterpret_cast<uint8_t*>(&notes[i].original);
    if (ops[i].buffer == nullptr) ops[i].buffer = reinterpret_cast<uint8_t*>(&ops[i].compare);
  }
  Report(std::span(notes).first(done_ahead), std::span(ops).first(done_ahead));
  for (size_t begin = done_ahead; begin < ops.size();) {
    const std::span rest = std::span(ops).subspan(begin);
    const size_t done = session.link.space->Execute(rest, counts);
    Report(std::span(notes).subspan(begin, done), rest.first(done));
    begin += done;
    if (begin < ops.size()) ReportFault(session, notes[begin++]);
  }
  Count(counts);
  // Keeps the capacity for the next burst.
  if (session.ops.empty()) {
    ops.clear();
    notes.clear();
    session.ops.swap(ops);
    session.notes.swap(notes);
  }
}

void MemoryExecutor::Count(const memory::MemoryCounts& counts) {
  uses_.counters.memory_cross_operations.Add(counts.cross_operations);
  uses_.counters.memory_cross_bytes.Add(counts.cross_bytes);
  uses_.counters.memory_direct_operations.Add(counts.direct_operations);
  uses_.counters.memory_direct_bytes.Add(counts.direct_bytes);
  uses_.counters.memory_device_operations.Add(counts.device_operations);
  uses_.counters.memory_device_bytes.Add(counts.device_bytes);
  uses_.counters.memory_batch_events.Add();
}

void MemoryExecutor::Report(std::span<AccessNote> notes, std::span<const memory::MemoryOp> ops) {
  for (size_t i = 0; i < notes.size(); ++i) {
    AccessNote& note = notes[i];
    if (note.fills != nullptr && i < ops.size() && ops[i].crc_valid) {
      note.fills->known_crc = {static_cast<size_t>(ops[i].buffer - note.fills->data), ops[i].length,
                               ops[i].crc};
    }
    const bool last_of_qp = i + 1 == notes.size() || notes[i + 1].tag.qp != note.tag.qp;
    const bool atomic = note.tag.purpose == transport::AccessPurpose::kAtomic;
    if (!last_of_qp && !atomic) continue;
    QpSlot* const slot = uses_.qps.Find(note.tag.qp);
    if (slot == nullptr) continue;
    if (atomic) slot->qp->OnAtomicResult(note.tag, note.original);
    slot->qp->OnMemoryDone(uses_.outbox, note.tag.ticket);
    uses_.activity.AfterEvent(*slot, note.tag.qp);
  }
}

void MemoryExecutor::ReportFault(WorkerSession& session, AccessNote& note) {
  // The packet must not leave with bytes that were never read.
  if (note.fills != nullptr) note.fills->length = 0;
  QpSlot* const slot = uses_.qps.Find(note.tag.qp);
  if (slot == nullptr) return;
  // Queue pairs of a killed program stop silently, as hardware's do. Its memory is freed before its
  // socket closes, and a NAK would tell the peer that a request was wrong.
  if (session.link.space->Gone()) return uses_.sessions.Stop(session, "its process is gone");
  slot->qp->OnMemoryFault(uses_.outbox, note.tag);
  slot->qp->OnMemoryDone(uses_.outbox, note.tag.ticket);
  uses_.activity.AfterEvent(*slot, note.tag.qp);
}

void MemoryExecutor::SubmitToCopier(WorkerSession& session) {
  if (session.ops.empty() && session.held.empty() && session.reading.empty()) return;
  const size_t cost = CostOf(session.ops.size(), session.staging.size());
  if (session.heap_in_hand >= kLittleInHand && session.heap_in_hand + cost > kMostInHand) {
    session.backlogged = cost >= kMostStaging;
    session.listed = true;
    return;
  }
  auto batch = std::make_unique<memory::Batch>();
  batch->staging.swap(session.staging);
  batch->ops.swap(session.ops);
  CopierBatch mine;
  mine.notes.swap(session.notes);
  mine.packets.swap(session.held);
  mine.frames.swap(session.reading);
  for (size_t i = 0; i < mine.notes.size(); ++i)
    batch->ops[i].buffer = batch->staging.data() + mine.notes[i].staged_at;
  if (session.link.copier->Submit(uses_.worker, batch)) {
    session.submitted.push_back(std::move(mine));
    ++session.batches_submitted;
    session.heap_in_hand += cost;
    session.backlogged = false;
    return;
  }
  // The copier is full: take everything back for one larger batch.
  batch->ops.swap(session.ops);
  batch->staging.swap(session.staging);
  mine.notes.swap(session.notes);
  mine.packets.swap(session.held);
  mine.frames.swap(session.reading);
  session.backlogged = cost >= kMostStaging;
  session.listed = true;
}

bool MemoryExecutor::Collect() {
  bool busy = false;
  uses_.scheduler.Mark();
  for (size_t s = 0; s < with_copier_.size(); ++s) {
    WorkerSession& session = *with_copier_[s];
    const bool submitted = !session.submitted.empty();
    busy |= Collect(session);
    while (!session.late_replies.empty() &&
           session.late_replies.front().after <= session.batches_collected) {
      uses_.control.Reply(session.late_replies.front().cookie, {});
      session.late_replies.pop_front();
    }
    if (submitted) uses_.scheduler.ChargeTo(*session.account);
  }
  return busy;
}

bool MemoryExecutor::Collect(WorkerSession& session) {
  bool collected = false;
  while (!session.submitted.empty()) {
    const std::unique_ptr<memory::Batch> batch = session.link.copier->Collect(uses_.worker);
    if (batch == nullptr) break;
    collected = true;
    CollectBatch(session, *batch);
  }
  return collected;
}

void MemoryExecutor::CollectBatch(WorkerSession& session, memory::Batch& batch) {
  CopierBatch mine = std::move(session.submitted.front());
  session.submitted.pop_front();
  ++session.batches_collected;
  session.heap_in_hand -= CostOf(batch.ops.size(), batch.staging.size());
  Count(batch.counts);
  size_t next_failed = 0;
  for (size_t i = 0; i < mine.notes.size(); ++i) {
    AccessNote& note = mine.notes[i];
    const memory::MemoryOp& op = batch.ops[i];
    if (next_failed < batch.failed.size() && batch.failed[next_failed] == i) {
      ++next_failed;
      ReportFault(session, note);
      continue;
    }
    if (op.kind == memory::OpKind::kRead) {
      std::memcpy(note.destination, op.buffer, op.length);
    } else if (op.kind != memory::OpKind::kWrite) {
      std::memcpy(&note.original, op.buffer, sizeof note.original);
    }
    Report({&note, 1}, {});
  }
  uses_.transmit.Add(mine.packets);
  session.packets_held -= mine.packets.size();
  held_.Remove(*session.account->of_pool, mine.packets.size());
  for (channel::StagedFrame* const frame : mine.frames) frame->carrier->OnReady(*frame);
}

bool MemoryExecutor::idle() const {
  return with_ops_.empty() && std::ranges::all_of(with_copier_, [](const WorkerSession* session) {
           return !session->MustWait() && session->late_replies.empty();
         });
}

void MemoryExecutor::ReplyWhenUnused(SessionId id, uint64_t cookie, bool known) {
  WorkerSession* const session = uses_.sessions.Find(id);
  if (session != nullptr && session->link.copier != nullptr) {
    const uint64_t after = session->batches_submitted + (session->ops.empty() ? 0 : 1);
    if (session->batches_collected < after) {
      session->late_replies.push_back({cookie, after});
      return;
    }
  }
  uses_.control.Reply(cookie, Failed(known ? 0 : ENOENT));
}

}  // namespace rocegw::worker
