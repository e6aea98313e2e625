// SPDX-License-Identifier: Apache-2.0
// A worker owns queue pairs, their flows, its view of regions and its queue of each port, and runs
// them to completion, burst by burst. It takes the time as an argument and never blocks; the thread
// around it (worker_thread.h) owns clock and sleep. Exactly one thread at a time calls RunOnce.
//
// The worker owns its parts and names their order in an iteration (RunOnce). Each part has one job:
//   objects/   tables of queue pairs and sessions, their activity, completion and asynchronous
//   events receive/   from a port's datagram to a queue pair, a channel or the connection manager
//   send/      doorbells, turns of queue pairs, packets on their way to the ports
//   memory/    execution of memory operations
//   channels/  use of channels by queue pairs
//   control/   messages from and to the control thread
//   schedule/  division of the worker's time among pools
//   hand_over/ state of the parts for a gateway that takes over
// Parts hold references to those that they use (struct Uses).
#pragma once

#include <span>
#include <vector>

#include "gateway/channel/channel_set.h"
#include "gateway/worker/channels/channel_events.h"
#include "gateway/worker/control/control_handler.h"
#include "gateway/worker/handoff.h"
#include "gateway/worker/receive/packet_intake.h"
#include "gateway/worker/send/qp_pump.h"
#include "gateway/worker/worker_outbox.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::worker {

struct WorkerOptions {
  WorkerIndex index = 0;
  Ports ports;  // not owned
  WorkerLink* link = nullptr;
  std::vector<WorkerInbox*> inboxes;  // inboxes of all workers, by index
  port::SteeringTable steering;
  metrics::WorkerCounters* counters = nullptr;
  flow::CcConfig congestion;
  // Rules that select another algorithm by observation; none: `congestion` stays.
  flow::CcPolicy congestion_policy;
  // The same for channels, whose algorithm is one that both ends support.
  flow::CcConfig channel_congestion;
  flow::CcPolicy channel_policy;
  // For the division of time among pools (scheduler.h).
  Scheduler::Clock clock = nullptr;
  Scheduler::Clock processor_time = nullptr;
  uint64_t link_bytes_per_second = 0;  // 0: unknown
  TimePoint start;
  SecretKey secret{};  // key of the limits by source
  WakeWatch watch;
  memory::CopySettings engine;  // its queue outlives the worker
};

class Worker {
 public:
  explicit Worker(WorkerOptions options);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs one iteration. Returns true if there was work.
  bool RunOnce(TimePoint now);

  // Called before the thread sleeps: makes all clients write their eventfd, then checks for work
  // once more. Returns false if there is work: do not sleep.
  bool PrepareSleep(TimePoint now);
  // Called after sleep.
  void FinishSleep() {
    inbox().sleeping.store(false, std::memory_order_relaxed);
    options_.link->worker_awake.store(true, std::memory_order_relaxed);
  }
  // Handles a write to a session's eventfd, after the caller consumed it.
  void OnWake(SessionId session, TimePoint now) {
    round_.now = now;
    doorbells_.OnWake(session, now);
  }
  // Returns when RunOnce has work to do without an outside event; kNever: not.
  TimePoint NextDeadline() const;

  // Hand-over to the worker of a gateway that takes over (docs/develop/hand_over.md).
  // Ends what cannot be written, and begins nothing: collects from copiers, takes what other
  // workers have handed over, transmits packets. Returns true if the worker rests. It does not
  // unless the control thread takes what it reports.
  bool Rest(TimePoint now);
  // Applies control messages and does nothing else: for a worker that may not act yet. Returns true
  // if there was one.
  bool Prepare(TimePoint now);
  // Writes the state of a worker that rests, or reads it into one whose control thread has linked
  // the same objects and that has done nothing but Prepare. Regions, windows, peers, rules and keys
  // are the control thread's. If the state is refused, the worker must be destroyed.
  void HandOver(hand_over::StateStream& state);

  size_t qp_count() const { return qps_.size(); }
  // Calls each(std::unique_ptr<transport::QueuePair>&) for every queue pair of a session: tests
  // exchange them for others with the same links and state.
  template <typename F>
  void ForEachQueuePair(F each) {
    for (QpSlot& slot : qps_.slots())
      if (slot.session != nullptr) each(slot.qp);
  }
  // Memory of channels, and of queue pairs for their use of channels.
  struct StateBytes {
    channel::ChannelBytes channels;
    size_t endpoints = 0;       // queue pairs that belong to sessions
    size_t endpoint_bytes = 0;  // sum of QueuePair::channel_bytes
  };
  StateBytes MeasureState() const;
  // Returns the algorithm of native connections.
  flow::CcKind congestion() const { return congestion_.current(); }

 private:
  WorkerInbox& inbox() { return *options_.inboxes[options_.index]; }
  bool RunDeadlines(TimePoint now);
  bool SendAll(TimePoint now);
  bool MayNotSleep(TimePoint now) const;
  // hand_over/worker_state.cc:
  bool AtRest() const;
  std::vector<WorkerSession*> SessionsInOrder() const;
  void HandOverSessions(hand_over::StateStream& state, std::span<WorkerSession* const> sessions);
  void Resume(TimePoint now);

  WorkerOptions options_;
  metrics::WorkerCounters& counters_;
  Round round_;
  ControlSender control_;
  Scheduler scheduler_;
  TimerWheel wheel_;
  TransmitQueue transmit_;
  std::vector<WorkerObject> due_;  // owners of timers

  // Objects. Each outlives those below that use it: when queue pairs are destroyed, they release
  // channels and leave the XRC domains of sessions; staged frames are charged to sessions.
  channel::ChannelSet channels_;
  SessionTable sessions_;
  StagedFrames staged_;
  QpTable qps_;
  GroupTable groups_;
  Tombstones tombstones_;
  MulticastGroups multicast_;
  PoolQueues waiting_;
  DiscoveryLimits discovery_;
  FloodGuard flood_;
  verbs::MrTable regions_;
  const transport::WorkerTables tables_;

  // Parts without objects of their own.
  QpActivity activity_;
  NativeCongestion congestion_;
  CompletionEvents completions_;
  AsyncEvents events_;
  RequestTimes times_;
  ChannelBindings bindings_;
  WorkerOutbox outbox_;
  MemoryExecutor memory_;
  ChannelEvents channel_events_;
  DoorbellScan doorbells_;
  QpPump pump_;
  SessionControl session_control_;
  QueuePairControl queue_pair_control_;
  QueueControl queue_control_;
  RegionControl region_control_;
  NetworkControl network_control_;
  ControlHandler handler_;
  Demultiplexer demultiplexer_;
  PacketIntake intake_;
};

}  // namespace rocegw::worker
