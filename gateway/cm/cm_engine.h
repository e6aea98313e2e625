// SPDX-License-Identifier: Apache-2.0
// The connection manager: what ib_cm and rdma_cm do in a kernel, for the programs of this gateway.
// RC connections (REQ, REP, RTU, REJ, MRA, DREQ, DREP) and UD address exchange (SIDR) in both
// roles, over rdma_cm's IP addressing.
//
// A pure engine: messages, commands and time go in, actions come out. No IO, no clock, no threads
// of its own. It belongs to the control thread; no call blocks. After every call the caller carries
// out the actions and arranges for OnDeadline to be called at deadline(). A destination of a
// datagram may be a local address: the caller gives such a datagram back to OnDatagram with source
// and destination as sent.
//
// All state is bounded by CmConfig. Messages from strangers cost at most one answer each, within a
// rate.
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

namespace rocegw::cm {

struct Core;

struct DataPath {
  bool wait = false;  // not known yet: ask again when the peer is among CmActions::settled
  std::optional<verbs::ChannelTarget> channel;  // nothing: native RC
  const char* reason = "";                      // static text, one line
  bool silent = false;  // the peer did not answer: it may yet, if asked again
};

class CmEngine {
 public:
  // `random` outlives the engine.
  CmEngine(const CmConfig& config, RandomSource& random);
  ~CmEngine();
  CmEngine(const CmEngine&) = delete;
  CmEngine& operator=(const CmEngine&) = delete;

  // The addresses that programs may bind and peers may reach, from now on. The first one stands for
  // loopback. Existing ids keep what they have.
  void SetAddresses(std::span<const LocalAddress> addresses);

  // The pool of a session if that pool owns addresses, else 0: sessions of different owners share
  // no address and no port.
  void SetAddressOwner(std::function<uint64_t(SessionId)> owner);

  // What this gateway offers to other gateways, from now on.
  void SetGateway(const GatewaySettings& settings);

  // A datagram that came to QP1 (256 bytes, Q_Key checked), with the QP it came from. kNone, or why
  // it was of no use.
  metrics::DropReason OnDatagram(std::span<const uint8_t> bytes, const wire::RxMeta& meta,
                                 Qpn source_qpn, TimePoint now, CmActions& actions);
  metrics::DropReason OnMad(const wire::CmMad& mad, const wire::RxMeta& meta, Qpn source_qpn,
                            TimePoint now, CmActions& actions);

  // 0 or errno; with an error nothing has changed. EINVAL for an id that is not the owner's.
  int OnCommand(const CmCommand& command, TimePoint now, CmActions& actions);

  // The process is gone: everything it had ends as DestroyId would end it.
  void DropOwner(SessionId owner, TimePoint now, CmActions& actions);

  // Does what is due. Never too early; the more often it is late, the later peers are asked again.
  void OnDeadline(TimePoint now, CmActions& actions);
  TimePoint deadline() const;  // kNever: nothing is waited for

  // How its owner calls the id: said with every event of it from now on.
  void Name(CmHandle id, uint32_t name);

  // There is to be room for so many connections more at any time, so that one allocates nothing
  // from its id or request on until it is established. Whoever comes first uses it.
  void Keep(size_t connections);
  // A bounded piece of work towards that. False: there was nothing to do.
  bool Refill();
  // Something was taken since.
  bool wants_refill() const;

  // 0, or EINVAL when the id is not the owner's.
  int QueryId(SessionId owner, CmHandle id, IdInfo& out) const;
  // rdma_init_qp_attr; also EINVAL when the connection does not know yet.
  int InitQpAttributes(SessionId owner, CmHandle id, QpState state, QpAttributes& out) const;

  // What the data of a queue pair that goes to RTR may travel on; asks for what is not known of the
  // peer. `allowed`: options that the program wants (ibv_set_ece).
  DataPath ChooseDataPath(const wire::Gid& source, const wire::Gid& peer, Qpn destination,
                          uint32_t allowed, TimePoint now, CmActions& actions);
  // Whether the fleet says that the address is a gateway's.
  void SetMember(const wire::Gid& peer, bool member);
  void SetKeys(const FleetKeys& keys);
  // The peer is not what it was: a channel to it was reset.
  void ForgetPeer(const wire::Gid& peer, CmActions& actions);

  const Discovery& discovery() const;
  const CmCounters& counters() const;
  // The GUID that names this instance towards that peer (Core::CaGuidFor).
  uint64_t CaGuidFor(const wire::Gid& peer) const;
  size_t id_count() const;
  size_t connection_count() const;  // in timewait and orphans too
  size_t port_count() const;
  std::vector<ConnectionRow> Connections() const;
  std::vector<IdRow> Ids() const;

 private:
  std::unique_ptr<Core> core_;
};

}  // namespace rocegw::cm
