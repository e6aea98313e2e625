// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/device/query.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "gateway/client/device/device.h"
#include "gateway/client/memory/on_demand.h"
#include "gateway/client/process/real.h"

#undef ibv_query_port

namespace rocegw::client {

namespace {

constexpr uint8_t kPort = 1;
constexpr uint16_t kDefaultPkey = 0xffff;
constexpr uint8_t kLinkUp = 5;  // physical port states of the IBTA
constexpr uint8_t kLinkDisabled = 3;

void FillDeviceAttr(const rocegw_device_reply& reply, ibv_device_attr* attr) {
  static_assert(sizeof(attr->fw_ver) == sizeof(reply.firmware));
  memcpy(attr->fw_ver, reply.firmware, sizeof(attr->fw_ver));
  attr->node_guid = reply.node_guid;
  attr->sys_image_guid = reply.node_guid;
  attr->max_mr_size = reply.max_mr_size;
  attr->page_size_cap = ~(static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) - 1);
  attr->vendor_id = reply.vendor_id;
  attr->vendor_part_id = reply.vendor_part_id;
  attr->hw_ver = reply.hardware_version;
  attr->max_qp = static_cast<int>(reply.max_qp);
  attr->max_qp_wr = static_cast<int>(reply.max_qp_wr);
  attr->device_cap_flags = IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
                           IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SRQ_RESIZE |
                           IBV_DEVICE_PORT_ACTIVE_EVENT;
  attr->max_sge = static_cast<int>(reply.max_sge);
  attr->max_sge_rd = static_cast<int>(reply.max_sge);
  attr->max_cq = static_cast<int>(reply.max_cq);
  attr->max_cqe = static_cast<int>(reply.max_cqe);
  attr->max_mr = static_cast<int>(reply.max_mr);
  attr->max_pd = static_cast<int>(reply.max_pd);
  attr->max_qp_rd_atom = static_cast<int>(reply.max_rd_atomic);
  attr->max_qp_init_rd_atom = static_cast<int>(reply.max_rd_atomic);
  attr->max_res_rd_atom = static_cast<int>(reply.max_rd_atomic) * static_cast<int>(reply.max_qp);
  if (reply.max_rd_atomic != 0 && attr->max_res_rd_atom / static_cast<int>(reply.max_rd_atomic) !=
                                      static_cast<int>(reply.max_qp)) {
    attr->max_res_rd_atom = INT32_MAX;
  }
  attr->atomic_cap = IBV_ATOMIC_HCA;
  attr->max_ah = static_cast<int>(reply.max_ah);
  attr->max_srq = static_cast<int>(reply.max_srq);
  attr->max_srq_wr = static_cast<int>(reply.max_srq_wr);
  attr->max_srq_sge = static_cast<int>(reply.max_srq_sge);
  if (reply.max_mw != 0) {
    attr->device_cap_flags |=
        IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
  }
  if (reply.max_xrcd != 0) attr->device_cap_flags |= IBV_DEVICE_XRC;
  attr->max_mw = static_cast<int>(reply.max_mw);
  attr->max_mcast_grp = static_cast<int>(reply.max_multicast);
  attr->max_mcast_qp_attach = static_cast<int>(reply.max_multicast);
  attr->max_total_mcast_qp_attach = static_cast<int>(reply.max_multicast);
  attr->max_pkeys = 1;
  attr->local_ca_ack_delay = reply.local_ack_delay;
  attr->phys_port_cnt = 1;
}

struct GidSearch {
  uint32_t index;
  bool found;
  rocegw_gid_entry entry;
};

bool CompareGid(const rocegw_gid_entry& entry, void* context) {
  auto* search = static_cast<GidSearch*>(context);
  if (entry.index == search->index) {
    search->entry = entry;
    search->found = true;
  }
  return false;  // the first entry found has the index or a higher one
}

void FillGidEntry(const rocegw_gid_entry& from, ibv_gid_entry* to) {
  memcpy(to->gid.raw, from.gid, sizeof(to->gid.raw));
  to->gid_index = from.index;
  to->port_num = kPort;
  to->gid_type = IBV_GID_TYPE_ROCE_V2;
  to->ndev_ifindex = from.interface_index;
}

struct GidCollection {
  uint8_t* to;
  size_t room;  // capacity in entries
  size_t entry_size;
  size_t count;
};

bool CollectGid(const rocegw_gid_entry& entry, void* context) {
  auto* collection = static_cast<GidCollection*>(context);
  if (collection->count < collection->room) {
    ibv_gid_entry filled = {};
    FillGidEntry(entry, &filled);
    uint8_t* place = collection->to + collection->count * collection->entry_size;
    memset(place, 0, collection->entry_size);
    memcpy(place, &filled,
           collection->entry_size < sizeof(filled) ? collection->entry_size : sizeof(filled));
  }
  ++collection->count;
  return true;
}

int QueryOurDevice(Context* context, rocegw_device_reply* reply) {
  return QueryDevice(context->session, context->device->index, reply);
}

}  // namespace

