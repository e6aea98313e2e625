// SPDX-License-Identifier: Apache-2.0
// Staged carriers of a worker: the copier reads the payload of an untrusted session's frames before
// they enter a channel that others share (channel/staged_carrier.h). Belongs to one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gateway/channel/staged_carrier.h"
#include "gateway/flow/carrier_names.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/worker/objects/qp_activity.h"
#include "gateway/worker/objects/session_table.h"
#include "gateway/worker/send/transmit_queue.h"

namespace rocegw::worker {

class StagedFrames {
 public:
  // Parts of the worker that the object uses; they must outlive it.
  struct Uses {
    QpTable& qps;
    QpActivity& activity;
    Scheduler& scheduler;
    TransmitQueue& transmit;
    metrics::WorkerCounters& counters;
  };
  explicit StagedFrames(const Uses& uses) : uses_(uses) {}

  // Called before the session's first carrier is made.
  void AddSession(WorkerSession& session) { session.staged_shared.busy = &busy_; }
  // Ends the carriers of a session that is about to be removed.
  void RemoveSession(WorkerSession& session);

  // Returns the carrier that the session's queue pairs use for the channel. `tenant`: tag of the
  // session's tenant.
  flow::Carrier& CarrierFor(WorkerSession& session, flow::Carrier& channel, uint32_t device,
                            uint32_t tenant);
  // Returns the session's carrier for the channel; nullptr: it has none.
  static channel::StagedCarrier* On(const WorkerSession& session, const flow::Carrier& channel);
  // Returns all carriers for the channel.
  std::vector<channel::StagedCarrier*> AllOn(const flow::Carrier& channel) const;
  // Returns the staged carrier that a queue pair of an untrusted session sends by.
  channel::StagedCarrier& At(const flow::Carrier& carrier) {
    return *slots_[carrier.staged_index()].carrier;
  }

  // Moves frames whose bytes were read into their channels. Returns true if one left.
  bool Send(TimePoint now);
  // Releases acknowledged frames and gives their window to waiting queue pairs.
  void ReleaseArrived();

  // Events of the channels, for the carrier of that slot.
  flow::Resend SendAgain(SlotHandle slot, const flow::FrameRef& frame, Psn psn);
  void OnArrived(SlotHandle slot, const flow::FrameRef& frame);
  void OnTurn(SlotHandle slot, TimePoint now);
  // Ends the carriers of a channel that is gone.
  void OnChannelGone(const flow::Carrier& channel);

  // Returns true if frames wait because the port had no buffer.
  bool wants_packet() const { return wants_packet_; }

  // Returns the carrier in that slot; nullptr: there is none.
  channel::StagedCarrier* FindByIndex(uint64_t index) const;
  // Writes the carriers, or reads them; a reader has none (hand_over/channels_state.cc).
  void HandOver(hand_over::StateStream& state, flow::CarrierNames& names,
                const SessionTable& sessions);

 private:
  // The generation distinguishes a carrier from earlier ones with the same index.
  struct StagedSlot {
    std::unique_ptr<channel::StagedCarrier> carrier;  // nullptr: unused
    uint32_t generation = 0;
    WorkerSession* session = nullptr;  // nullptr: the session is closed
  };

  void HandOverCarrier(hand_over::StateStream& state, flow::CarrierNames& names,
                       const SessionTable& sessions, SlotHandle handle);
  channel::StagedCarrier* Find(SlotHandle slot);
  StagedSlot& SlotOf(const channel::StagedCarrier& carrier) {
    return slots_[carrier.staged_index()];
  }
  bool Send(channel::StagedCarrier& staged, TimePoint now);
  bool IsWanted(const channel::StagedCarrier& staged, const flow::FrameRef& frame);
  void RemoveIfDone(StagedSlot& staged_slot);

  const Uses uses_;
  std::vector<StagedSlot> slots_;
  std::vector<channel::StagedCarrier*> busy_;
  bool wants_packet_ = false;
};

}  // namespace rocegw::worker
