// SPDX-License-Identifier: Apache-2.0
// Values and layouts of later <infiniband/verbs.h> that the compiled one may lack: programs
// compiled with a later one run on this library too (functions: later_calls.cc). FLUSH is in the
// headers since rdma-core 46, ATOMIC WRITE since 44, its device capability since 46.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace rocegw::client {

inline constexpr uint32_t kWrFlush = 14;         // enum ibv_wr_opcode
inline constexpr uint32_t kWrAtomicWrite = 15;   // enum ibv_wr_opcode
inline constexpr uint64_t kWithFlush = 1 << 11;  // enum ibv_qp_create_send_ops_flags
inline constexpr uint64_t kWithAtomicWrite = 1 << 12;
inline constexpr uint32_t kAccessFlushGlobal = 1 << 8;  // enum ibv_access_flags
inline constexpr uint64_t kDeviceFlushGlobal = uint64_t{1}
                                               << 38;  // enum ib_uverbs_device_cap_flags
inline constexpr uint64_t kDeviceAtomicWrite = uint64_t{1} << 40;
inline constexpr uint8_t kFlushTypes = 3;   // enum ibv_placement_type, all bits
inline constexpr uint8_t kFlushLevels = 1;  // enum ibv_selectivity_level, highest value

// ibv_qp_ex, which grows at its end.
struct LaterQpEx {
  uint8_t known[offsetof(ibv_qp_ex, wr_atomic_write) + sizeof(void*)];
  union {
    void (*wr_flush)(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, size_t len, uint8_t type,
                     uint8_t level);
    // A libibverbs without FLUSH looks here to see if it may use the structure. It has no programs
    // with FLUSH, so the member is free then.
    uint32_t extended;
  };
};

// Input of ibv_reg_mr_ex (rdma-core 59): the mask of used members, enum ibv_mr_init_attr_mask.
inline constexpr uint64_t kMrHasIova = 1 << 0;
inline constexpr uint64_t kMrHasAddress = 1 << 1;
inline constexpr uint64_t kMrHasFd = 1 << 2;
inline constexpr uint64_t kMrHasFdOffset = 1 << 3;
inline constexpr uint64_t kMrHasBuffer = 1 << 5;
struct LaterBuffer;
struct LaterMrInitAttr {
  size_t length;
  int access;
  uint64_t comp_mask;
  uint64_t iova;
  void* addr;
  int fd;
  uint64_t fd_offset;
  void* dmah;
  LaterBuffer* buf;  // beyond the structure of releases before kMrHasBuffer
};

}  // namespace rocegw::client
