// SPDX-License-Identifier: Apache-2.0
// Memory regions that lie in a region of the daemon, a dma-buf or a GPU's allocation, and the
// fields of every memory region. Control path; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/device/objects.h"

namespace rocegw::client {

// Requested memory region.
struct MrWish {
  ibv_pd* pd;
  void* address;   // for ibv_mr.addr
  uint64_t start;  // address of the first byte in this process
  uint64_t length;
  uint64_t iova;
  uint32_t access;
};

// Access to data in regions of the daemon, and whether a combination is one that drivers accept.
inline constexpr uint32_t kDataAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr bool DataAccessIsValid(uint32_t access) {
  constexpr uint32_t kNeedLocalWrite = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  return (access & kNeedLocalWrite) == 0 || (access & IBV_ACCESS_LOCAL_WRITE) != 0;
}

// Fills in what every memory region has.
void FillMr(const MrWish& wish, const rocegw_mr_reply& reply, Mr* mr);

// Registers a part of a region of the daemon and fills in `mr`. `offset`: of that part in the
// region. `granted`: access that the daemon is asked for. `key_access`: access that the library
// checks. Returns 0, or an errno value with nothing registered.
int RegisterIn(uint32_t region, uint64_t offset, const MrWish& wish, uint32_t granted,
               uint32_t key_access, Mr* mr);

}  // namespace rocegw::client
