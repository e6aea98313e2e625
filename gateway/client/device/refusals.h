// SPDX-License-Identifier: Apache-2.0
// Errno of every call that our devices refuse, wholly or in part. scripts/update_compatibility_doc
// makes docs/user/compatibility.md from this list and the exported names, so each line has one
// name, its errno, and the reason for users. The refusing function uses the name from this list.
#pragma once

#include <cerrno>

// Calls that are refused in all cases.
#define ROCEGW_REFUSALS(R)                                                           \
  R(_ibv_query_comp_cntr_caps, EOPNOTSUPP, "no completion counters")                 \
  R(ibv_alloc_dmah, EOPNOTSUPP, "no device whose caches take hints")                 \
  R(ibv_create_comp_cntr, EOPNOTSUPP, "no completion counters")                      \
  R(ibv_export_buf_dmabuf_fd, EOPNOTSUPP, "buffers are plain memory")                \
  R(ibv_import_device, EOPNOTSUPP, "objects belong to one process")                  \
  R(ibv_import_dm, EOPNOTSUPP, "no device memory")                                   \
  R(ibv_import_mr, EOPNOTSUPP, "objects belong to one process")                      \
  R(ibv_import_pd, EOPNOTSUPP, "objects belong to one process")                      \
  R(ibv_qp_attach_comp_cntr, EOPNOTSUPP, "no completion counters")                   \
  R(rdma_query_addrinfo, EOPNOTSUPP, "no service records")                           \
  R(rdma_resolve_addrinfo, EOPNOTSUPP, "no service records; rdma_getaddrinfo works") \
  R(rdma_write_cm_event, EOPNOTSUPP, "channels carry the gateway's events alone")

// Calls that work, except for this use.
#define ROCEGW_PARTS_REFUSED(R)                                                                  \
  R(ibv_alloc_parent_domain, EOPNOTSUPP, "allocators: queues lie in the gateway's memory")       \
  R(ibv_create_cq_ex, EOPNOTSUPP, "VLAN, flow tags, tag matching, ignored overruns")             \
  R(ibv_create_qp, EOPNOTSUPP, "raw packets")                                                    \
  R(ibv_create_qp_ex, EOPNOTSUPP, "creation flags, TSO, RSS, operations that are refused below") \
  R(ibv_create_srq_ex, EOPNOTSUPP, "tag matching")                                               \
  R(ibv_modify_qp, EOPNOTSUPP, "alternate paths, path migration, changed capacities")            \
  R(ibv_reg_dmabuf_mr, EOPNOTSUPP, "exporters other than udmabuf and the system heap")           \
  R(ibv_reg_mr, EOPNOTSUPP, "persistent regions, memory of a GPU without IPC handle")            \
  R(ibv_reg_mr_ex, EOPNOTSUPP, "DMA handles")                                                    \
  R(rdma_create_srq_ex, EOPNOTSUPP, "tag matching")                                              \
  R(rdma_set_option, ENOSYS, "levels other than RDMA_OPTION_ID, but for a path")

namespace rocegw::client::refusal {
#define ROCEGW_REFUSAL_ERRNO(name, error, why) inline constexpr int name = error;
ROCEGW_REFUSALS(ROCEGW_REFUSAL_ERRNO)
ROCEGW_PARTS_REFUSED(ROCEGW_REFUSAL_ERRNO)
#undef ROCEGW_REFUSAL_ERRNO
}  // namespace rocegw::client::refusal
