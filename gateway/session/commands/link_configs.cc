// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/commands/link_configs.h"

#include <algorithm>

#include "gateway/session/client_session.h"
#include "gateway/tenant/tag.h"

namespace rocegw::session {

verbs::QpConfig QpConfigOn(ClientSession& session, uint32_t device) {
  const tenant::Pool& pool = session.pool();
  verbs::QpConfig config;
  config.device = device;
  config.gids = session.devices().GidTableOf(pool, device);
  config.peers = session.rules().PeerRulesOf(pool);
  config.tenant_tag = tenant::TagOf(pool.name());
  config.port_mtu = session.devices()[device].active_mtu;
  config.window_bytes = static_cast<uint32_t>(pool.settings().window_bytes);
  config.placement = session.rules().HasPlacement(pool);
  return config;
}

verbs::QpConfig QpConfigOf(ClientSession& session, uint32_t handle, const Qp& qp) {
  verbs::QpConfig config = QpConfigOn(session, session.objects().DeviceOf(qp));
  config.type = qp.type;
  config.qpn = qp.qpn;
  config.session = session.id();
  config.qp_handle = handle;
  config.cookie = qp.cookie;
  config.pd = qp.pd;
  config.send_cq = qp.send_cq;
  config.recv_cq = qp.recv_cq;
  config.signal_all = qp.signal_all;
  config.service_mode = qp.service_mode;
  config.any_completion_order = qp.any_completion_order;
  if (const EndpointGroup* const group = session.objects().groups.Find(qp.group)) {
    config.group = group->number;
    config.group_key = group->key;
  }
  config.give_up_ms = qp.give_up_ms;
  config.suspends_on_failure = qp.suspends_on_failure;
  config.sq_entries = qp.sq_entries;
  config.rq_entries = qp.rq_entries;
  config.max_send_sge = qp.max_send_sge;
  config.max_recv_sge = qp.max_recv_sge;
  config.max_inline = qp.max_inline;
  config.sq_stride = rocegw_sq_stride(qp.max_send_sge);
  config.rq_stride = rocegw_rq_stride(qp.max_recv_sge);
  config.sq_payload_stride = qp.sq_payload_stride;
  config.rq_payload_stride = qp.rq_payload_stride;
  config.control = qp.control.As<rocegw_qp_control>();
  config.status = qp.status.As<rocegw_qp_status>();
  config.sq = qp.sq.address;
  config.sq_payload = qp.sq_payload.address;
  config.rq = qp.rq.address;
  config.rq_payload = qp.rq_payload.address;
  if (const Srq* const srq = session.objects().srqs.Find(qp.srq)) {
    config.srq = qp.srq;
    config.srq_pd = srq->pd;
    config.rq_entries = srq->payload_slots;
    config.max_recv_sge = srq->max_sge;
    config.rq_stride = rocegw_rq_stride(srq->max_sge);
    config.rq_payload_stride = srq->payload_stride;
    config.rq_payload = srq->payload.address;
  }
  config.doorbell_page = qp.doorbell_page;
  config.doorbell_bit = qp.doorbell_bit;
  return config;
}

worker::LinkSession LinkOf(XrcDomain& domain) {
  domain.linked = true;
  return {.session = domain.id,
          .line = &domain.line,
          .share = &domain.pool->share(),
          .slot = domain.slot.get(),
          .xrc_domain = true};
}

verbs::QpConfig XrcTargetConfigOf(ClientSession& session, Qpn qpn, XrcDomain& domain,
                                  XrcTarget& target) {
  target.linked = true;
  verbs::QpConfig config = QpConfigOn(session, domain.device);
  config.type = verbs::QpType::kXrcReceive;
  config.qpn = qpn;
  config.session = domain.id;
  config.control = &target.control;
  config.status = &target.status;
  return config;
}

verbs::CqConfig CqConfigOf(const ClientSession& session, uint32_t handle, const Cq& cq,
                           WorkerIndex worker) {
  const CompletionChannel* const channel = session.objects().channels.Find(cq.channel);
  verbs::CqConfig config;
  config.session = session.id();
  config.cq_handle = handle;
  config.cookie = cq.cookie;
  config.entries = cq.entries;
  config.worker_slot = worker;
  config.ring = cq.rings.As<rocegw_cqe>() + size_t{worker} * cq.entries;
  config.control = cq.control.As<rocegw_cq_control>();
  config.event_fd = channel == nullptr ? -1 : channel->ours.get();
  return config;
}

verbs::SrqConfig SrqConfigOf(const ClientSession& session, uint32_t handle, const Srq& srq) {
  verbs::SrqConfig config;
  config.session = session.id();
  config.srq_handle = handle;
  config.cookie = srq.cookie;
  config.entries = srq.entries;
  config.stride = rocegw_rq_stride(srq.max_sge);
  config.control = srq.control.As<rocegw_srq_control>();
  config.order = srq.order.address;
  config.slots = srq.slots.address;
  const Xrcd* const xrcd = session.objects().xrcds.Find(srq.xrcd);
  if (xrcd == nullptr) return config;
  config.domain = xrcd->domain->id;
  config.number = srq.number;
  config.pd = srq.pd;
  config.cq = srq.cq;
  config.max_sge = srq.max_sge;
  config.payload_slots = srq.payload_slots;
  config.payload_stride = srq.payload_stride;
  config.payload = srq.payload.address;
  return config;
}

DirectPart Intersect(const memory::Region& region, uint64_t address, uint64_t length) {
  const uint64_t begin = std::max(address, region.address());
  const uint64_t end = std::min(address + length, region.address() + region.length());
  if (begin >= end) return {};
  return {region.Find(begin, end - begin), begin - address, end - begin};
}

rocegw_memory_way WayOf(const ClientSession& session, const RemappedRegion* region) {
  if (region == nullptr) return session.memory().way();
  if (region->device != nullptr) return ROCEGW_MEMORY_DEVICE;
  return region->memory->exporter().empty() ? ROCEGW_MEMORY_REMAPPED : ROCEGW_MEMORY_DMA_BUF;
}

verbs::RegionConfig RegionConfigOf(const ClientSession& session, uint32_t handle, const Mr& mr) {
  verbs::RegionConfig config;
  config.key = mr.key;
  config.session = session.id();
  config.pd = mr.pd;
  config.access = mr.access & kDataPathAccess;
  config.iova = mr.iova;
  config.length = mr.length;
  config.address = mr.address;
  const RemappedRegion* const region = session.objects().regions.Find(mr.region);
  if (region != nullptr && region->device != nullptr) {
    config.access &= ~uint32_t{verbs::kAccessRemoteAtomic};  // a copy engine has none
  } else if (region != nullptr) {
    const DirectPart direct = Intersect(*region->memory, mr.address, mr.length);
    config.direct = direct.bytes;
    config.direct_from = direct.from;
    config.direct_length = direct.length;
  }
  config.windows = mr.windows.get();
  config.mr_handle = handle;
  return config;
}

}  // namespace rocegw::session
