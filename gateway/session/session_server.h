// SPDX-License-Identifier: Apache-2.0
// Control thread's part of the gateway: attach sockets, sessions, messages to the workers, and
// snapshots of their state. Created before the loop runs; destroyed after Shutdown has reported and
// the loop has ended. All calls on the control thread unless stated otherwise.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "gateway/loop/control_loop.h"
#include "gateway/port/steering.h"
#include "gateway/session/attach/attach_server.h"
#include "gateway/session/attach/peer_review.h"
#include "gateway/session/attach/slot_sockets.h"
#include "gateway/session/cm/cm_binding.h"
#include "gateway/session/drain.h"
#include "gateway/session/fleet_peers.h"
#include "gateway/session/options.h"
#include "gateway/session/reserve/ready_reserve.h"
#include "gateway/session/reserve/refill_timer.h"
#include "gateway/session/services.h"
#include "gateway/session/state/captures.h"
#include "gateway/session/state/state_rows.h"

namespace rocegw::session {

class SessionServer {  // NOLINT(clang-analyzer-optin.performance.Padding)
 public:
  // Links must outlive this object; they may share one control_wake_fd.
  SessionServer(ControlLoop& loop, const std::vector<worker::WorkerLink*>& links,
                const port::SteeringTable& steering, std::vector<Device> devices, Options options,
                Log log, SourceLookup lookup = SourceByKernel);
  ~SessionServer();
  SessionServer(const SessionServer&) = delete;
  SessionServer& operator=(const SessionServer&) = delete;

  // Listens on the main attach socket, for the default pool.
  Status Listen(const SocketPlace& place) { return attach_.Listen(place, kDefaultPool); }
  // Attaches a connected socket as if it had come through the pool's attach socket with that path.
  void Attach(UniqueFd socket, const std::string& pool = kDefaultPool,
              const std::string& path = "") {
    attach_.Attach(std::move(socket), *services_.pools.FindPool(pool), path);
  }

  // Apply the configuration. The default pool and its tenant are never removed: they return to
  // their defaults.
  void SetCapacity(const tenant::Amounts& capacity);
  void SetTenant(const tenant::TenantSettings& tenant);
  void RemoveTenant(const std::string& name);
  // Create a pool's attach sockets before the pool is set (slot_sockets.h), or remove them if
  // setting it failed.
  Status MakeSlots(const tenant::PoolSettings& pool, const SlotRights& rights) {
    return slots_.Make(pool, rights);
  }
  void DropSlots(const std::string& pool) { slots_.Remove(pool); }
  void SetPool(const tenant::PoolSettings& pool, const SlotRights& rights);
  void RemovePool(const std::string& name);
  // Sets the addresses of another gateway of the fleet, "gateways/G"; none: it was removed.
  void SetPeer(const std::string& name, const std::vector<wire::Gid>& addresses) {
    fleet_peers_.Set(name, addresses);
  }
  // Replaces the keys that the gateways of the fleet share.
  void SetKeys(const FleetKeys& keys);
  // Order a drain by the configuration, or locally.
  void OrderDrain(const DrainOrder& order) { drain_.Order(order, WallClockNs()); }
  void OrderDrainLocally(bool drain) { drain_.OrderLocally(drain, WallClockNs()); }
  bool drains_locally() const { return drain_.ordered_locally(); }

  const SlotSockets& slots() const { return slots_; }
  // Removes slot directories without a pool. Call when all pools are set for the first time.
  void RemoveLeftoverSlots() const { slots_.RemoveLeftovers(); }

  // Updates addresses, MTU or state of a device. Its index and the indices of its GIDs stay.
  void UpdateDevice(size_t index, Device device);

  // Takes a snapshot; any thread. `done` runs on the control thread, or at once with an empty
  // snapshot if the loop has ended. The caller adds ports and workers.
  void Snapshot(const StateQuery& query, std::function<void(StateSnapshot)> done);

  // Accepts no more clients and ends all sessions; `done` after the last. Workers must still run.
  void Shutdown(std::function<void()> done);

