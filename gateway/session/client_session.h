// SPDX-License-Identifier: Apache-2.0
// One attached process from its first message to the last freed object: what it owns, the request
// being worked on, and its end. One request at a time, so answers are in order and a command never
// meets another half way; the command either answers at once or from the continuation of a message
// to the workers. The control thread never waits.
//
// The end (disconnect, death, a broken rule, shutdown): client memory is closed to the workers,
// they are told to unlink everything, and when all of them have answered, also the request under
// way, everything is freed. `ended` tells when nothing is left. It does not wait for a copier that
// the client's memory blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/memory/copier.h"
#include "gateway/memory/descriptor.h"
#include "gateway/memory/foreign_memory.h"
#include "gateway/session/attach/message_socket.h"
#include "gateway/session/attach/peer.h"
#include "gateway/session/commands/request.h"
#include "gateway/session/events/doorbells.h"
#include "gateway/session/objects/objects.h"
#include "gateway/session/objects/session_costs.h"
#include "gateway/session/services.h"
#include "gateway/session/state/state_rows.h"

namespace rocegw::session {

// What a copier whose thread client memory blocks keeps of an ended session: the charges go back
// to the pool when the thread has ended. Control thread.
struct CopierRemains {
  bool ended = false;
  std::vector<tenant::Charge> charges;
};

class ClientSession {
 public:
  // Counts as one session of the pool until Reap of its owner, so the pool outlives it.
  ClientSession(SessionId id, Services& services, tenant::Pool& pool, Peer peer, MessageSink& sink,
                std::shared_ptr<ClientLane> lane);
  ~ClientSession();
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  SessionId id() const { return id_; }
  const Peer& peer() const { return peer_; }
  tenant::Pool& pool() const { return pool_; }

  // A message from the client; not while busy.
  void OnMessage(std::span<const uint8_t> bytes, ClientFd fd);
  bool busy() const { return pending_.has_value(); }
  bool greeted() const { return greeted_; }

  // Ends the session, with the reason that the log shows. Only the first call counts.
  void End(const std::string& reason);
  bool ending() const { return ending_; }
  bool ended() const { return ended_; }

  // Connections are taken down as their programs would, then all queue pairs fail and flush.
  void DisconnectAll();

  void OnAsyncEvent(const worker::AsyncEventRaised& event);
  // Something about a device's only port: to all contexts of it. type: enum ibv_event_type.
  void OnPortEvent(uint32_t device, uint32_t type);

  // Called when the session is ready for the next message after having been busy, and when it has
  // ended.
  std::function<void()> on_ready;
  std::function<void()> on_ended;

  // For commands.
  // -------------------------------------------------------------------------------------------------------

  Services& services() { return services_; }
  CmBinding& cm() { return *services_.cm; }
  Objects& objects() { return objects_; }
  const Objects& objects() const { return objects_; }
  shm::Segment& segment() { return segment_; }
  Doorbells& doorbells() { return doorbells_; }
  // Of its pool, when that kept something ready as the session began; else nullptr.
  ReadyReserve* reserve() { return reserve_.get(); }

  // Queue pairs that it has room for in its tables from its start, and ids that connect them or
  // listen.
  size_t ready_ahead() const;
  size_t ids_ahead() const;
  // Of the reserve, while that has any.
  std::unique_ptr<CmId> NewCmId() {
    return reserve_ == nullptr ? std::make_unique<CmId>() : reserve_->TakeCmId();
  }
  void GiveBack(std::unique_ptr<CmId> id) {
    if (reserve_ != nullptr) reserve_->PutBack(std::move(id));
  }

