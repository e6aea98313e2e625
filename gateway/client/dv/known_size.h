// SPDX-License-Identifier: Apache-2.0
// Helpers of the calls of rocegwdv.h: structures with the caller's size, and features that an older
// daemon lacks. Pure functions.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/dv/rocegwdv.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

// Returns true if the daemon's minor version supports ordering.
inline bool DaemonKnowsOrder(const Session* session) { return session->welcome().minor >= 1; }

// Returns true if the daemon's endpoints accept READs and atomics.
inline bool DaemonKnowsEndpointReads(const Session* session) {
  return session->welcome().minor >= 12;
}

// Returns true if the daemon knows the atomics of rocegwdv_wr_opcode.
inline bool DaemonKnowsFetchOperate(const Session* session) {
  return session->welcome().minor >= 16;
}

// Returns true if the daemon knows states and shared receive queues of endpoints.
inline bool DaemonKnowsEndpointStates(const Session* session) {
  return session->welcome().minor >= 17;
}

// Copies a structure of the caller's `size`: later members are left out, unknown ones are set to 0.
template <typename T>
void CopyKnown(const T& from, T* to, size_t size) {
  memset(static_cast<void*>(to), 0, size);
  memcpy(static_cast<void*>(to), &from, size < sizeof(from) ? size : sizeof(from));
}

// Reads a structure of the caller's size. Returns false if the caller uses later members.
template <typename T>
bool TakeKnown(const T* from, size_t size, T* to) {
  *to = {};
  memcpy(static_cast<void*>(to), from, size < sizeof(*to) ? size : sizeof(*to));
  const auto* bytes = reinterpret_cast<const uint8_t*>(from);
  for (size_t i = sizeof(*to); i < size; ++i) {
    if (bytes[i] != 0) return false;
  }
  return to->comp_mask == 0;
}

// Returns true for modes whose requests have no order.
inline bool HasNoOrder(uint32_t service_mode) {
  return service_mode == ROCEGWDV_SERVICE_UNORDERED ||
         service_mode == ROCEGWDV_SERVICE_UNACKNOWLEDGED;
}
// Returns EINVAL for undefined orders, or an execution order in a service mode that has none.
inline int CheckOrders(uint32_t service_mode, uint32_t execution, uint32_t completion) {
  if (execution > ROCEGWDV_ORDER_STRONG || completion > ROCEGWDV_COMPLETION_ANY) return EINVAL;
  const bool ordered = execution > ROCEGWDV_ORDER_NONE;
  return HasNoOrder(service_mode) && ordered ? EINVAL : 0;
}
// Returns the order that DEFAULT stands for.
inline uint32_t ExecutionOrder(uint32_t service_mode, uint32_t asked) {
  if (asked != ROCEGWDV_ORDER_DEFAULT) return asked;
  return HasNoOrder(service_mode) ? ROCEGWDV_ORDER_NONE : ROCEGWDV_ORDER_STRONG;
}
inline uint32_t OrderFlags(uint32_t order) {
  if (order == ROCEGWDV_ORDER_NONE) return ROCEGW_WQE_ORDER_NONE;
  return order == ROCEGWDV_ORDER_RELAXED ? ROCEGW_WQE_ORDER_RELAXED : 0;
}

}  // namespace rocegw::client
