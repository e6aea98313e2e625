// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/describe.h"

#include <cstdio>

#include "gateway/wire/describe/describe.h"

namespace rocegw::cm {
namespace {

// IBTA table 106, by number.
constexpr const char* kReasons[] = {
    "none",
    "no QP available",
    "no EE context available",
    "no resources",
    "timeout",
    "unsupported request",
    "invalid communication ID",
    "invalid communication instance",
    "nobody listens on the service",
    "invalid transport type",
    "stale connection",
    "RDC does not exist",
    "primary GID rejected",
    "primary LID rejected",
    "primary service level rejected",
    "primary traffic class rejected",
    "primary hop limit rejected",
    "primary packet rate rejected",
    "alternate path rejected",
    "alternate LID rejected",
    "alternate service level rejected",
    "alternate traffic class rejected",
    "alternate hop limit rejected",
    "alternate packet rate rejected",
    "CM redirect",
    "port redirect",
    "path MTU not possible",
    "too few responder resources",
    "refused by the program",
    "RNR retry count rejected",
    "duplicate local communication ID",
    "invalid class version",
    "invalid primary flow label",
    "invalid alternate flow label",
    "reserved",
    "vendor option not supported",
};

}  // namespace

ConnectionRow RowOf(const Connection& connection) {
  ConnectionRow row;
  row.owner = connection.owner;
  row.id = connection.id;
  row.state = StateName(connection.state);
  row.active = connection.active;
  row.datagram = connection.state >= ConnectionState::kSidrReqSent;
  row.local_comm_id = connection.local_comm_id;
  row.remote_comm_id = connection.remote_comm_id;
  row.remote_ca_guid = connection.remote_ca_guid;
  row.local_qpn = connection.local_qpn;
  row.remote_qpn = connection.remote_qpn;
  row.local_gid = connection.path.source;
  row.remote_gid = connection.path.destination;
  row.path_mtu = connection.path_mtu == 0 ? 0 : 128u << connection.path_mtu;
  row.ece = connection.ece;
  row.reason = connection.reason;
  row.created = connection.created;
  return row;
}

IdRow RowOf(const Id& id, const IdInfo& info) {
  IdRow row;
  row.owner = id.owner;
  row.id = id.handle;
  row.state = StateName(id.state);
  row.info = info;
  row.backlog = id.backlog;
  row.waiting_requests = id.waiting_requests;
  return row;
}

std::string Describe(const ConnectionRow& row) {
  char text[320];
  std::snprintf(text, sizeof text,
                " comm=0x%x>0x%x qp=0x%x>0x%x mtu=%u ece: sent 0x%x/0x%x received 0x%x/0x%x, %s",
                row.local_comm_id, row.remote_comm_id, row.local_qpn.value, row.remote_qpn.value,
                row.path_mtu, row.ece.sent.vendor_id, row.ece.sent.options,
                row.ece.received.vendor_id, row.ece.received.options, row.ece.verdict);
  std::string out = row.active ? "active " : "passive ";
  out += row.state;
  out += " " + wire::ToString(row.local_gid) + ">" + wire::ToString(row.remote_gid) + text;
  if (row.ece.agreed != 0) out += " (" + wire::OptionText(row.ece.agreed) + ")";
  if (row.reason != 0) {
    out += "; rejected: ";
    out += RejectReasonText(row.reason);
  }
  return out;
}

const char* RejectReasonText(uint16_t reason) {
  return reason < std::size(kReasons) ? kReasons[reason] : "reserved";
}

}  // namespace rocegw::cm
