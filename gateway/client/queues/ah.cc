// SPDX-License-Identifier: Apache-2.0
// Address handles: made from GIDs and kept in this process, but counted by the daemon; each
// datagram's WQE contains the address. ibv_create_ah_from_wc and ibv_init_ah_from_wc are here too,
// because they read a received GRH.
#include <netinet/in.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/device/objects.h"
#include "gateway/client/device/query.h"
#include "gateway/client/process/real.h"
#include "gateway/client/queues/queue_pair.h"
#include "gateway/client/rings/address_handle.h"

using rocegw::client::AddressHandle;
using rocegw::client::FromIbv;
using rocegw::client::IsOurs;
using rocegw::client::MakeObject;

namespace rocegw::client {

namespace {

constexpr uint8_t kDefaultHopLimit = 0xff;

// A datagram from IPv4 has its IP header in the last 20 of the 40 bytes in front of the payload.
bool IsIpv4Header(const uint8_t* header) { return header[20] == 0x45 && (header[0] >> 4) != 6; }

void MapIpv4(const uint8_t* address, uint8_t* gid) {
  memset(gid, 0, 10);
  gid[10] = gid[11] = 0xff;
  memcpy(gid + 12, address, 4);
}

int FindSourceIndex(Context* context, uint8_t port, const uint8_t* gid, uint8_t* index) {
  ibv_port_attr attr;
  const int error = QueryPort(&context->verbs.context, port, &attr, sizeof(attr));
  if (error != 0) return error;
  for (int i = 0; i < attr.gid_tbl_len; ++i) {
    ibv_gid_entry entry;
    if (FindGid(context, port, static_cast<uint32_t>(i), &entry) != 0) continue;
    if (memcmp(entry.gid.raw, gid, 16) != 0) continue;
    *index = static_cast<uint8_t>(i);
    return 0;
  }
  return ENOENT;
}

int InitFromGrh(Context* context, uint8_t port, const ibv_wc* wc, const ibv_grh* grh,
                ibv_ah_attr* attr) {
  memset(attr, 0, sizeof(*attr));
  attr->port_num = port;
  if ((wc->wc_flags & IBV_WC_GRH) == 0) return EINVAL;
  const auto* header = reinterpret_cast<const uint8_t*>(grh);
  uint8_t own_gid[16];
  attr->is_global = 1;
  attr->grh.hop_limit = kDefaultHopLimit;
  if (IsIpv4Header(header)) {
    MapIpv4(header + 32, attr->grh.dgid.raw);  // source of the datagram
    MapIpv4(header + 36, own_gid);
    attr->grh.traffic_class = header[21];
  } else {
    const uint32_t first = ntohl(grh->version_tclass_flow);
    attr->grh.dgid = grh->sgid;
    attr->grh.flow_label = first & 0xfffff;
    attr->grh.traffic_class = static_cast<uint8_t>(first >> 20);
    memcpy(own_gid, grh->dgid.raw, sizeof(own_gid));
  }
  return FindSourceIndex(context, port, own_gid, &attr->grh.sgid_index);
}

// Without a GRH an address is a LID, which does not exist on Ethernet: kernels refuse it. But
// rsockets start each datagram socket with the LID of their own port, to forward to themselves
// datagrams that came by UDP before the peer knew their queue pair, on the protection domain that
// rdma_cm created. There the LID becomes the port's first address, which loops back.
int ToOwnPort(ibv_pd* pd, ibv_ah_attr* attr) {
  Context* context = FromIbv(pd->context);
  ibv_port_attr port;
  const int error = QueryPort(&context->verbs.context, attr->port_num, &port, sizeof(port));
  if (error != 0) return error;
  if (!FromIbv(pd)->made_for_ids || attr->dlid != port.lid) return EINVAL;
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    ibv_gid_entry own;
    if (FindGid(context, attr->port_num, static_cast<uint32_t>(i), &own) != 0) continue;
    attr->is_global = 1;
    attr->grh.dgid = own.gid;
    attr->grh.sgid_index = static_cast<uint8_t>(i);
    attr->grh.hop_limit = kDefaultHopLimit;
    return 0;
  }
  return EINVAL;
}

ibv_ah* CreateAh(ibv_pd* pd, ibv_ah_attr attr) {
  int error = 0;
  ibv_gid_entry source;
  if (attr.is_global == 0) {
    error = ToOwnPort(pd, &attr);
  } else {
    error = FindGid(FromIbv(pd->context), attr.port_num, attr.grh.sgid_index, &source);
    if (error == ENODATA) error = EINVAL;
  }
  Session* session = SessionOf(pd->context);
  if (error == 0) error = session->ah_credits().Take(session);
  auto* ah = error == 0 ? MakeObject<AddressHandle>() : nullptr;
  if (ah == nullptr) {
    if (error == 0) session->ah_credits().Give(session);
    errno = error != 0 ? error : ENOMEM;
    return nullptr;
  }
  ah->ibv.context = pd->context;
  ah->ibv.pd = pd;
  ToAddressVector(attr, &ah->vector);
  __atomic_add_fetch(&FromIbv(pd)->handles, 1, __ATOMIC_ACQ_REL);
  return &ah->ibv;
}

}  // namespace

}  // namespace rocegw::client

ROCEGW_EXPORT ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  if (!IsOurs(pd->context)) return ROCEGW_REAL(ibv_create_ah)(pd, attr);
  return rocegw::client::CreateAh(pd, *attr);
}

ROCEGW_EXPORT int ibv_destroy_ah(ibv_ah* ah) {
  if (!IsOurs(ah->context)) return ROCEGW_REAL(ibv_destroy_ah)(ah);
  rocegw::client::Session* session = rocegw::client::SessionOf(ah->context);
  __atomic_sub_fetch(&rocegw::client::FromIbv(ah->pd)->handles, 1, __ATOMIC_ACQ_REL);
  free(reinterpret_cast<AddressHandle*>(ah));
  session->ah_credits().Give(session);
  return 0;
}

ROCEGW_EXPORT int ibv_init_ah_from_wc(ibv_context* context, uint8_t port, ibv_wc* wc, ibv_grh* grh,
                                      ibv_ah_attr* attr) {
  if (!IsOurs(context)) return ROCEGW_REAL(ibv_init_ah_from_wc)(context, port, wc, grh, attr);
  const int error = rocegw::client::InitFromGrh(FromIbv(context), port, wc, grh, attr);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

ROCEGW_EXPORT ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port) {
  if (!IsOurs(pd->context)) return ROCEGW_REAL(ibv_create_ah_from_wc)(pd, wc, grh, port);
  ibv_ah_attr attr;
  const int error = rocegw::client::InitFromGrh(FromIbv(pd->context), port, wc, grh, &attr);
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  return rocegw::client::CreateAh(pd, attr);
}
