// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/connection/dispatch.h"

#include "gateway/cm/connection/handlers.h"
#include "gateway/cm/connection/state_table.h"

namespace rocegw::cm {
namespace {

// Finds the connection of a message, and compares fields that only the right peer can know.
struct Finder {
  Core& core;
  const Inbound& in;

  Connection* operator()(const wire::CmReq& m) const {
    return core.connections.ByRemoteId(in.meta.source, m.local_ca_guid, m.local_comm_id);
  }
  Connection* operator()(const wire::CmMra& m) const {
    return Pair(m.local_comm_id, m.remote_comm_id);
  }
  Connection* operator()(const wire::CmRej& m) const {
    // A peer that gives up its REQ does not know our ID, and identifies itself by its GUID.
    if (m.reason == wire::RejectReason::kTimeout && m.info_length >= sizeof(uint64_t)) {
      uint64_t guid = 0;
      for (size_t i = 0; i < sizeof guid; ++i) guid = guid << 8 | m.info[i];
      Connection* const found = core.connections.ByRemoteId(in.meta.source, guid, m.local_comm_id);
      if (found != nullptr) return found;
    }
    if (m.answered == wire::CmAnswered::kReq) return core.connections.ByLocalId(m.remote_comm_id);
    return Pair(m.local_comm_id, m.remote_comm_id);
  }
  Connection* operator()(const wire::CmRep& m) const {
    return Pair(m.local_comm_id, m.remote_comm_id);
  }
  Connection* operator()(const wire::CmRtu& m) const {
    return Pair(m.local_comm_id, m.remote_comm_id);
  }
  Connection* operator()(const wire::CmDreq& m) const {
    return Pair(m.local_comm_id, m.remote_comm_id);
  }
  Connection* operator()(const wire::CmDrep& m) const {
    return Pair(m.local_comm_id, m.remote_comm_id);
  }
  Connection* operator()(const wire::CmSidrReq& m) const {
    return core.connections.BySidrRequest(in.meta.source, m.request_id);
  }
  Connection* operator()(const wire::CmSidrRep& m) const {
    return core.connections.ByLocalId(m.request_id);
  }
  Connection* operator()(const wire::CmPathMigration&) const { return nullptr; }

  Connection* Pair(uint32_t theirs, uint32_t ours) const {
    Connection* found = core.connections.ByLocalId(ours);
    if (found == nullptr) return nullptr;
    const bool unknown =
        found->state == ConnectionState::kReqSent || found->state == ConnectionState::kReqDelayed;
    return unknown || found->remote_comm_id == theirs ? found : nullptr;
  }
};

bool FromItsPeer(const Connection& connection, const Inbound& in) {
  return connection.path.destination == in.meta.source &&
         connection.path.source == in.meta.destination;
}

// Handles a message without a connection: examines new requests, tells a peer with a stale
// connection that there is none, and drops the rest.
struct Stranger {
  Core& core;
  const Inbound& in;
  Step& step;

  DropReason operator()(const wire::CmReq&) const { return OnNewRequest(core, in, step); }
  DropReason operator()(const wire::CmSidrReq&) const { return OnNewSidrRequest(core, in, step); }
  DropReason operator()(const wire::CmRep& m) const {
    wire::CmRej rej;
    rej.local_comm_id = m.remote_comm_id;
    rej.remote_comm_id = m.local_comm_id;
    rej.answered = wire::CmAnswered::kRep;
    rej.reason = wire::RejectReason::kInvalidCommId;
    return Told(rej);
  }
  DropReason operator()(const wire::CmDreq& m) const {
    wire::CmDrep drep;
    drep.local_comm_id = m.remote_comm_id;
    drep.remote_comm_id = m.local_comm_id;
    return Told(drep);
  }
  template <typename Other>
  DropReason operator()(const Other&) const {
    return DropReason::k_cm_unmatched;
  }

  DropReason Told(const wire::CmBody& answer) const {
    return core.Reply(in, answer, step) ? DropReason::k_cm_unmatched : DropReason::k_mad_rate;
  }
};

}  // namespace

DropReason Dispatch(Core& core, const Inbound& in, Step& step) {
  ++core.counters.mads_received;
  Connection* connection = std::visit(Finder{core, in}, in.mad.body);
  if (connection == nullptr) return std::visit(Stranger{core, in, step}, in.mad.body);
  if (!FromItsPeer(*connection, in)) return DropReason::k_cm_unmatched;
  const Handler handler = HandlerFor(connection->state, in.mad.body.index());
  if (handler == nullptr) return DropReason::k_cm_state;
  return handler(core, *connection, in, step);
}

}  // namespace rocegw::cm
