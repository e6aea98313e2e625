// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/commands/qp_attributes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gateway/port/steering.h"
#include "gateway/wire/source_port.h"

namespace rocegw::session {
namespace {

// Programs set any hop limit (1 is common in examples); as in the kernel, a smaller value becomes
// the network's default.
constexpr uint8_t kLeastHopLimit = 64;

bool Has(uint32_t mask, uint32_t bit) { return (mask & bit) != 0; }

const char* OutOfRange(const rocegw_qp_attr& a, uint32_t mask, const Device& device,
                       const DeviceBounds& bounds) {
  using enum verbs::QpAttrMask;
  if (Has(mask, kAttrAltPath)) return "alternate paths do not exist on RoCE";
  if (Has(mask, kAttrCap)) return "queues cannot be resized";
  if (Has(mask, kAttrState) && a.qp_state > static_cast<uint32_t>(verbs::QpState::kError))
    return "state";
  if (Has(mask, kAttrCurState) && a.cur_qp_state > static_cast<uint32_t>(verbs::QpState::kError)) {
    return "current state";
  }
  if (Has(mask, kAttrPort) && a.port_num != 1) return "port number";
  if (Has(mask, kAttrPkeyIndex) && a.pkey_index != 0) return "P_Key index";
  if (Has(mask, kAttrPathMtu) && (a.path_mtu < 1 || a.path_mtu > device.active_mtu))
    return "path MTU";
  if (Has(mask, kAttrTimeout) && a.timeout > 31) return "timeout";
  if (Has(mask, kAttrRetryCnt) && a.retry_cnt > 7) return "retry count";
  if (Has(mask, kAttrRnrRetry) && a.rnr_retry > 7) return "RNR retry count";
  if (Has(mask, kAttrMinRnrTimer) && a.min_rnr_timer > 31) return "RNR timer";
  if (Has(mask, kAttrMaxDestRdAtomic) && a.max_dest_rd_atomic > bounds.max_rd_atomic) {
    return "responder resources";
  }
  if (Has(mask, kAttrDestQpn) &&
      (a.dest_qpn > kMulticastQpn.value || a.dest_qpn == kInvalidQpn.value)) {
    return "destination QPN";
  }
  return nullptr;
}

}  // namespace

uint16_t SourcePortFor(const wire::Gid& source, const wire::Gid& destination, Qpn peer,
                       uint32_t flow_label) {
  if ((flow_label & wire::kFlowLabelMask) != 0) return wire::SourcePortOfFlowLabel(flow_label);
  return port::SourcePort(port::PathHash(source, destination, 0), peer);
}

StatusOr<verbs::QpAttributes> FromClient(const rocegw_qp_attr& attr, uint32_t mask,
                                         const Device& device, const DeviceBounds& bounds,
                                         Qpn destination) {
  if (const char* const what = OutOfRange(attr, mask, device, bounds)) {
    return Status(EINVAL, std::string("modify_qp: ") + what);
  }
  verbs::QpAttributes to;
  to.state = static_cast<verbs::QpState>(attr.qp_state);
  to.current_state = static_cast<verbs::QpState>(attr.cur_qp_state);
  to.path_mtu = static_cast<uint8_t>(attr.path_mtu);
  to.port = attr.port_num;
  // Programs ask for as many as the peer accepts (perftest); fewer is always correct.
  to.max_rd_atomic =
      static_cast<uint8_t>(std::min<uint32_t>(attr.max_rd_atomic, bounds.max_rd_atomic));
  to.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  to.min_rnr_timer = attr.min_rnr_timer;
  to.timeout = attr.timeout;
  to.retry_count = attr.retry_cnt;
  to.rnr_retry = attr.rnr_retry;
  to.service_level = attr.service_level;
  to.sqd_notify = attr.en_sqd_async_notify != 0;
  to.qkey = attr.qkey;
  to.access = attr.access_flags &
              (verbs::kAccessLocalWrite | verbs::kAccessRemoteWrite | verbs::kAccessRemoteRead |
               verbs::kAccessRemoteAtomic | verbs::kAccessFlushGlobal);
  to.rq_psn = Psn(attr.rq_psn);
  to.sq_psn = Psn(attr.sq_psn);
  to.dest_qpn = Qpn{attr.dest_qpn & 0xFFFFFF};
  if (!Has(mask, verbs::kAttrAv)) return to;

  const rocegw_address_vector& av = attr.av;
  if (av.sgid_index >= device.gids.size() || device.gids[av.sgid_index].IsZero()) {
    return Status(EINVAL, "modify_qp: source GID index names no address");
  }
  to.sgid_index = av.sgid_index;
  to.flow_label = av.flow_label & 0xFFFFF;
  wire::Path& path = to.path;
  path.source = device.gids[av.sgid_index];
  std::memcpy(path.destination.bytes.data(), av.dgid, sizeof av.dgid);
  if (path.destination.IsZero() || path.destination.IsV4() != path.source.IsV4()) {
    return Status(EINVAL, "modify_qp: destination GID is of another kind than the source");
  }
  path.traffic_class = av.traffic_class;
  path.hop_limit = std::max(av.hop_limit, kLeastHopLimit);
  path.source_port =
      SourcePortFor(path.source, path.destination,
                    Has(mask, verbs::kAttrDestQpn) ? to.dest_qpn : destination, to.flow_label);
  return to;
}

rocegw_qp_attr ToClient(const verbs::QpAttributes& from) {
  rocegw_qp_attr attr{};
  attr.qp_state = static_cast<uint32_t>(from.state);
  attr.cur_qp_state = attr.qp_state;
  attr.path_mtu = from.path_mtu;
  attr.qkey = from.qkey;
  attr.rq_psn = from.rq_psn.value;
  attr.sq_psn = from.sq_psn.value;
  attr.dest_qpn = from.dest_qpn.value;
  attr.access_flags = from.access;
  std::memcpy(attr.av.dgid, from.path.destination.bytes.data(), sizeof attr.av.dgid);
  attr.av.flow_label = from.flow_label;
  attr.av.sgid_index = from.sgid_index;
  attr.av.traffic_class = from.path.traffic_class;
  attr.av.hop_limit = from.path.hop_limit;
  attr.pkey_index = from.pkey_index;
  attr.max_rd_atomic = from.max_rd_atomic;
  attr.max_dest_rd_atomic = from.max_dest_rd_atomic;
  attr.min_rnr_timer = from.min_rnr_timer;
  attr.port_num = from.port;
  attr.timeout = from.timeout;
  attr.retry_cnt = from.retry_count;
  attr.rnr_retry = from.rnr_retry;
  attr.service_level = from.service_level;
  attr.sq_draining = from.sq_draining ? 1 : 0;
  attr.en_sqd_async_notify = from.sqd_notify ? 1 : 0;
  return attr;
}

}  // namespace rocegw::session
