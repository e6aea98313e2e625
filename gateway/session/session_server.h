// SPDX-License-Identifier: Apache-2.0
// The control thread's part of the gateway: attach socket, sessions, their talk with the workers,
// and what others may know about them. Made before the loop runs; destroyed after Shutdown has
// reported and the loop has ended. All calls on the control thread unless said otherwise.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "gateway/port/steering.h"
#include "gateway/session/attach/attach_server.h"
#include "gateway/session/attach/peer_review.h"
#include "gateway/session/attach/slot_sockets.h"
#include "gateway/session/cm/cm_binding.h"
#include "gateway/session/control_loop.h"
#include "gateway/session/drain.h"
#include "gateway/session/fleet_peers.h"
#include "gateway/session/options.h"
#include "gateway/session/services.h"
#include "gateway/session/state/captures.h"
#include "gateway/session/state/state_rows.h"

namespace rocegw::session {

class SessionServer {
 public:
  // Links must outlive this object; their control_wake_fd may be one for all.
  SessionServer(ControlLoop& loop, const std::vector<worker::WorkerLink*>& links,
                const port::SteeringTable& steering, std::vector<Device> devices, Options options,
                Log log, SourceLookup lookup = SourceByKernel);
  ~SessionServer();
  SessionServer(const SessionServer&) = delete;
  SessionServer& operator=(const SessionServer&) = delete;

  // The main attach socket, of the default pool.
  Status Listen(const SocketPlace& place) { return attach_.Listen(place, kDefaultPool); }
  // A connected socket, as if it had come through an attach socket of the pool, with that path.
  void Attach(UniqueFd socket, const std::string& pool = kDefaultPool,
              const std::string& path = "") {
    attach_.Attach(std::move(socket), *services_.pools.FindPool(pool), path);
  }

  // What the configuration says. The default pool and its tenant do not go: they get what they had
  // without any configuration.
  void SetCapacity(const tenant::Amounts& capacity);
  void SetTenant(const tenant::TenantSettings& tenant);
  void RemoveTenant(const std::string& name);
  // The attach sockets of a pool before it is set (slot_sockets.h), and those of one that is not
  // there after all.
  Status MakeSlots(const tenant::PoolSettings& pool, const SlotRights& rights) {
    return slots_.Make(pool, rights);
  }
  void DropSlots(const std::string& pool) { slots_.Remove(pool); }
  void SetPool(const tenant::PoolSettings& pool, const SlotRights& rights);
  void RemovePool(const std::string& name);
  // Addresses of another gateway of the fleet, "gateways/G"; none: it is gone.
  void SetPeer(const std::string& name, const std::vector<wire::Gid>& addresses) {
    fleet_peers_.Set(name, addresses);
  }
  // Keys that the gateways of the fleet share, in place of those before.
  void SetKeys(const FleetKeys& keys);
  // What the configuration says about draining, and what was asked for here.
  void OrderDrain(const DrainOrder& order) { drain_.Order(order, WallClockNs()); }
  void OrderDrainLocally(bool drain) { drain_.OrderLocally(drain, WallClockNs()); }

  const SlotSockets& slots() const { return slots_; }
  // When all pools are there for the first time.
  void RemoveLeftoverSlots() const { slots_.RemoveLeftovers(); }

  // Addresses, MTU or state of a device changed. Its index stays; GIDs keep theirs.
  void UpdateDevice(size_t index, Device device);

  // Any thread. `done` runs on the control thread, or at once with an empty snapshot when the loop
  // has ended. Ports and workers are left to the caller, who knows them.
  void Snapshot(const StateQuery& query, std::function<void(StateSnapshot)> done);

  // Takes no more clients, ends all sessions; `done` when the last is gone. Workers must still be
  // running.
  void Shutdown(std::function<void()> done);

  // Ends the sessions of an attach socket; yields how many are still ending. expect_program: one
  // should come by it soon, else an event says that it has not.
  uint32_t ClearSocket(const std::string& path, bool expect_program = false) {
    attach_.Expect(path, expect_program);
    return attach_.Clear(path, "its attach socket is given to somebody else");
  }

  // Attaches that wait for a verdict.
  AttachGate& gate() { return attach_.gate(); }
  Services& services() { return services_; }
  Captures& captures() { return captures_; }
  const CmBinding& cm() const { return *cm_; }
  size_t session_count() const { return attach_.session_count(); }
  // Sessions that have ended but for calls that their programs block.
  size_t blocked_count() const { return attach_.blocked_count(); }
  // Sessions and their queue pairs, with the first few that hold any.
  DrainRow Holders() const;

 private:
  void AfterRound();
  // A number of each worker at which other gateways open channels.
  std::vector<Qpn> UseChannels();
  void SetMember(const wire::Gid& peer, bool member);
  // The pool of that name, if it is another than the new one.
  void CloseReserveOf(const std::string& name, const std::string& new_uid);
  // Pools changed: programs may see other addresses now.
  void AddressesMoved();
  void AtDrainDeadline(OnDeadline action);
  // Of a queue pair that several sessions have open: each of them hears of it.
  void TellOpeners(const worker::AsyncEventRaised& event);
  // Of such a queue pair: as its first opener's.
  void AssignToOpener(worker::QpSnapshot& qp) const;
  void AddDataPath(const worker::QpSnapshot& from, QpRow& row);
  void AddSrqRow(const worker::SrqSnapshot& from, StateSnapshot& snapshot);
  void AddQps(const std::shared_ptr<StateSnapshot>& snapshot, const StateQuery& query,
              std::function<void(StateSnapshot)> done);
  void AddSrqs(const std::shared_ptr<StateSnapshot>& snapshot,
               std::function<void(StateSnapshot)> done);
  void AddPeers(const std::shared_ptr<StateSnapshot>& snapshot,
                std::function<void(StateSnapshot)> done);
  void AddChannels(const std::shared_ptr<StateSnapshot>& snapshot,
                   std::function<void(StateSnapshot)> done);
  void TakeSnapshot(const StateQuery& query, std::function<void(StateSnapshot)> done);

  Services services_;
  std::unique_ptr<CmBinding> cm_;
  PeerReview peer_review_{services_, attach_};
  FleetPeers fleet_peers_{[this](const wire::Gid& peer, bool member) { SetMember(peer, member); }};
  AttachServer attach_;
  Captures captures_;
  SlotSockets slots_;
  Drain drain_;
  std::vector<ControlLoop::WatchId> watches_;
  ControlLoop::TimerId retry_timer_ = 0;
  std::function<void()> shutdown_done_;
};

}  // namespace rocegw::session
