// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/cm/cm_records.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace rocegw::session {
namespace {

constexpr size_t kV4Offset = 12;

}  // namespace

std::optional<cm::Endpoint> EndpointOf(const rocegw_sockaddr& address) {
  cm::Endpoint endpoint;
  endpoint.port = address.port;
  endpoint.scope_id = address.scope_id;
  endpoint.flow_label = address.flow_info & 0xFFFFF;
  switch (address.family) {
    case 0:
      return cm::Endpoint{};
    case AF_INET:
      endpoint.address = wire::Gid::FromV4(0);
      std::memcpy(endpoint.address.bytes.data() + kV4Offset, address.address, 4);
      endpoint.scope_id = endpoint.flow_label = 0;
      return endpoint;
    case AF_INET6:
      std::memcpy(endpoint.address.bytes.data(), address.address, sizeof address.address);
      return endpoint;
    default:
      return std::nullopt;
  }
}

rocegw_sockaddr SockaddrOf(const cm::Endpoint& endpoint) {
  rocegw_sockaddr address{};
  if (endpoint.address.IsZero() && endpoint.port == 0) return address;
  address.port = endpoint.port;
  if (endpoint.address.IsV4()) {
    address.family = AF_INET;
    std::memcpy(address.address, endpoint.address.bytes.data() + kV4Offset, 4);
  } else {
    address.family = AF_INET6;
    address.scope_id = endpoint.scope_id;
    address.flow_info = endpoint.flow_label;
    std::memcpy(address.address, endpoint.address.bytes.data(), sizeof address.address);
  }
  return address;
}

cm::ConnectParams ParamsOf(const rocegw_cm_param& from) {
  cm::ConnectParams to;
  to.qpn = Qpn{from.qpn & 0xFFFFFF};
  to.qkey = from.qkey;
  to.responder_resources = from.responder_resources;
  to.initiator_depth = from.initiator_depth;
  to.flow_control = from.flow_control != 0;
  to.retry_count = from.retry_count;
  to.rnr_retry_count = from.rnr_retry_count;
  to.srq = from.srq != 0;
  to.ece = {from.ece_vendor, from.ece_options};
  to.private_data = cm::PrivateData::From({from.private_data, from.private_length});
  return to;
}

rocegw_cm_id_reply ReplyOf(const cm::IdInfo& info) {
  rocegw_cm_id_reply reply{};
  reply.device = info.device;
  reply.port_space = static_cast<uint32_t>(info.port_space);
  reply.source = SockaddrOf(info.local);
  reply.destination = SockaddrOf(info.remote);
  std::copy(info.source_gid.bytes.begin(), info.source_gid.bytes.end(), reply.sgid);
  std::copy(info.destination_gid.bytes.begin(), info.destination_gid.bytes.end(), reply.dgid);
  reply.sgid_index = info.source_gid_index;
  reply.path_mtu = info.path_mtu;
  reply.traffic_class = info.traffic_class;
  reply.flow_label = info.flow_label;
  return reply;
}

rocegw_cm_event RecordOf(const cm::CmEvent& event) {
  rocegw_cm_event record{};
  record.type = static_cast<uint32_t>(event.type);
  record.status = event.status;
  const rocegw_cm_id_reply path = ReplyOf(event.info);
  record.device = path.device;
  record.port_space = path.port_space;
  record.source = path.source;
  record.destination = path.destination;
  std::memcpy(record.sgid, path.sgid, sizeof record.sgid);
  std::memcpy(record.dgid, path.dgid, sizeof record.dgid);
  record.sgid_index = path.sgid_index;
  record.path_mtu = path.path_mtu;
  record.traffic_class = path.traffic_class;
  record.flow_label = path.flow_label;

  const cm::ConnectParams& from = event.param;
  rocegw_cm_param& param = record.param;
  param.qpn = from.qpn.value;
  param.qkey = from.qkey;
  param.qp_type = static_cast<uint8_t>(event.info.qp_type);
  param.srq = from.srq ? 1 : 0;
  param.responder_resources = from.responder_resources;
  param.initiator_depth = from.initiator_depth;
  param.flow_control = from.flow_control ? 1 : 0;
  param.retry_count = from.retry_count;
  param.rnr_retry_count = from.rnr_retry_count;
  param.private_length = from.private_data.length;
  param.ece_vendor = from.ece.vendor_id;
  param.ece_options = from.ece.options;
  std::copy_n(from.private_data.bytes.begin(), from.private_data.length, param.private_data);
  return record;
}

rocegw_cm_qp_attr_reply ReplyOf(const cm::QpAttributes& from) {
  rocegw_cm_qp_attr_reply reply{};
  reply.attr_mask = from.mask;
  rocegw_qp_attr& attr = reply.attr;
  attr.qp_state = static_cast<uint32_t>(from.state);
  attr.pkey_index = from.pkey_index;
  attr.port_num = from.port;
  attr.access_flags = from.access;
  attr.qkey = from.qkey;
  std::copy(from.destination_gid.bytes.begin(), from.destination_gid.bytes.end(), attr.av.dgid);
  attr.av.sgid_index = from.source_gid_index;
  attr.av.flow_label = from.flow_label;
  attr.av.hop_limit = from.hop_limit;
  attr.av.traffic_class = from.traffic_class;
  attr.service_level = from.service_level;
  attr.path_mtu = from.path_mtu;
  attr.dest_qpn = from.dest_qpn.value;
  attr.rq_psn = from.rq_psn.value;
  attr.sq_psn = from.sq_psn.value;
  attr.max_dest_rd_atomic = from.max_dest_rd_atomic;
  attr.max_rd_atomic = from.max_rd_atomic;
  attr.min_rnr_timer = from.min_rnr_timer;
  attr.timeout = from.timeout;
  attr.retry_cnt = from.retry_count;
  attr.rnr_retry = from.rnr_retry;
  return reply;
}

}  // namespace rocegw::session
