// SPDX-License-Identifier: Apache-2.0
// Memory operations of a burst: executed here for trusted sessions, by the session's copier thread
// for others. In both cases they are reported to their queue pairs in order.
#include <algorithm>
#include <cstring>
#include <utility>

#include "gateway/worker/worker.h"

namespace rocegw::worker {
namespace {

// A full burst is executed at once, so that one system call moves many pieces.
constexpr size_t kFlushAt = 1024;
// Limit of staged bytes of a session whose copier is busy; beyond it, nothing new is accepted from
// or for the session. Without the limit, single packets per round would fill the copier's ring at
// once, and a channel message that is refused in its middle must start afresh.
constexpr size_t kMostStaging = size_t{1} << 20;
// Limit of bytes in submitted batches of one session. Both limits together bound the heap that a
// session with blocked memory keeps (session/objects/session_costs.h).
constexpr size_t kMostInHand = size_t{1} << 20;

}  // namespace

void Worker::Access(transport::QpContext& qp, const memory::MemoryOp& op,
                    const transport::AccessTag& tag, port::TxPacket* fills) {
  WorkerSession& session = OwnerOf(qp);
  ListOps(session);
  session.ops.push_back(op);
  session.notes.push_back({tag, fills, op.buffer, 0});
  if (session.link.copier == nullptr) {
    // A read of shared pages needs no system call: executing it at once is a tenth faster than in a
    // batch. Writes are not faster (measured: bench_loop). Only if all earlier operations are done,
    // to keep the order.
    if (op.kind == memory::OpKind::kRead && op.direct != nullptr &&
        session.done_ahead + 1 == session.ops.size() &&
        session.link.space->Execute({&session.ops.back(), 1}, session.counts) == 1) {
      ++session.done_ahead;
    }
    if (session.ops.size() >= kFlushAt) FlushTrusted(session);
    return;
  }
  // The copier may run after the packet and the queue pair are destroyed, so it works on staged
  // bytes. Until the batch is submitted, `buffer` holds an offset.
  const size_t at = session.staging.size();
  session.staging.resize(at + op.length);
  if (op.kind == memory::OpKind::kWrite) {
    std::memcpy(session.staging.data() + at,
                op.buffer != nullptr ? op.buffer : reinterpret_cast<const uint8_t*>(&op.compare),
                op.length);
  }
  session.ops.back().buffer = reinterpret_cast<uint8_t*>(at);  // NOLINT(performance-no-int-to-ptr)
  session.ops.back().want_crc = false;
}

void Worker::ListOps(WorkerSession& session) {
  if (session.listed) return;
  session.listed = true;
  with_ops_.push_back(&session);
}

void Worker::FlushMemory() {
  scheduler_.Mark();
  // Reporting may queue further operations of the same session.
  for (size_t i = 0; i < with_ops_.size(); ++i) {
    WorkerSession& session = *with_ops_[i];
    session.listed = false;
    if (session.link.copier != nullptr) {
      SubmitToCopier(session);
    } else {
      while (!session.ops.empty()) FlushTrusted(session);
    }
    scheduler_.ChargeTo(*session.account);
  }
  // A session that could not submit has listed itself again.
  std::erase_if(with_ops_, [](const WorkerSession* session) { return !session->listed; });
}

void Worker::FlushTrusted(WorkerSession& session) {
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

void Worker::Count(const memory::MemoryCounts& counts) {
  counters_.memory_cross_operations.Add(counts.cross_operations);
  counters_.memory_cross_bytes.Add(counts.cross_bytes);
  counters_.memory_direct_operations.Add(counts.direct_operations);
  counters_.memory_direct_bytes.Add(counts.direct_bytes);
  counters_.memory_batch_events.Add();
}

void Worker::Report(std::span<AccessNote> notes, std::span<const memory::MemoryOp> ops) {
  for (size_t i = 0; i < notes.size(); ++i) {
    AccessNote& note = notes[i];
    if (note.fills != nullptr && i < ops.size() && ops[i].crc_valid) {
      note.fills->known_crc = {static_cast<size_t>(ops[i].buffer - note.fills->data), ops[i].length,
                               ops[i].crc};
    }
    const bool last_of_qp = i + 1 == notes.size() || notes[i + 1].tag.qp != note.tag.qp;
    const bool atomic = note.tag.purpose == transport::AccessPurpose::kAtomic;
    if (!last_of_qp && !atomic) continue;
    QpSlot* slot = Slot(note.tag.qp);
    if (slot == nullptr) continue;
    if (atomic) slot->qp->OnAtomicResult(note.tag, note.original);
    slot->qp->OnMemoryDone(*this, note.tag.ticket);
    AfterEvent(*slot, note.tag.qp);
  }
}

void Worker::ReportFault(WorkerSession& session, AccessNote& note) {
  // The packet must not leave with bytes that were never read.
  if (note.fills != nullptr) note.fills->length = 0;
  QpSlot* slot = Slot(note.tag.qp);
  if (slot == nullptr) return;
  // Queue pairs of a killed program stop silently, as hardware's do. Its memory is freed before its
  // socket closes, and a NAK would tell the peer that a request was wrong.
  if (session.link.space->Gone()) return Stop(session, "its process is gone");
  slot->qp->OnMemoryFault(*this, note.tag);
  slot->qp->OnMemoryDone(*this, note.tag.ticket);
  AfterEvent(*slot, note.tag.qp);
}

void Worker::SubmitToCopier(WorkerSession& session) {
  if (session.ops.empty() && session.held.empty() && session.reading.empty()) return;
  if (session.staging_in_hand >= kMostInHand) {
    session.backlogged = session.staging.size() >= kMostStaging;
    session.listed = true;
    return;
  }
  auto batch = std::make_unique<memory::Batch>();
  batch->staging.swap(session.staging);
  batch->ops.swap(session.ops);
  uint8_t* const staging = batch->staging.data();
  const size_t bytes = batch->staging.size();
  for (memory::MemoryOp& op : batch->ops) op.buffer = staging + reinterpret_cast<size_t>(op.buffer);
  CopierBatch mine;
  mine.notes.swap(session.notes);
  mine.packets.swap(session.held);
  mine.frames.swap(session.reading);
  if (session.link.copier->Submit(options_.index, batch)) {
    session.submitted.push_back(std::move(mine));
    ++session.batches_submitted;
    session.staging_in_hand += bytes;
    session.backlogged = false;
    return;
  }
  // The copier is full: take everything back for one larger batch.
  batch->ops.swap(session.ops);
  batch->staging.swap(session.staging);
  for (memory::MemoryOp& op : session.ops) {
    op.buffer =
        reinterpret_cast<uint8_t*>(op.buffer - staging);  // NOLINT(performance-no-int-to-ptr)
  }
  mine.notes.swap(session.notes);
  mine.packets.swap(session.held);
  mine.frames.swap(session.reading);
  session.backlogged = session.staging.size() >= kMostStaging;
  session.listed = true;
}

bool Worker::CollectFromCopiers() {
  bool busy = false;
  scheduler_.Mark();
  for (size_t s = 0; s < with_copier_.size(); ++s) {
    WorkerSession& session = *with_copier_[s];
    const bool submitted = !session.submitted.empty();
    while (!session.submitted.empty()) {
      const std::unique_ptr<memory::Batch> batch = session.link.copier->Collect(options_.index);
      if (batch == nullptr) break;
      busy = true;
      CopierBatch mine = std::move(session.submitted.front());
      session.submitted.pop_front();
      ++session.batches_collected;
      session.staging_in_hand -= batch->staging.size();
      Count(batch->counts);
      size_t next_failed = 0;
      for (size_t i = 0; i < mine.notes.size(); ++i) {
        AccessNote& note = mine.notes[i];
        const memory::MemoryOp& op = batch->ops[i];
        if (next_failed < batch->failed.size() && batch->failed[next_failed] == i) {
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
      outgoing_.insert(outgoing_.end(), mine.packets.begin(), mine.packets.end());
      session.packets_held -= mine.packets.size();
      for (channel::StagedFrame* const frame : mine.frames) frame->carrier->OnReady(*frame);
    }
    while (!session.late_replies.empty() &&
           session.late_replies.front().after <= session.batches_collected) {
      Reply(session.late_replies.front().cookie, {});
      session.late_replies.pop_front();
    }
    if (submitted) scheduler_.ChargeTo(*session.account);
  }
  return busy;
}

}  // namespace rocegw::worker
