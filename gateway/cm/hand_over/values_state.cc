// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/hand_over/values_state.h"

namespace rocegw::cm {

using hand_over::StateStream;

void HandOver(StateStream& state, wire::Path& path) {
  auto& [source, destination, source_port, traffic_class, hop_limit] = path;
  HandOver(state, source);
  HandOver(state, destination);
  state(source_port, traffic_class, hop_limit);
}

void HandOver(StateStream& state, wire::RxMeta& meta) {
  auto& [source, destination, source_port, traffic_class, hop_limit, ip_id_known, ip_id] = meta;
  HandOver(state, source);
  HandOver(state, destination);
  state(source_port, traffic_class, hop_limit, ip_id_known, ip_id);
}

void HandOver(StateStream& state, Endpoint& endpoint) {
  auto& [address, port, scope_id, flow_label] = endpoint;
  HandOver(state, address);
  state(port, scope_id, flow_label);
}

void HandOver(StateStream& state, PortSpace& space) {
  space = static_cast<PortSpace>(state.Carry(static_cast<uint16_t>(space)));
  switch (space) {
    case PortSpace::kIpoib:
    case PortSpace::kTcp:
    case PortSpace::kUdp:
    case PortSpace::kIb:
      return;
  }
  state.Fail("port space is unknown");
}

void HandOver(StateStream& state, QpType& type) {
  type = static_cast<QpType>(state.Carry(static_cast<uint8_t>(type)));
  switch (type) {
    case QpType::kRc:
    case QpType::kUc:
    case QpType::kUd:
    case QpType::kXrcSend:
    case QpType::kXrcReceive:
      return;
  }
  state.Fail("type of a queue pair is unknown");
}

void HandOver(StateStream& state, Ece& ece) {
  auto& [vendor_id, options] = ece;
  state(vendor_id, options);
}

void HandOver(StateStream& state, ConnectParams& params) {
  auto& [qpn, qkey, responder_resources, initiator_depth, flow_control, retry_count,
         rnr_retry_count, srq, ece, private_data] = params;
  state(qpn, qkey, responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count,
        srq);
  HandOver(state, ece);
  auto& [length, bytes] = private_data;
  state(length);
  state.Bytes(std::span(bytes).first(length));
}

}  // namespace rocegw::cm