  // Answers the request under way. T begins with rocegw_reply; fd stays the caller's.
  template <typename T>
  void Reply(T reply, int fd = -1) {
    reply.header.error = 0;
    SendReply({reinterpret_cast<uint8_t*>(&reply), sizeof reply}, fd);
  }
  void ReplyDone();
  // Done, or the errno.
  void Answer(int error);
  // The request breaks the protocol: the session ends, and this is all the answer there is.
  void Violation(const std::string& reason);
  void ReplyError(int error);
  // ENOMEM, and the event that tells: it has the most of `what` that one program may have.
  void ReplyBound(std::string_view what, uint64_t most);
  void ReplyObject(uint32_t handle, uint64_t events_reported, int fd = -1);

  // Of the pool's quota: 0, or the errno to answer with.
  [[nodiscard]] int Take(Resource resource, uint64_t amount = 1) {
    return services_.Take(pool_, resource, amount);
  }
  void Give(Resource resource, uint64_t amount = 1) {
    pool_.Give(resource, amount);
    services_.heap.Destroyed(1);
  }
  // The same for as long as `charge` lives.
  [[nodiscard]] int Take(Resource resource, uint64_t amount, tenant::Charge& charge) {
    return services_.Take(pool_, resource, amount, charge);
  }
  // A pair for events of this session, charged to the pool; EMFILE.
  StatusOr<EventPair> NewEventPair(tenant::Charge& descriptors);
  EventBacklog& event_backlog() { return event_backlog_; }
  // More events wait unread than the session's objects can have in the order of the verbs: no
  // further request is read until the program has read events.
  bool EventsPushBack() const;
  // A block of shared memory, charged to the pool; ENOMEM.
  StatusOr<shm::Block> Allocate(shm::Writer writer, uint64_t bytes);

  // One more page of doorbells on a worker; ENOMEM.
  Status AddDoorbellPage(WorkerIndex worker);
  // The answer that comes next belongs to setting up that queue pair, and is the end of it or not:
  // how long it took since the request came is counted.
  void CountSetUp(uint32_t qp, bool finished) { counted_ = {qp, finished}; }

  // Makes the session known to all workers, once; `done` gets an errno.
  void LinkToWorkers(std::function<void(int error)> done);
  // The port of the device that it was made on.
  uint32_t DeviceOf(const Qp& qp) { return objects_.contexts.Find(qp.context)->device; }
  // As whose workers know it: the session's, or its domain's.
  SessionId LinkedAs(const Qp& qp) const {
    return qp.xrcd == 0 ? id_ : objects_.xrcds.Find(qp.xrcd)->domain->id;
  }
  // Runs a call that the program may block, then `done` on the control thread; not when the session
  // ends before. The request under way is answered by `done`.
  void RunBlocking(std::function<void()> call, std::function<void()> done);
  // Has a memory descriptor judged. `judged` gets it, or why it is none.
  void JudgeMemory(ClientFd memory, std::function<void(StatusOr<UniqueFd> memory)> judged);
  // Chooses how client memory is reached. `memory` was judged, or is invalid.
  void SetUpMemory(UniqueFd memory);
  Status ReplaceMemory(UniqueFd memory);
  bool memory_reachable() const { return memory_reachable_; }
  rocegw_memory_way memory_way() const { return memory_way_; }
  // minor: of the attach protocol that its library speaks.
  void Greeted(uint32_t minor) {
    greeted_ = true;
    pool_.CountAttach(tenant::AttachOutcome::kAccepted);
    library_minor_ = minor;
  }

  // Frees what a destroy command or a failed create leaves: everything of the object, workers have
  // let go of it.
  void FreeQp(uint32_t handle);
  void FreeCq(uint32_t handle);
  void FreeSrq(uint32_t handle);
  void FreeXrcd(uint32_t handle);
  void FreeMr(uint32_t handle);
  void FreeMw(uint32_t handle);
  void FreePeer(uint32_t handle);
  void FreeGroup(uint32_t handle);
  void FreePd(uint32_t handle);
  void AddRegion(uint32_t handle, std::shared_ptr<memory::Region> region);
  void FreeRegion(uint32_t handle);

