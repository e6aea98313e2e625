// SPDX-License-Identifier: Apache-2.0
// The connection manager between its three neighbours: commands of the sessions in, events to their
// channels out, datagrams to and from QP1 through the workers. Keeps which session has which id,
// and the engine's next deadline. Owner: session server, control thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/cm/cm_engine.h"
#include "gateway/metrics/drop_reason.h"
#include "gateway/session/cm/reachability.h"
#include "gateway/session/cm/route_lookup.h"
#include "gateway/session/control_loop.h"
#include "gateway/session/objects/objects.h"
#include "gateway/session/reserve/random.h"
#include "gateway/worker/control_message.h"

namespace rocegw::session {

class ClientSession;
struct Services;

class CmBinding {
 public:
  CmBinding(Services& services, SourceLookup lookup);
  ~CmBinding();
  CmBinding(const CmBinding&) = delete;
  CmBinding& operator=(const CmBinding&) = delete;

  // Finds the session of an owner; set once by the server.
  std::function<ClientSession*(SessionId)> find_session;

  // Addresses of the devices and their owners, after they changed.
  void DevicesChanged();

  // Runs a command for an id of the session; 0 or errno.
  using Body = decltype(cm::CmCommand::body);
  int Run(ClientSession& session, cm::CmHandle id, const Body& body);
  // A name for an id that a client creates.
  cm::CmHandle NextHandle() { return {next_handle_++}; }
  // The client's handle for it.
  void Name(cm::CmHandle engine, uint32_t handle) { engine_.Name(engine, handle); }

  // As CmEngine's.
  void Keep(size_t connections) { engine_.Keep(connections); }
  bool Refill() { return engine_.Refill(); }

  // From now on ids that resolve wait for the next hop of their destination; before, an address
  // resolves without it.
  void WaitForNeighbours();

  // By the client's handle; nullptr: there is none. A request that came in belongs to the program
  // from the first time that it is named.
  CmId* Named(ClientSession& session, uint32_t handle);

  // Looks up the route of an id that resolves, waits at most `timeout` for the next hop, and
  // answers the engine.
  void ResolveAddress(ClientSession& session, cm::CmHandle id, const cm::Endpoint& source,
                      const cm::Endpoint& destination, Duration timeout);

  // 0, or EADDRNOTAVAIL when the address that a program names as its own is another pool's.
  int LocalAddress(ClientSession& session, const cm::Endpoint& address) const;

  bool Query(SessionId owner, cm::CmHandle id, cm::IdInfo& out) const;
  int InitQpAttributes(const ClientSession& session, cm::CmHandle id, cm::QpState state,
                       cm::QpAttributes& out) const;

  // A request about an id failed and nobody waits for its answer: the id's channel tells, if it was
  // a step of a connection.
  void OnUnanswered(ClientSession& session, uint32_t request, uint32_t handle, int error);

  // The session is over: everything it had goes.
  void DropSession(ClientSession& session);
  // Data came before the message that says the connection is there.
  void OnCommEstablished(ClientSession& session, Qpn qpn);

  // What this gateway offers to others; acceptors by worker.
  void OfferChannels(const std::vector<Qpn>& acceptors);
  // `wait`: that is not known yet, and WithDataPath can wait for it.
  cm::DataPath ChooseDataPath(const wire::Path& path, Qpn destination, uint32_t allowed);
  // Calls then(const cm::DataPath&) once, with where data to `destination` may go: at once, without
  // allocating, when that is known, else when discovery has found out; the session may be ending
  // then.
  template <typename Then>
  void WithDataPath(const wire::Path& path, Qpn destination, uint32_t allowed, Then then) {
    const cm::DataPath chosen = ChooseDataPath(path, destination, allowed);
    if (!chosen.wait) return then(chosen);
    WhenSettled(path.destination, [this, path, destination, allowed, then = std::move(then)] {
      then(ChooseDataPath(path, destination, allowed));
    });
  }
  // A channel to the peer was reset: it may be another instance now.
  void ForgetPeer(const wire::Gid& peer) {
    engine_.ForgetPeer(peer, actions_);
    CarryOut();
  }
  // Whether the fleet says that the address is a gateway's.
  void SetMember(const wire::Gid& peer, bool member) { engine_.SetMember(peer, member); }
  void SetKeys(const FleetKeys& keys) { engine_.SetKeys(keys); }

  void OnMad(const worker::MadReceived& mad);

  const cm::CmEngine& engine() const { return engine_; }
  // Datagrams to QP1 that were of no use, by reason.
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
  // By one of its addresses; -1: none.
  int DeviceOf(const wire::Gid& gid) const;
  static cm::CmConfig ConfigFor(const Services& services);
  void WhenSettled(const wire::Gid& peer, std::function<void()> then);
  void TellIfUnauthenticated(const wire::Gid& peer);
  // Carries out what the engine wants, until it wants nothing more; then sets the timer.
  void CarryOut();
  void Deliver(const cm::CmEvent& event);
  void DeliverRequest(ClientSession& session, uint32_t listener, const cm::CmEvent& event);
  void SendMad(const cm::SendMad& mad);
  void ArmTimer();

  Services& services_;
  RecentSources sources_;
  std::unique_ptr<Reachability> reachability_;
  EngineRandom random_;
  cm::CmEngine engine_;
  cm::CmActions actions_;
  cm::CmActions carried_;  // those that are being carried out
  bool carrying_out_ = false;
  GrowingRing<cm::SendMad> looped_;   // to one of our own addresses
  GrowingRing<cm::CmCommand> later_;  // commands that carrying out brought about
  std::multimap<wire::Gid, std::function<void()>> waiting_;  // for what discovery finds out
  uint64_t next_handle_ = 1;
  std::array<uint64_t, metrics::kDropReasonCount> drops_{};
  ControlLoop::TimerId timer_ = 0;
  TimePoint timer_at_ = kNever;
};

}  // namespace rocegw::session
