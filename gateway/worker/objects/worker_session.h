// SPDX-License-Identifier: Apache-2.0
// Session as one worker keeps it: its doorbells, its completion queues, and the memory operations
// of the current burst. Belongs to the worker.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/channel/staged_carrier.h"
#include "gateway/memory/copier.h"
#include "gateway/shm/doorbell.h"
#include "gateway/transport/outbox.h"
#include "gateway/transport/queues/shared_receives.h"
#include "gateway/transport/xrc_domain.h"
#include "gateway/verbs/completion_queue.h"
#include "gateway/worker/control/control_message.h"
#include "gateway/worker/schedule/scheduler.h"
#include "gateway/worker/send/outgoing.h"

namespace rocegw::worker {

// Report of a memory operation when it is done, and the packet that it fills.
struct AccessNote {
  transport::AccessTag tag;
  port::TxPacket* fills = nullptr;
  uint8_t* destination = nullptr;  // untrusted sessions: target of a read after staging
  size_t staged_at = 0;            // untrusted sessions: offset of the bytes in the staging
  uint64_t original = 0;           // atomics: the original value
};

// Operations that the copier thread executes, with the packets and frames that wait for them.
// Collected in the order of submission.
struct CopierBatch {
  std::vector<AccessNote> notes;
  std::vector<Outgoing> packets;
  std::vector<channel::StagedFrame*> frames;
};

// Direct writes of a burst that uses a copy engine, in their order. By index: the operation, its
// note, and the state of all its bytes but the last ones (memory::WriteTail).
struct EngineOps {
  enum class Head : uint8_t { kInFlight, kForProcessor, kWritten, kFailed };
  std::vector<memory::MemoryOp> ops;
  std::vector<AccessNote> notes;
  std::vector<Head> heads;
  uint32_t in_flight = 0;
  // Range of addresses that holds all destinations.
  const uint8_t* begin = nullptr;
  const uint8_t* end = nullptr;
};

struct DoorbellPage {
  rocegw_doorbell_page* memory = nullptr;
  std::vector<SlotHandle> by_bit;
};

struct WorkerSession {
  // Returns true if a new packet or frame must leave after earlier ones that wait.
  bool MustWait() const {
    return !ops.empty() || !held.empty() || !reading.empty() || !submitted.empty();
  }

  // Returns true if the burst has operations that a trusted session has not reported yet.
  bool HasOps() const { return !ops.empty() || !engine.ops.empty(); }

  LinkSession link;
  SessionIndex index;          // in the worker's table
  Account* account = nullptr;  // its pool's account in the scheduler
  std::vector<DoorbellPage> pages;
  transport::PeerTable peers;  // peers that its endpoints may name
  std::unordered_map<uint32_t, std::unique_ptr<verbs::CompletionQueue>> cqs;  // by client handle
  // By client handle.
  std::unordered_map<uint32_t, std::unique_ptr<transport::SharedReceives>> srqs;
  // Set if the session is an XRC domain instead of a client; else nullptr.
  std::unique_ptr<transport::XrcDomain> domain;
  bool failed = false;  // stopped (SessionTable::Stop): the session is ignored
  // Scanned every iteration; otherwise need_wakeup is set and the client writes its eventfd.
  bool active = true;
  TimePoint last_active;
  shm::DoorbellPace pace;
  metrics::DurationHistogram operations;  // since the last report to its pool

  // Operations of this burst:
  std::vector<memory::MemoryOp> ops;
  std::vector<AccessNote> notes;
  size_t done_ahead = 0;  // number of operations executed already
  memory::MemoryCounts counts;
  bool listed = false;  // in the worker's list of sessions with operations
  EngineOps engine;     // operations before those of `ops`

  // Untrusted sessions only:
  std::vector<uint8_t> staging;
  size_t heap_in_hand = 0;     // heap of submitted batches
  bool backlogged = false;     // the copier takes nothing now, so nothing is taken from the session
  std::vector<Outgoing> held;  // packets that must leave after the operations above
  size_t packets_held = 0;     // in `held` and `submitted`
  std::vector<channel::StagedFrame*> reading;  // frames that wait in the same way
  std::vector<channel::StagedCarrier*> staged;
  channel::StagedOfSession staged_shared;
  std::deque<CopierBatch> submitted;
  uint64_t batches_submitted = 0;
  uint64_t batches_collected = 0;
  struct LateReply {
    uint64_t cookie = 0;
    uint64_t after = 0;  // value of batches_collected
  };
  std::deque<LateReply> late_replies;
};

}  // namespace rocegw::worker
