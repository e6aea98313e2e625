// SPDX-License-Identifier: Apache-2.0
// Connection manager between its three neighbours: passes commands from the sessions, events to
// their channels, and datagrams from and to QP1 through the workers. Records which session owns
// which id, and arms the engine's next deadline. Owner: session server, control thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/cm/cm_engine.h"
#include "gateway/loop/control_loop.h"
#include "gateway/metrics/drop_reason.h"
#include "gateway/session/cm/reachability.h"
#include "gateway/session/cm/route_lookup.h"
#include "gateway/session/objects/objects.h"
#include "gateway/session/reserve/random.h"
#include "gateway/worker/control/control_message.h"

namespace rocegw::session {

class ClientSession;
class RefillTimer;
struct Services;

class CmBinding {
 public:
  // Time that the engine adds to a program's timeout of an address resolution, for a kernel that
  // does not report.
  static constexpr uint32_t kLookupMs = 500;

  using FindSession = std::function<ClientSession*(SessionId)>;

  // `find_session`: returns the session of an owner.
  CmBinding(Services& services, RefillTimer& refill, FindSession find_session, SourceLookup lookup);
  ~CmBinding();
  CmBinding(const CmBinding&) = delete;
  CmBinding& operator=(const CmBinding&) = delete;

  // Updates the addresses of the devices and their owners.
  void DevicesChanged();

  // Runs a command for an id of the session. Returns 0 or errno.
  using Body = decltype(cm::CmCommand::body);
  int Run(ClientSession& session, cm::CmHandle id, const Body& body);
  // Returns a handle for an id that a client creates.
  cm::CmHandle NextHandle() { return {next_handle_++}; }
  // Sets the client's handle of an id.
  void Name(cm::CmHandle engine, uint32_t handle) { engine_.Name(engine, handle); }

  // See CmEngine.
  void Keep(size_t connections) { engine_.Keep(connections); }
  bool Refill() { return engine_.Refill(); }

  // Enables waiting: from now on an id that resolves an address waits for the next hop of its
  // destination.
  void WaitForNeighbours();

  // Finds an id by the client's handle; nullptr: none. The first use of the handle marks a
  // connection request's id as fetched.
  CmId* Named(ClientSession& session, uint32_t handle);

  // Looks up the route of an id, waits at most `timeout` for the next hop, and answers the engine.
  void ResolveAddress(ClientSession& session, cm::CmHandle id, const cm::Endpoint& source,
                      const cm::Endpoint& destination, Duration timeout);

  // Returns 0, or EADDRNOTAVAIL if another pool owns the address that the program uses as its own.
  int LocalAddress(ClientSession& session, const cm::Endpoint& address) const;

  bool Query(SessionId owner, cm::CmHandle id, cm::IdInfo& out) const;
  int InitQpAttributes(const ClientSession& session, cm::CmHandle id, cm::QpState state,
                       cm::QpAttributes& out) const;

  // Reports the failure of a request without an answer on the id's channel, if the request was a
  // step of a connection.
  void OnUnanswered(ClientSession& session, uint32_t request, uint32_t handle, int error);

  // Destroys everything of an ended session.
  void DropSession(ClientSession& session);
  // Handles data that arrived before the RTU.
  void OnCommEstablished(ClientSession& session, Qpn qpn);

  // Sets what this gateway offers to others; acceptor QPNs by worker.
  void OfferChannels(const std::vector<Qpn>& acceptors);
  // `wait` in the result: not known yet; WithDataPath waits for it.
  cm::DataPath ChooseDataPath(const wire::Path& path, Qpn destination, uint32_t allowed);
  // Calls then(const cm::DataPath&) once with the data path to `destination`: at once and without
  // allocating if it is known, else when discovery has finished; the session may be ending then.
  template <typename Then>
  void WithDataPath(const wire::Path& path, Qpn destination, uint32_t allowed, Then then) {
    const cm::DataPath chosen = ChooseDataPath(path, destination, allowed);
    if (!chosen.wait) return then(chosen);
    WhenSettled(path.destination, [this, path, destination, allowed, then = std::move(then)] {
      then(ChooseDataPath(path, destination, allowed));
    });
  }
  // Forgets a peer after the reset of a channel to it: it may be another instance.
  void ForgetPeer(const wire::Gid& peer) {
    engine_.ForgetPeer(peer, actions_);
    CarryOut();
  }
  // Records if the fleet's configuration names the address as a gateway.
  void SetMember(const wire::Gid& peer, bool member) { engine_.SetMember(peer, member); }
  void SetKeys(const FleetKeys& keys) { engine_.SetKeys(keys); }

  void OnMad(const worker::MadReceived& mad);

  // For a gateway that rests, or has not begun: no deadline runs, and no id waits for a next hop.
  // Afterwards the ids that resolve an address wait again, also those of a state that was read.
  void SetResting(bool rests);
  // Returns why the state cannot be written now; nullptr: it can.
  const char* Unsettled() const;
  // Writes the state, or reads it into a binding that has done nothing. Call CarryOut then.
  void HandOver(hand_over::StateStream& state);
  void HandOverInstance(hand_over::StateStream& state) { engine_.HandOverInstance(state); }
  // Carries out the engine's actions until there are none, then arms the timer.
  void CarryOut();

  const cm::CmEngine& engine() const { return engine_; }
  // Returns the number of unused datagrams to QP1, by reason.
  uint64_t drops(metrics::DropReason reason) const { return drops_[static_cast<size_t>(reason)]; }

 private:
  class EngineRandom final : public cm::RandomSource {
   public:
    explicit EngineRandom(Random& random) : random_(random) {}
    uint64_t Next() override { return random_.Next64(); }

   private:
    Random& random_;
  };

  bool MayWait(const Route& route) const;
  void ResolveAgain();
  // Returns the device that has this address; -1: none.
  int DeviceOf(const wire::Gid& gid) const;
  static cm::CmConfig ConfigFor(const Services& services);
  void WhenSettled(const wire::Gid& peer, std::function<void()> then);
  void TellIfUnauthenticated(const wire::Gid& peer);
  void TellSilent(const cm::SilentPeer& silent);
  void Deliver(const cm::CmEvent& event);
  void DeliverRequest(ClientSession& session, uint32_t listener, const cm::CmEvent& event);
  void SendMad(const cm::SendMad& mad);
  void ArmTimer();

  Services& services_;
  RefillTimer& refill_;
  const FindSession find_session_;
  RecentSources sources_;
  std::unique_ptr<Reachability> reachability_;
  EngineRandom random_;
  cm::CmEngine engine_;
  cm::CmActions actions_;
  cm::CmActions carried_;  // actions in progress
  bool carrying_out_ = false;
  bool rests_ = false;
  GrowingRing<cm::SendMad> looped_;   // datagrams to one of our own addresses
  GrowingRing<cm::CmCommand> later_;  // commands that the actions caused
  std::multimap<wire::Gid, std::function<void()>>
      waiting_;  // functions that wait for discovery of a peer
  uint64_t next_handle_ = 1;
  std::array<uint64_t, metrics::kDropReasonCount> drops_{};
  ControlLoop::TimerId timer_ = 0;
  TimePoint timer_at_ = kNever;
};

}  // namespace rocegw::session