int QueryPort(ibv_context* ibv, uint8_t port, ibv_port_attr* attr, size_t size) {
  if (port != kPort) return EINVAL;
  rocegw_device_reply reply;
  const int error = QueryOurDevice(FromIbv(ibv), &reply);
  if (error != 0) return error;
  ibv_port_attr filled = {};
  filled.state = static_cast<ibv_port_state>(reply.port_state);
  filled.max_mtu = static_cast<ibv_mtu>(reply.max_mtu);
  filled.active_mtu = static_cast<ibv_mtu>(reply.active_mtu);
  filled.gid_tbl_len = reply.gid_table_length;
  filled.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  filled.max_msg_sz = reply.max_message;
  filled.pkey_tbl_len = 1;
  filled.max_vl_num = 1;
  filled.active_width = reply.active_width;
  filled.active_speed = reply.active_speed;
  filled.phys_state = reply.port_state == IBV_PORT_ACTIVE ? kLinkUp : kLinkDisabled;
  filled.link_layer = IBV_LINK_LAYER_ETHERNET;
  filled.flags = IBV_QPF_GRH_REQUIRED;
  memset(attr, 0, size);
  memcpy(attr, &filled, size < sizeof(filled) ? size : sizeof(filled));
  return 0;
}

int QueryDeviceExtended(ibv_context* ibv, const ibv_query_device_ex_input* input,
                        ibv_device_attr_ex* attr, size_t size) {
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  if (size < sizeof(ibv_device_attr)) return EINVAL;
  rocegw_device_reply reply;
  const int error = QueryOurDevice(FromIbv(ibv), &reply);
  if (error != 0) return error;
  ibv_device_attr_ex filled = {};
  FillDeviceAttr(reply, &filled.orig_attr);
  filled.completion_timestamp_mask = ~uint64_t{0};
  filled.hca_core_clock = 1000000;  // kHz: time stamps count nanoseconds
  filled.phys_port_cnt_ex = 1;
  FillOnDemandCaps(&filled);
  filled.device_cap_flags_ex = filled.orig_attr.device_cap_flags;
  if ((reply.features & ROCEGW_DEVICE_PLACEMENT) != 0)
    filled.device_cap_flags_ex |= kDeviceFlushGlobal | kDeviceAtomicWrite;
  filled.cq_mod_caps = {UINT16_MAX, UINT16_MAX};
  memset(static_cast<void*>(attr), 0, size);
  memcpy(static_cast<void*>(attr), &filled, size < sizeof(filled) ? size : sizeof(filled));
  return 0;
}

int QueryClock(ibv_context*, ibv_values_ex* values) {
  const uint32_t asked = values->comp_mask;
  values->comp_mask = 0;
  if ((asked & ~uint32_t{IBV_VALUES_MASK_RAW_CLOCK}) != 0) return EINVAL;
  if ((asked & IBV_VALUES_MASK_RAW_CLOCK) != 0) {
    clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
    values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  }
  return 0;
}

int FindGid(Context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry) {
  if (port != kPort) return EINVAL;
  GidSearch search = {index, false, {}};
  const int error =
      ForEachGid(context->session, context->device->index, index, &CompareGid, &search);
  if (error != 0) return error;
  if (search.found) {
    FillGidEntry(search.entry, entry);
    return 0;
  }
  rocegw_device_reply reply;
  const int device_error = QueryOurDevice(context, &reply);
  if (device_error != 0) return device_error;
  return index < reply.gid_table_length ? ENODATA : EINVAL;
}

}  // namespace rocegw::client

using rocegw::client::Context;
using rocegw::client::FindGid;
using rocegw::client::FromIbv;
using rocegw::client::IsOurs;
using rocegw::client::kDefaultPkey;
using rocegw::client::kPort;

ROCEGW_EXPORT int ibv_query_device(ibv_context* ibv, ibv_device_attr* attr) {
  if (!IsOurs(ibv)) return ROCEGW_REAL(ibv_query_device)(ibv, attr);
  rocegw_device_reply reply;
  const int error = rocegw::client::QueryOurDevice(FromIbv(ibv), &reply);
  if (error != 0) return error;
  memset(static_cast<void*>(attr), 0, sizeof(*attr));
  rocegw::client::FillDeviceAttr(reply, attr);
  return 0;
}

