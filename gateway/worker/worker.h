// SPDX-License-Identifier: Apache-2.0
// A worker owns queue pairs, their flows, its view of regions and its queue of each port, and runs
// them to completion, burst by burst. It takes the time as an argument and never blocks; the thread
// around it (worker_thread.h) owns clock and sleep. Exactly one thread at a time calls RunOnce.
//
// Order of an iteration: control messages; received packets; packets handed over by other workers;
// doorbells; deadlines; memory operations of received packets; queue pairs that have something to
// send; memory operations of sent packets; transmission; completion events.
//
// Files: worker.cc is the loop, worker_receive.cc demultiplexes, worker_memory.cc executes memory
// operations, worker_control.cc applies control messages, worker_congestion.cc selects congestion
// control, worker_references.cc counts channel references.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/base/containers/key_map.h"
#include "gateway/base/source_limits.h"
#include "gateway/base/timer_wheel.h"
#include "gateway/base/token_bucket.h"
#include "gateway/channel/channel_set.h"
#include "gateway/flow/cc_class.h"
#include "gateway/flow/congestion.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/port/packet_port.h"
#include "gateway/port/steering.h"
#include "gateway/transport/endpoint/endpoint_group.h"
#include "gateway/transport/endpoint/endpoint_tombstone.h"
#include "gateway/transport/queue_pair.h"
#include "gateway/worker/channel_references.h"
#include "gateway/worker/handoff.h"
#include "gateway/worker/ip_id_watch.h"
#include "gateway/worker/scheduler.h"
#include "gateway/worker/worker_link.h"
#include "gateway/worker/worker_session.h"

namespace rocegw::worker {

struct WorkerOptions {
  WorkerIndex index = 0;
  // This worker's queue of each port, by device index; not owned.
  std::vector<port::PacketPort*> ports;
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
  uint64_t link_bytes_per_second = 0;  // 0: unknown
  TimePoint start;
  SecretKey secret{};  // key of the limits by source
  // Adds a session's eventfd to the set that the worker's thread waits on, or removes it; may be
  // nullptr.
  void (*watch)(void* context, int fd, SessionId session, bool add) = nullptr;
  void* watch_context = nullptr;
};

class Worker final : private transport::Outbox, private channel::Owner {
 public:
  explicit Worker(WorkerOptions options);
  ~Worker() override;
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
  void OnWake(SessionId session, TimePoint now);
  // Returns when RunOnce has work to do without an outside event; kNever: not.
  TimePoint NextDeadline() const;