  // Unlinks and frees a queue pair; one that others have open too is only the session's no more.
  void DropQp(uint32_t handle, std::function<void(uint32_t events)> done);
  // The session has nothing in the domain any more. `done`: workers have forgotten what nobody has.
  void LeaveXrcd(Xrcd& xrcd, std::function<void()> done);

  // Unlinks and frees all objects of a context, itself included.
  void CloseContext(uint32_t context, std::function<void()> done);

  EventChannel* AsyncEventsOf(uint32_t context);
  // The object goes: withdraws async events that wait, yields how many the client got or may get.
  uint32_t ForgetAsyncEvents(uint32_t context, rocegw_object_kind kind, uint32_t handle);
  // It has as many channels as one program may have, and is told so: the request is answered.
  bool LacksEventChannels();

  SessionRow Row() const;
  // nullptr: the session has no copier. Valid after the end, too.
  const std::shared_ptr<CopierRemains>& copier_remains() const { return copier_remains_; }

 private:
  using Join = std::shared_ptr<void>;
  struct Pending {
    uint32_t type;
    uint64_t request_id;
    uint32_t subject;  // what most requests name first
  };
  // What client memory is reached with. A copier that is blocked keeps it when the session is gone.
  struct MemoryParts {
    memory::AtomicLocks locks;
    std::vector<std::pair<uint32_t, std::shared_ptr<memory::Region>>> regions;  // by handle
  };

  void SendReply(std::span<uint8_t> reply, int fd);
  void AnnounceChunks();
  void AnnounceWorkers();
  void ContinueEnd();
  void DropCmIds();
  // XRC_RECV: it is the session's no more. True: nor anybody else's, and workers must forget it.
  bool LetGoOfTarget(uint32_t handle);
  // 0: of all contexts. `join` is let go when the workers have answered.
  void UnlinkObjectsOf(uint32_t context, const Join& join);
  void FreeObjectsOf(uint32_t context);
  void FreeAll();
  // The event for a block of so many bytes that was not granted: it names the limit.
  void TellNoMemory(uint64_t bytes, const Status& refused);
  void ChargeSegment();
  Status StartCopier();
  void AddSetUpTime();
  void MakeRoomForReady();

  const SessionId id_;
  Services& services_;
  tenant::Pool& pool_;
  const bool trusted_;
  Peer peer_;
  MessageSink& sink_;
  const std::shared_ptr<ClientLane> lane_;
  uint64_t blocking_ = 0;  // call of RunBlocking that is out
  int64_t attached_ns_;
  bool greeted_ = false;
  uint32_t library_minor_ = 0;
  bool ending_ = false;
  bool ended_ = false;
  std::optional<Pending> pending_;
  TimePoint request_began_;
  struct {
    uint32_t qp = 0;
    bool finished = false;
  } counted_;
  Join end_waits_for_pending_;

  const std::shared_ptr<ReadyReserve> reserve_;
  shm::Segment segment_;
  uint64_t segment_charged_ = 0;
  uint64_t segment_taken_over_ = 0;  // of that: the reserve had paid for it
  std::vector<tenant::Charge> chunk_descriptors_;
  size_t chunks_announced_ = 0;
  EventBacklog event_backlog_;  // before the channels in objects_
  Objects objects_;
  Doorbells doorbells_;

  bool linked_ = false;
  shm::Block lines_;  // rocegw_worker_line per worker
  std::vector<UniqueFd> wake_fds_;
  bool memory_reachable_ = false;
  rocegw_memory_way memory_way_ = ROCEGW_MEMORY_CROSS;
  std::shared_ptr<MemoryParts> memory_parts_;
  std::shared_ptr<memory::ForeignMemory> memory_;
  memory::DescriptorMemory* descriptor_memory_ = nullptr;  // memory_ when it is one
  std::unique_ptr<memory::Copier> copier_;                 // untrusted sessions
  std::shared_ptr<CopierRemains> copier_remains_;
};

}  // namespace rocegw::session
