// SPDX-License-Identifier: Apache-2.0
// A session as one worker keeps it: its doorbells, its completion queues, and the memory operations
// of the current burst. Only the worker touches it.
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
#include "gateway/transport/shared_receives.h"
#include "gateway/transport/xrc_domain.h"
#include "gateway/verbs/completion_queue.h"
#include "gateway/worker/control_message.h"
#include "gateway/worker/scheduler.h"

namespace rocegw::worker {

// What is told when a memory operation is done, and the packet it fills.
struct AccessNote {
  transport::AccessTag tag;
  port::TxPacket* fills = nullptr;
  uint8_t* destination = nullptr;  // untrusted sessions: where a read goes after its staging
  uint64_t original = 0;           // atomics
};

// In a timer's handle: the index is that of a channel.
inline constexpr uint32_t kChannelTimer = 1u << 31;
// In the handle of who waits for a channel, or owns a frame there: the index is that of a staged
// carrier.
inline constexpr uint32_t kStagedHandle = 1u << 30;

// A packet on its way out, in order.
struct Outgoing {
  port::TxPacket* packet = nullptr;
  uint32_t device = 0;
  // Who pays for its transmission; nullptr: nobody, as for a channel's own packets.
  Account* account = nullptr;
};

// Operations handed to the copier thread, with the packets and the frames that wait behind them.
// Collected in the order of submission.
struct CopierBatch {
  std::vector<AccessNote> notes;
  std::vector<Outgoing> packets;
  std::vector<channel::StagedFrame*> frames;
};

struct DoorbellPage {
  rocegw_doorbell_page* memory = nullptr;
  std::vector<SlotHandle> by_bit;
};

struct WorkerSession {
  // A packet or a frame of it that comes now leaves behind others.
  bool MustWait() const {
    return !ops.empty() || !held.empty() || !reading.empty() || !submitted.empty();
  }

  LinkSession link;
  Account* account = nullptr;  // the scheduler's, of its pool
  std::vector<DoorbellPage> pages;
  transport::PeerTable peers;  // whom its endpoints may name
  std::unordered_map<uint32_t, std::unique_ptr<verbs::CompletionQueue>> cqs;  // by client handle
  std::unordered_map<uint32_t, std::unique_ptr<transport::SharedReceives>> srqs;  // same
  // It is an XRC domain rather than a client's; else nullptr.
  std::unique_ptr<transport::XrcDomain> domain;
  bool failed = false;  // stopped (Worker::Stop): nothing of it is looked at any more
  // Scanned every iteration; otherwise its need_wakeup is set and the eventfd tells.
  bool active = true;
  TimePoint last_active;
  shm::DoorbellPace pace;
  metrics::DurationHistogram operations;  // since its pool was told last

  // Operations of this burst.
  std::vector<memory::MemoryOp> ops;
  std::vector<AccessNote> notes;
  size_t done_ahead = 0;  // so many of them are executed already
  memory::MemoryCounts counts;
  bool listed = false;  // in the worker's list of sessions with operations

  // Untrusted sessions only.
  std::vector<uint8_t> staging;
  bool backlogged = false;                     // the copier takes no more for now: neither do we
  std::vector<Outgoing> held;                  // packets that must leave after the operations above
  size_t packets_held = 0;                     // there and in `submitted`
  std::vector<channel::StagedFrame*> reading;  // frames that wait in the same way
  std::vector<channel::StagedCarrier*> staged;
  channel::StagedOfSession staged_shared;
  std::deque<CopierBatch> submitted;
  uint64_t batches_submitted = 0;
  uint64_t batches_collected = 0;
  struct LateReply {
    uint64_t cookie = 0;
    uint64_t after = 0;  // batches_collected
  };
  std::deque<LateReply> late_replies;
};

}  // namespace rocegw::worker
