// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/qp_attributes.h"

#include <cerrno>

namespace rocegw::cm {
namespace {

// Returns true once the peer's QPN and PSN are known.
bool PeerKnown(ConnectionState state) {
  switch (state) {
    case ConnectionState::kReqReceived:
    case ConnectionState::kRepSent:
    case ConnectionState::kRepDelayed:
    case ConnectionState::kRepReceived:
    case ConnectionState::kEstablished:
      return true;
    default:
      return false;
  }
}

void SetInit(const Id& id, const Connection* connection, QpAttributes& out) {
  out.mask = kQpState | kQpPkeyIndex | kQpPort | kQpAccessFlags;
  if (connection == nullptr) return;
  out.access = kAccessRemoteWrite;
  if (Responds(id.qp_type) && connection->responder_resources > 0) {
    out.access |= kAccessRemoteRead | kAccessRemoteAtomic;
  }
}

void SetReadyToReceive(const Id& id, const Connection& connection, QpAttributes& out) {
  out.mask = kQpState | kQpAv | kQpPathMtu | kQpDestQpn | kQpRqPsn;
  out.destination_gid = id.destination_gid;
  out.source_gid_index = id.source_gid_index;
  out.flow_label = id.flow_label;
  out.hop_limit = id.hop_limit;
  out.traffic_class = id.traffic_class;
  out.path_mtu = connection.path_mtu;
  out.dest_qpn = connection.remote_qpn;
  out.rq_psn = connection.local_psn;
  if (Responds(id.qp_type)) {
    out.mask |= kQpMaxDestRdAtomic | kQpMinRnrTimer;
    out.max_dest_rd_atomic = connection.responder_resources;
  }
}

void SetReadyToSend(const Id& id, const Connection& connection, QpAttributes& out) {
  out.mask = kQpState | kQpSqPsn;
  out.sq_psn = connection.remote_psn;
  if (Requests(id.qp_type) || Responds(id.qp_type)) {
    out.mask |= kQpTimeout;
    out.timeout = id.has_ack_timeout ? id.ack_timeout : connection.ack_timeout;
  }
  if (Requests(id.qp_type)) {
    out.mask |= kQpRetryCount | kQpRnrRetry | kQpMaxRdAtomic;
    out.retry_count = connection.retry_count;
    out.rnr_retry = connection.rnr_retry_count;
    out.max_rd_atomic = connection.initiator_depth;
  }
}

}  // namespace

int InitQpAttributes(const Id& id, const Connection* connection, QpState wanted,
                     QpAttributes& out) {
  if (id.device < 0) return EINVAL;
  out = QpAttributes{};
  out.state = wanted;
  if (id.qp_type == QpType::kUd) {
    out.mask = kQpState | kQpPkeyIndex | kQpPort | kQpQkey;
    out.qkey = kUdpQkey;
    return 0;
  }
  switch (wanted) {
    case QpState::kInit:
      SetInit(id, connection, out);
      return 0;
    case QpState::kRtr:
      if (connection == nullptr || !PeerKnown(connection->state)) return EINVAL;
      SetReadyToReceive(id, *connection, out);
      return 0;
    case QpState::kRts:
      if (connection == nullptr || !PeerKnown(connection->state)) return EINVAL;
      SetReadyToSend(id, *connection, out);
      return 0;
  }
  return EINVAL;
}

}  // namespace rocegw::cm
