// SPDX-License-Identifier: Apache-2.0
// Attached process from its first message to its last freed object: owned objects, and the end of
// the session. Its requests and their replies are the exchange's (exchange/request_exchange.h). The
// control thread never waits.
//
// At the end (disconnect, death, protocol violation, shutdown) client memory is closed to the
// workers, and the workers are told to unlink everything. When all of them have answered, and the
// current request too, all objects are freed. `ended` reports that nothing is left. It does not
// wait for a copier that the client's memory blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/inherited_fds.h"
#include "gateway/session/attach/message_socket.h"
#include "gateway/session/attach/peer.h"
#include "gateway/session/client_memory.h"
#include "gateway/session/events/async_events.h"
#include "gateway/session/events/event_limits.h"
#include "gateway/session/exchange/request_exchange.h"
#include "gateway/session/objects/object_release.h"
#include "gateway/session/objects/objects.h"
#include "gateway/session/objects/session_costs.h"
#include "gateway/session/objects/session_quota.h"
#include "gateway/session/reserve/ready_reserve.h"
#include "gateway/session/services.h"
#include "gateway/session/session_segment.h"
#include "gateway/session/session_uses.h"
#include "gateway/session/state/state_rows.h"
#include "gateway/session/workers/worker_links.h"

namespace rocegw::session {

class ClientSession final : private RequestOwner {
 public:
  // Counts as one session of the pool until its owner's Reap, so the pool outlives it.
  // `slot`: limits of the session's attach socket; nullptr: the pool's only.
  ClientSession(SessionId id, const SessionUses& uses, tenant::Pool& pool,
                std::shared_ptr<tenant::SlotShare> slot, Peer peer, MessageSink& sink,
                std::shared_ptr<ClientCallQueue> call_queue);
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  SessionId id() const { return id_; }
  const Peer& peer() const { return peer_; }
  tenant::Pool& pool() const { return quota_.pool(); }
  const std::shared_ptr<tenant::SlotShare>& slot() const { return quota_.slot(); }

  // Sends messages to the program.
  MessageSink& sink() { return sink_; }
  // Receives the requests of the program.
  RequestExchange& exchange() { return exchange_; }
  const RequestExchange& exchange() const { return exchange_; }
  bool greeted() const { return exchange_.greeted(); }
  // Returns true if the session's pool is trusted.
  bool trusted() const { return trusted_; }

  // Ends the session, with a reason for the log. Only the first call has an effect.
  void End(const std::string& reason) override;
  bool ending() const { return ending_; }
  bool ended() const { return ended_; }

  // Disconnects all connections as their programs would, then fails and flushes all queue pairs.
  void DisconnectAll();

  void OnAsyncEvent(const worker::AsyncEventRaised& event);
  // AsyncEvents::RaiseOfPort, unless the session ends.
  void OnPortEvent(uint32_t device, uint32_t type);

  // Called when the session has ended.
  std::function<void()> on_ended;

  // Functions for commands.
  // ----------------------------------------------------------------------------------------------

  // Shared objects that commands use.
  ControlLoop& loop() { return services_.loop; }
  WorkerRequests& workers() { return services_.workers; }
  const Options& options() const { return services_.options; }
  DeviceTable& devices() { return services_.devices; }
  PoolRules& rules() { return services_.rules; }
  Reports& reports() { return services_.reports; }
  WorkerChoice& worker_choice() { return services_.choice; }
  KeyGenerator& keys() { return services_.keys; }
  QpnAllocator& qpns() { return services_.qpns; }
  MulticastGroups& multicast_groups() { return services_.multicast; }
  XrcDomains& xrc_domains() { return services_.xrc; }
  SlotShares& slots() { return services_.slots; }
  const port::SteeringTable& steering() const { return services_.steering; }
  tenant::Registry& pools() { return services_.pools; }
  CmBinding& cm() { return cm_; }
  Captures& captures() { return captures_; }
  Objects& objects() { return objects_; }
  const Objects& objects() const { return objects_; }
  shm::Segment& segment() { return segment_.segment(); }
  const shm::Segment& segment() const { return segment_.segment(); }
  WorkerLinks& links() { return links_; }
  SessionQuota& quota() { return quota_; }
  AsyncEvents& async_events() { return async_events_; }
  EventLimits& event_limits() { return event_limits_; }
  const EventLimits& event_limits() const { return event_limits_; }
  // Frees objects that were created, one by one or with their context.
  ObjectRelease& release() { return release_; }
  // Returns the pool's reserve, if it had one when the session began; else nullptr.
  ReadyReserve* reserve() { return reserve_.get(); }