// The exported function is for programs from before the inline one: their structure ends in front
// of port_cap_flags2.
ROCEGW_EXPORT int ibv_query_port(ibv_context* ibv, uint8_t port, _compat_ibv_port_attr* attr) {
  if (!IsOurs(ibv)) return ROCEGW_REAL(ibv_query_port)(ibv, port, attr);
  return rocegw::client::QueryPort(ibv, port, reinterpret_cast<ibv_port_attr*>(attr),
                                   offsetof(ibv_port_attr, port_cap_flags2));
}

ROCEGW_EXPORT int ibv_query_gid(ibv_context* ibv, uint8_t port, int index, ibv_gid* gid) {
  if (!IsOurs(ibv)) return ROCEGW_REAL(ibv_query_gid)(ibv, port, index, gid);
  ibv_gid_entry entry = {};
  const int error =
      index < 0 ? EINVAL : FindGid(FromIbv(ibv), port, static_cast<uint32_t>(index), &entry);
  if (error != 0 && error != ENODATA) {
    errno = error;
    return -1;
  }
  *gid = entry.gid;  // unused: zero
  return 0;
}

ROCEGW_EXPORT int _ibv_query_gid_ex(ibv_context* ibv, uint32_t port, uint32_t index,
                                    ibv_gid_entry* entry, uint32_t flags, size_t entry_size) {
  if (!IsOurs(ibv)) {
    return ROCEGW_REAL(_ibv_query_gid_ex)(ibv, port, index, entry, flags, entry_size);
  }
  if (flags != 0 || entry_size < offsetof(ibv_gid_entry, ndev_ifindex)) return EINVAL;
  ibv_gid_entry filled = {};
  const int error = FindGid(FromIbv(ibv), port, index, &filled);
  if (error != 0) return error;
  memset(entry, 0, entry_size);
  memcpy(entry, &filled, entry_size < sizeof(filled) ? entry_size : sizeof(filled));
  return 0;
}

ROCEGW_EXPORT ssize_t _ibv_query_gid_table(ibv_context* ibv, ibv_gid_entry* entries,
                                           size_t max_entries, uint32_t flags, size_t entry_size) {
  if (!IsOurs(ibv)) {
    return ROCEGW_REAL(_ibv_query_gid_table)(ibv, entries, max_entries, flags, entry_size);
  }
  if (flags != 0 || entry_size < offsetof(ibv_gid_entry, ndev_ifindex)) return -EINVAL;
  rocegw::client::GidCollection collection = {reinterpret_cast<uint8_t*>(entries), max_entries,
                                              entry_size, 0};
  Context* context = FromIbv(ibv);
  const int error = rocegw::client::ForEachGid(context->session, context->device->index, 0,
                                               &rocegw::client::CollectGid, &collection);
  if (error != 0) return -error;
  if (collection.count > max_entries) return -EINVAL;
  return static_cast<ssize_t>(collection.count);
}

// Enumeration of libibverbs' private interface, not in the public headers: 0 = RoCE v1, 1 = RoCE
// v2.
ROCEGW_EXPORT int ibv_query_gid_type(ibv_context* ibv, uint8_t port, unsigned index, int* type) {
  if (!IsOurs(ibv)) return ROCEGW_REAL(ibv_query_gid_type)(ibv, port, index, type);
  ibv_gid_entry entry = {};
  const int error = FindGid(FromIbv(ibv), port, index, &entry);
  if (error != 0 && error != ENODATA) {
    errno = error;
    return -1;
  }
  *type = error == ENODATA ? 0 : 1;
  return 0;
}

ROCEGW_EXPORT int ibv_query_pkey(ibv_context* ibv, uint8_t port, int index, __be16* pkey) {
  if (!IsOurs(ibv)) return ROCEGW_REAL(ibv_query_pkey)(ibv, port, index, pkey);
  if (port != kPort || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *pkey = kDefaultPkey;  // the same in either byte order
  return 0;
}

ROCEGW_EXPORT int ibv_get_pkey_index(ibv_context* ibv, uint8_t port, __be16 pkey) {
  if (!IsOurs(ibv)) return ROCEGW_REAL(ibv_get_pkey_index)(ibv, port, pkey);
  if (port == kPort && pkey == kDefaultPkey) return 0;
  errno = EDOM;
  return -1;
}
