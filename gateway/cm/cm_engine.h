// SPDX-License-Identifier: Apache-2.0
// Connection manager: does for the programs of this gateway what ib_cm and rdma_cm do in a kernel.
// RC connections (REQ, REP, RTU, REJ, MRA, DREQ, DREP) and UD address exchange (SIDR) in both
// roles, with rdma_cm's IP addressing.
//
// The engine takes messages, commands and time, and returns actions: no IO, clock or threads. It
// belongs to the control thread, and no call blocks. After each call the caller carries out the
// actions and arranges for OnDeadline to be called at deadline(). If the destination of a datagram
// is a local address, the caller passes the datagram to OnDatagram with source and destination as
// sent.
//
// CmConfig bounds all state. A stranger's message costs at most one answer, within a rate limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/time.h"
#include "gateway/cm/cm_action.h"
#include "gateway/cm/cm_command.h"
#include "gateway/cm/cm_config.h"
#include "gateway/cm/cm_counters.h"
#include "gateway/cm/cm_types.h"
#include "gateway/cm/describe.h"
#include "gateway/cm/path/discovery.h"
#include "gateway/cm/qp_attributes.h"
#include "gateway/metrics/drop_reason.h"
#include "gateway/verbs/channel_target.h"
#include "gateway/wire/datagram.h"
#include "gateway/wire/mad.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::cm {

struct Core;

struct DataPath {
  bool wait = false;  // not known yet: ask again when the peer appears in CmActions::settled
  std::optional<verbs::ChannelTarget> channel;  // empty: native RC
  const char* reason = "";                      // static text, one line
  bool silent = false;  // the peer did not answer; it may answer a later question
};

// Id that waits for the next hop of its destination.
struct ResolvingId {
  SessionId owner;
  CmHandle id;
  Endpoint local;
  Endpoint remote;
  TimePoint deadline;
};

class CmEngine {
 public:
  // `random` must outlive the engine.
  CmEngine(const CmConfig& config, RandomSource& random);
  ~CmEngine();
  CmEngine(const CmEngine&) = delete;
  CmEngine& operator=(const CmEngine&) = delete;

  // Sets the addresses that programs may bind and peers may reach. The first address stands for
  // loopback. Existing ids keep theirs.
  void SetAddresses(std::span<const LocalAddress> addresses);

  // Sets the function that returns the pool of a session if that pool owns addresses, else 0.
  // Sessions of different owners share no address and no port.
  void SetAddressOwner(std::function<uint64_t(SessionId)> owner);

  // Sets the function that returns the pool of a session, for the shares of ephemeral ports and of
  // connections that are kept without an id (orphans.h). Without it each session counts alone.
  void SetPoolOf(std::function<uint64_t(SessionId)> pool_of);

  // Sets the properties that this gateway offers to other gateways.
  void SetGateway(const GatewaySettings& settings);

  // Processes a datagram that arrived at QP1 (256 bytes, Q_Key checked) from the given QP. Returns
  // kNone, or why it was ignored.
  metrics::DropReason OnDatagram(std::span<const uint8_t> bytes, const wire::RxMeta& meta,
                                 Qpn source_qpn, TimePoint now, CmActions& actions);
  metrics::DropReason OnMad(const wire::CmMad& mad, const wire::RxMeta& meta, Qpn source_qpn,
                            TimePoint now, CmActions& actions);

  // Executes a command. Returns 0 or errno; on an error nothing has changed. EINVAL for an id of
  // another owner.
  int OnCommand(const CmCommand& command, TimePoint now, CmActions& actions);

  // Ends the objects of a process that exited, each as DestroyId would.
  void DropOwner(SessionId owner, TimePoint now, CmActions& actions);

  // Does all work that is due at `now`. Calls may be late; lateness only delays later questions to
  // peers.
  void OnDeadline(TimePoint now, CmActions& actions);
  TimePoint deadline() const;  // kNever: nothing is due

  // Sets the owner's name for an id. Every later event of the id carries it.
  void Name(CmHandle id, uint32_t name);

  // Keeps memory ready for so many further connections, so that a connection allocates nothing
  // between its id or request and its establishment. The first user takes it.
  void Keep(size_t connections);
  // Does a bounded piece of that work. Returns false if there was none.
  bool Refill();
  // Returns true if memory was taken since the last Refill.
  bool wants_refill() const;

  // Returns 0, or EINVAL if the id belongs to another owner.
  int QueryId(SessionId owner, CmHandle id, IdInfo& out) const;
  // Implements rdma_init_qp_attr. Also EINVAL while the connection does not know the attributes
  // yet.
  int InitQpAttributes(SessionId owner, CmHandle id, QpState state, QpAttributes& out) const;

  // Chooses what carries the data of a queue pair that goes to RTR, and asks an unknown peer.
  // `allowed`: options that the program accepts (ibv_set_ece).
  DataPath ChooseDataPath(const wire::Gid& source, const wire::Gid& peer, Qpn destination,
                          uint32_t allowed, TimePoint now, CmActions& actions);
  // Records if the fleet's configuration names the address as a gateway.
  void SetMember(const wire::Gid& peer, bool member);
  void SetKeys(const FleetKeys& keys);
  // Forgets what is known of a peer, because a channel to it was reset.
  void ForgetPeer(const wire::Gid& peer, CmActions& actions);

  // Writes the state, or reads it into a new engine with its addresses and settings, for the same
  // sessions (gateway/hand_over). All actions of the writer were carried out. A reader reports in
  // `actions` which peers it knows. If the state is refused, the engine must be destroyed.
  void HandOver(hand_over::StateStream& state, CmActions& actions);
  // The part of it that never changes, for a reader that gets the rest later.
  void HandOverInstance(hand_over::StateStream& state);

  const Discovery& discovery() const;
  const CmCounters& counters() const;
  // Returns the GUID that names this instance towards that peer (Core::CaGuidFor).
  uint64_t CaGuidFor(const wire::Gid& peer) const;
  size_t id_count() const;
  size_t connection_count() const;  // includes timewait and orphans
  size_t port_count() const;
  std::vector<ConnectionRow> Connections() const;
  std::vector<IdRow> Ids() const;
  std::vector<ResolvingId> Resolving() const;

 private:
  std::unique_ptr<Core> core_;
};

}  // namespace rocegw::cm