  // Returns the number of queue pairs for which the tables have space from the start, and of ids
  // that connect or listen.
  size_t ready_ahead() const;
  size_t ids_ahead() const;
  // Returns an id, from the reserve if it has any.
  std::unique_ptr<CmId> NewCmId() {
    return reserve_ == nullptr ? std::make_unique<CmId>() : reserve_->TakeCmId();
  }

  // Answers ENOMEM and reports an event: the program has the maximum number of `what`.
  void ReplyBound(std::string_view what, uint64_t most);

  // Allocates a block of shared memory, charged to the pool; ENOMEM.
  StatusOr<shm::Block> Allocate(shm::Writer writer, uint64_t bytes) {
    return segment_.Allocate(writer, bytes);
  }

  // Counts the time of the current request as set-up time of that queue pair. `finished`: the
  // set-up ends with it.
  void CountSetUp(uint32_t qp, bool finished) { counted_ = {qp, finished}; }

  // Registers the session with all workers, once, and announces them to the client; `done` gets an
  // errno.
  void LinkToWorkers(const std::function<void(int error)>& done);
  ClientMemory& memory() { return memory_; }
  const ClientMemory& memory() const { return memory_; }
  // `minor`: minor version of the attach protocol of the client's library.
  void Greeted(uint32_t minor) {
    exchange_.SetGreeted();
    pool().CountAttach(tenant::AttachOutcome::kAccepted);
    library_minor_ = minor;
  }

  // Starts to execute operations on the buffer's addresses by its device. `done` gets an errno;
  // EOPNOTSUPP: the session has queue pairs, and no copier.
  void UseDevice(std::shared_ptr<device_memory::DeviceBuffer> buffer,
                 std::function<void(int error)> done);

  // Hand-over to a gateway that takes over (hand_over/session_state.cc).
  // Returns why the session cannot be handed over now, a static text; nullptr: no request is in
  // progress.
  const char* Unsettled() const;
  // Returns what of the session cannot be handed over, a static text; nullptr: all can. `version`:
  // of the newest record of a session that the other gateway reads.
  const char* NotHandedOver(uint16_t version) const;
  void Offer(OfferedFds& fds) const;
  // Writes the state, or reads it into a new session, with descriptors of `inherited`.
  void HandOver(hand_over::StateStream& state, InheritedFds* inherited);
  // Links a session that was read, with all its objects, to the workers.
  void LinkAgain();
  // Errno of a worker that refused it; 0: none.
  int link_error() const { return link_error_; }

  SessionRow Row() const;

 private:
  // RequestOwner:
  void Execute(Request& request) override;
  void OnUnanswered(uint32_t type, uint32_t subject, int error) override;
  void BeforeReply() override { segment_.AnnounceTo(sink_); }
  // Adds the time of the request to the queue pair of CountSetUp.
  void AfterReply(TimePoint began) override;

  void ContinueEnd();
  void FreeAll();
  void MakeRoomForReady();

  // hand_over/session_state.cc:
  void HandOverMemory(hand_over::StateStream& state, InheritedFds* inherited);
  void HandOverEvents(hand_over::StateStream& state);

  const SessionId id_;
  Services& services_;
  CmBinding& cm_;
  Captures& captures_;
  SessionQuota quota_;
  const bool trusted_;
  Peer peer_;
  MessageSink& sink_;
  RequestExchange exchange_;
  int64_t attached_ns_;
  uint32_t library_minor_ = 0;
  int link_error_ = 0;
  bool ending_ = false;
  bool ended_ = false;
  struct {
    uint32_t qp = 0;
    bool finished = false;
  } counted_;

  const std::shared_ptr<ReadyReserve> reserve_;
  SessionSegment segment_;
  EventLimits event_limits_;  // its backlog is declared before the channels in objects_
  Objects objects_;
  ClientMemory memory_;
  WorkerLinks links_;
  AsyncEvents async_events_;
  ObjectRelease release_;
};

}  // namespace rocegw::session