  size_t qp_count() const { return qps_.size(); }
  // Calls each(std::unique_ptr<transport::QueuePair>&) for every queue pair of a session: tests
  // exchange them for others with the same links and state.
  template <typename F>
  void ForEachQueuePair(F each) {
    for (QpSlot& slot : slots_)
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
  // Fits one cache line.
  struct alignas(64) QpSlot {
    std::unique_ptr<transport::QueuePair> qp;
    uint32_t generation = 0;
    bool runnable = false;
    WorkerSession* session = nullptr;  // nullptr while the queue pair waits in a pool's reserve
    int64_t bytes_left = 0;            // rest of its quantum; negative: sent in advance
    TimePoint armed = kNever;
  };

  WorkerInbox& inbox() { return *options_.inboxes[options_.index]; }
  QpSlot* Slot(SlotHandle handle);
  QpSlot* SlotOf(Qpn qpn);
  WorkerSession* SessionOf(SessionId id);
  static WorkerSession& OwnerOf(transport::QpContext& qp) {
    return *static_cast<WorkerSession*>(qp.owner);
  }
  void MakeRunnable(QpSlot& slot, SlotHandle handle);
  void AfterEvent(QpSlot& slot, SlotHandle handle);

  // worker.cc
  bool TakeDoorbells(TimePoint now);
  bool TakeSessionDoorbells(WorkerSession& session, bool all);
  bool RunDeadlines(TimePoint now);
  bool PumpQueuePairs(TimePoint now);
  bool TransmitAll();
  void FlushPorts();
  void SendCompletionEvents();
  void SendEventIfDue(verbs::CompletionQueue& cq);
  bool TrySend(verbs::CompletionQueue& cq);

  // worker_receive.cc
  bool ReceiveAll(TimePoint now);
  size_t ReceiveBurst(uint32_t device, std::span<wire::RxDatagram> burst, TimePoint now);
  void TakeByPool(uint32_t device, std::span<const wire::RxDatagram> burst, TimePoint now);
  void Take(uint32_t device, const wire::RxDatagram& datagram, TimePoint now);
  bool ReceiveHandedOver(TimePoint now);
  void OnDatagram(uint32_t device, const wire::RxDatagram& datagram, TimePoint now);
  metrics::DropReason ToQueuePair(uint32_t device, const wire::RxPacket& packet, TimePoint now);
  metrics::DropReason OnMad(uint32_t device, const wire::RxPacket& packet, TimePoint now);
  bool MayAsk(const wire::Gid& source, TimePoint now);
  void HandOver(WorkerIndex owner, uint32_t device, const wire::RxDatagram& datagram);

  // worker_multicast.cc
  void OnMulticast(uint32_t device, const wire::RxDatagram& datagram, TimePoint now);
  metrics::DropReason ToGroup(uint32_t device, const wire::RxPacket& packet, TimePoint now);
  metrics::DropReason ToMember(Qpn member, uint32_t device, const wire::RxPacket& packet,
                               TimePoint now);

  struct Staged;

  struct Tombstone {
    std::unique_ptr<transport::EndpointTombstone> endpoint;
    TimePoint until;
  };
  // Limit of tombstones, because programs may create and destroy endpoints at any rate.
  static constexpr size_t kMostTombstones = 1024;

  // worker_channel.cc
  metrics::DropReason OnChannelPacket(uint32_t device, const wire::RxPacket& packet, TimePoint now);
  QpSlot* ReceiverOf(const channel::Delivery& delivery);
  metrics::DropReason Deliver(const channel::Delivery& delivery, TimePoint now);
  port::TxPacket* NewChannelPacket(uint32_t device) override;
  size_t MaxDatagram(uint32_t device, const wire::Gid& peer) const override;
  void SendChannelPacket(uint32_t device, port::TxPacket* packet) override;
  flow::Resend BuildAgain(const flow::Carrier& carrier, const flow::FrameRef& frame,
                          Psn psn) override;
  bool AnswerOfDeparted(const flow::FrameRef& lost, wire::ChannelFrame& frame) override;
  void KeepTombstone(const transport::QueuePair& endpoint);
  void OnArrived(const flow::Carrier& carrier, const flow::FrameRef& frame) override;
  // Handles the arrival of a frame of a queue pair, whose own handle is in the frame reference.
  void NoteArrived(const flow::Carrier& carrier, const flow::FrameRef& frame);
  void OnTurn(const flow::Carrier& carrier, SlotHandle qp) override;
  void OnChannelGone(const flow::Carrier& carrier, bool opened, wire::ChannelReason why) override;
  void OnPlaceFree(uint32_t slot) override { references_.OnChannelGone(slot); }
  void ArmChannel(uint32_t slot, TimePoint when) override;

  // worker_references.cc
  struct ChannelSlots {
    // Slots of its own channel and of one for each further path.
    std::array<uint32_t, wire::kMostPaths> slots{};
    size_t count = 0;
    std::span<const uint32_t> all() const& { return std::span(slots).first(count); }
    std::span<const uint32_t> all() const&& = delete;
  };
  flow::Carrier* Reach(transport::QpContext& qp, const transport::Peer& peer,
                       uint32_t beside) override;
  flow::Carrier* Beside(transport::QpContext& qp, const flow::Carrier& carrier,
                        uint32_t paths) override;
  // Binds the channel, or records why the queue pair uses plain RoCEv2.
  void BindChannel(transport::QueuePair& queue_pair, const verbs::ChannelTarget& target);
  bool MayUse(transport::QpContext& qp, const channel::Channel* known);
  flow::Carrier* BeginUse(transport::QpContext& qp, channel::Channel* channel);
  static const channel::Channel& ChannelOf(const WorkerSession& session,
                                           const flow::Carrier& carrier);
  static ChannelSlots ChannelsOf(const QpSlot& slot);
  void EndReferences(const QpSlot& slot, const ChannelSlots& before);
  // Ends all references of a queue pair that is about to be destroyed.
  void EndReferences(const QpSlot& slot);

  // worker_staging.cc
  port::TxPacket* NewFrame(transport::QpContext& qp, flow::Carrier& carrier,
                           uint32_t payload) override;
  void SendFrame(transport::QpContext& qp, flow::Carrier& carrier, port::TxPacket* packet) override;
  flow::Carrier& CarrierFor(transport::QpContext& qp, channel::Channel& channel);
  static channel::StagedCarrier* StagedOn(const WorkerSession& session,
                                          const flow::Carrier& channel);
  channel::StagedCarrier* StagedBy(SlotHandle handle);
  bool SendStaged(TimePoint now);
  bool SendStaged(channel::StagedCarrier& staged, TimePoint now);
  bool IsWanted(const channel::StagedCarrier& staged, const flow::FrameRef& frame);
  flow::Resend SendStagedAgain(const flow::FrameRef& frame, Psn psn);
  void ForgetStaged();
  void EndStaged(const flow::Carrier& channel);
  void EndStaged(WorkerSession& session);
  void EndIfOver(Staged& place);

  // worker_memory.cc
  void ListOps(WorkerSession& session);
  void FlushMemory();
  void FlushTrusted(WorkerSession& session);
  void Report(std::span<AccessNote> notes, std::span<const memory::MemoryOp> ops);
  void ReportFault(WorkerSession& session, AccessNote& note);
  void SubmitToCopier(WorkerSession& session);
  bool CollectFromCopiers();
  void Count(const memory::MemoryCounts& counts);

  // worker_congestion.cc
  flow::CcConfig CongestionOf(const verbs::QpRareConfig& config) const;
  void LookAtCongestion(TimePoint now);

  // worker_control.cc
  bool ApplyControl(TimePoint now);
  void Apply(ControlMessage& message, TimePoint now);
  ControlReply Do(LinkSession& body, TimePoint now);
  ControlReply Do(const UnlinkSession& body);
  ControlReply Do(const AddDoorbellPage& body);
  ControlReply Do(const LinkCq& body);
  ControlReply Do(const ResizeCq& body);
  ControlReply Do(const ModerateCq& body);
  ControlReply Do(const UnlinkCq& body);
  verbs::CompletionQueue* CqOf(SessionId session, uint32_t handle);
  ControlReply Do(const LinkSrq& body);
  ControlReply Do(const UnlinkSrq& body);
  ControlReply Do(const ArmSrq& body);
  ControlReply Do(const ResizeSrq& body);
  ControlReply Do(const QuerySrq& body);
  ControlReply Do(const SnapshotSrqs& body);
  transport::SharedReceives* SrqOf(SessionId session, uint32_t handle);
  transport::XrcDomain* DomainOf(SessionId domain);
  std::unique_ptr<transport::QueuePair> MakeQp(const verbs::QpConfig& config);
  void ReportLimitReached(const verbs::SrqConfig& srq);
  SlotHandle TakeSlot();
  ControlReply Do(const PrepareQp& body);
  ControlReply Do(const LinkQp& body);
  ControlReply Do(const UnlinkQp& body);
  ControlReply Do(const ModifyQp& body, TimePoint now);
  ControlReply Do(const QueryQp& body);
  ControlReply Do(const UsePeerRules& body, TimePoint now);  // worker_peers.cc
  ControlReply Do(const LinkPeer& body);
  ControlReply Do(const UnlinkPeer& body);
  ControlReply Do(const LinkGroup& body);
  ControlReply Do(const UnlinkGroup& body);
  transport::EndpointGroup* GroupOf(SessionId session, Qpn number);
  ControlReply Do(const Multicast& body);
  ControlReply Do(const LinkRegion& body);
  ControlReply Do(const LinkWindow& body);
  ControlReply Do(const SendMad& body);
  ControlReply Do(const SnapshotQps& body);
  ControlReply Do(const SnapshotChannels& body);
  ControlReply Do(const SnapshotPeers& body);
  ControlReply Do(const UsePorts& body);
  ControlReply Do(const UseChannels& body);
  ControlReply Do(const NameMember& body);
  ControlReply Do(const KnowPeer& body);
  ControlReply Do(const UseKeys& body);
  void Reply(uint64_t cookie, ControlReply reply);
  void ReplyWhenUnused(SessionId session, uint64_t cookie, bool known);
  void WakeControl();
  void Notify(WorkerMessage message);
  static QpSnapshot SnapshotOf(const QpSlot& slot);

  // transport::Outbox
  port::TxPacket* NewPacket(transport::QpContext& qp) override;
  void Send(transport::QpContext& qp, port::TxPacket* packet) override;
  void Access(transport::QpContext& qp, const memory::MemoryOp& op, const transport::AccessTag& tag,
              port::TxPacket* fills) override;
  bool MayAccess(transport::QpContext& qp) override;
  void Event(transport::QpContext& qp, verbs::AsyncEvent event) override;
  void Completed(transport::QpContext& qp, Duration took) override;
  // Report request times to the pools.
  void ReportTimes();
  void ReportTimes(WorkerSession& session);
  void Fault(transport::QpContext& qp, const char* reason) override;
  // Ignores the session from now on and asks the control thread to close it.
  void Stop(WorkerSession& session, const char* reason);
  TimePoint now() const override { return now_; }

  WorkerOptions options_;
  metrics::WorkerCounters& counters_;
  TimePoint now_;
  uint32_t iteration_ = 0;

  // Declared before the queue pairs that use it, to outlive them.
  channel::ChannelSet channels_{counters_, *this};
  // Staged carriers by index. The generation distinguishes a carrier from earlier ones with the
  // same index.
  struct Staged {
    std::unique_ptr<channel::StagedCarrier> carrier;  // nullptr: unused
    uint32_t generation = 0;
    WorkerSession* session = nullptr;  // nullptr: the session is closed
  };
  std::vector<Staged> staged_;
  std::vector<channel::StagedCarrier*> busy_staged_;
  bool staged_wants_packet_ = false;  // the port had no buffer
  std::vector<QpSlot> slots_;
  std::vector<uint32_t> free_slots_;
  KeyMap<SlotHandle> qps_;                                                // by QPN
  std::unordered_map<uint32_t, transport::EndpointGroup> groups_;         // by group number
  std::deque<Tombstone> tombstones_;                                      // oldest in front
  std::map<std::pair<uint32_t, wire::Gid>, std::vector<Qpn>> multicast_;  // by device and group
  verbs::MrTable regions_;
  const transport::WorkerTables tables_{regions_, counters_};
  std::unordered_map<uint32_t, std::unique_ptr<WorkerSession>> sessions_;
  std::vector<WorkerSession*> active_;
  std::vector<WorkerSession*> with_ops_;
  std::vector<WorkerSession*> with_copier_;
  std::vector<WorkerSession*> with_times_;  // with request times that their pools do not have yet
  TimePoint report_times_at_;

  flow::CcClass congestion_;

  TimerWheel wheel_;
  std::vector<SlotHandle> due_;
  Scheduler scheduler_;
  ChannelReferences references_;
  std::vector<SlotHandle> after_pump_;  // queue pairs whose session's copier takes nothing now
  bool port_full_ = false;
  std::vector<Outgoing> outgoing_;
  bool ports_hold_ = false;  // packets that wait in a port for something else than the worker
  std::vector<wire::RxDatagram> received_;
  IpIdWatch ip_ids_;
  std::set<wire::Gid> known_peers_;  // KnowPeer
  // Limits on discovery datagrams: by address, members and known peers apart, and for all strangers
  // together.
  SourceLimits questions_of_known_;
  SourceLimits questions_of_stranger_;
  TokenBucket questions_of_strangers_;
  std::vector<port::TxPacket*> burst_;

  std::vector<verbs::CompletionQueue*> fresh_;  // CQs written in this burst
  std::vector<verbs::CompletionQueue*> timed_;  // CQs whose event moderation defers
  // CQs whose event is due, but whose channel was full.
  std::vector<verbs::CompletionQueue*> unsent_;
  std::deque<WorkerMessage>
      unsent_messages_;        // messages that did not fit the ring to the control thread
  bool wake_control_ = false;  // messages were pushed since the control thread was last woken
  uint32_t gsi_psn_ = 0;
};

}  // namespace rocegw::worker