  // Ends the sessions of an attach socket and returns how many are still ending. expect_program: a
  // program will attach soon, and an event reports if it does not.
  uint32_t ClearSocket(const std::string& path, bool expect_program = false) {
    attach_.Expect(path, expect_program);
    return attach_.Clear(path, "its attach socket is given to somebody else");
  }

  // Stops the deadlines of connections, or lets them run again.
  void SetConnectionsResting(bool rest) { cm_.SetResting(rest); }
  // Hand-over to a gateway that takes over. A reader has Options::awaits_state.
  // State that does not change while the gateway runs. A reader reads it before anything is
  // configured.
  void HandOverFoundation(hand_over::StateStream& state);
  // State that changes, while the gateway rests. A reader reads both when all pools are set. The
  // workers then have messages to apply.
  void HandOverNumbers(hand_over::StateStream& state);
  void HandOverSessions(hand_over::StateStream& state);
  // Most sessions, behind the foundation, when all pools are set (AttachServer::HandOverUnchanged).
  void HandOverUnchanged(hand_over::StateStream& state);

  AttachServer& attach() { return attach_; }
  // Gate of attaches that wait for a verdict.
  AttachGate& gate() { return attach_.gate(); }
  Services& services() { return services_; }
  Captures& captures() { return captures_; }
  CmBinding& cm() { return cm_; }
  const CmBinding& cm() const { return cm_; }
  const ReadyReserves& reserves() const { return reserves_; }
  size_t session_count() const { return attach_.session_count(); }
  // Returns the number of ended sessions of which only blocking calls remain.
  size_t blocked_count() const { return attach_.blocked_count(); }
  // Returns the counts of objects that all sessions hold.
  Totals totals() const;
  // Returns the numbers of sessions and queue pairs, with the first sessions that have queue pairs.
  DrainRow Holders() const;

 private:
  void AfterRound();
  // Calls `add` with the number of each queue pair of the pools in the scope.
  void ListQps(const std::string& scope, const std::function<void(Qpn)>& add);
  // Numbers of a worker at which other gateways open channels, and of its own channels.
  struct ChannelNumbers {
    Qpn acceptor;
    std::vector<Qpn> numbers;

    bool operator==(const ChannelNumbers&) const = default;
  };
  void TakeChannelNumbers();
  std::vector<Qpn> Acceptors() const;
  void UseChannels();
  void HandOverChannels(hand_over::StateStream& state);
  void HandOverPoolCounts(hand_over::StateStream& state);
  void SetMember(const wire::Gid& peer, bool member);
  // Closes the reserve of the pool with that name if its uid differs.
  void CloseReserveOf(const std::string& name, const std::string& new_uid);
  // Updates all users of addresses after pools changed.
  void AddressesMoved();
  void AtDrainDeadline(OnDeadline action);
  // Reports an event of a queue pair that several sessions have open to each of them.
  void TellOpeners(const worker::AsyncEventRaised& event);
  // Assigns the row of such a queue pair to its first opener.
  void AssignToOpener(worker::QpSnapshot& qp) const;
  // Adds what the session knows: the data path, and the modes of endpoints.
  void AddWhatIsKnown(const worker::QpSnapshot& from, QpRow& row);
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

  Drain drain_;
  Services services_;
  RefillTimer refill_;
  CmBinding cm_;
  ReadyReserves reserves_{services_, refill_, cm_};
  Captures captures_;
  PeerReview peer_review_{services_, cm_, attach_};
  FleetPeers fleet_peers_{[this](const wire::Gid& peer, bool member) { SetMember(peer, member); }};
  AttachServer attach_;
  SlotSockets slots_;
  std::vector<ControlLoop::WatchId> watches_;
  ControlLoop::TimerId retry_timer_ = 0;
  std::vector<ChannelNumbers> channel_numbers_;  // by worker; empty: no channels
  std::function<void()> shutdown_done_;
};

}  // namespace rocegw::session
