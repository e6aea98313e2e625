// SPDX-License-Identifier: Apache-2.0
#include "gateway/verbs/qp_state.h"

#include <cerrno>

namespace rocegw::verbs {
namespace {

struct Transition {
  QpState from;
  QpState to;
  uint32_t required[3];  // by type: RC, UC, UD
  uint32_t optional[3];
};

constexpr uint32_t kRtrConnected = kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn;
constexpr uint32_t kRtrOptional = kAttrAccessFlags | kAttrPkeyIndex;
constexpr uint32_t kSqdRcOptional = kAttrPort | kAttrAv | kAttrTimeout | kAttrRetryCnt |
                                    kAttrRnrRetry | kAttrMaxQpRdAtomic | kAttrMaxDestRdAtomic |
                                    kAttrAccessFlags | kAttrPkeyIndex | kAttrMinRnrTimer;

constexpr Transition kTransitions[] = {
    {QpState::kReset,
     QpState::kInit,
     {kAttrPkeyIndex | kAttrPort | kAttrAccessFlags, kAttrPkeyIndex | kAttrPort | kAttrAccessFlags,
      kAttrPkeyIndex | kAttrPort | kAttrQkey},
     {0, 0, 0}},
    {QpState::kInit,
     QpState::kInit,
     {0, 0, 0},
     {kAttrPkeyIndex | kAttrPort | kAttrAccessFlags, kAttrPkeyIndex | kAttrPort | kAttrAccessFlags,
      kAttrPkeyIndex | kAttrPort | kAttrQkey}},
    {QpState::kInit,
     QpState::kRtr,
     {kRtrConnected | kAttrMaxDestRdAtomic | kAttrMinRnrTimer, kRtrConnected, 0},
     {kRtrOptional, kRtrOptional, kAttrPkeyIndex | kAttrQkey}},
    {QpState::kRtr,
     QpState::kRts,
     {kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrSqPsn | kAttrMaxQpRdAtomic, kAttrSqPsn,
      kAttrSqPsn},
     {kAttrCurState | kAttrAccessFlags | kAttrMinRnrTimer, kAttrCurState | kAttrAccessFlags,
      kAttrCurState | kAttrQkey}},
    {QpState::kRts,
     QpState::kRts,
     {0, 0, 0},
     {kAttrCurState | kAttrAccessFlags | kAttrMinRnrTimer, kAttrCurState | kAttrAccessFlags,
      kAttrCurState | kAttrQkey}},
    {QpState::kRts,
     QpState::kSqd,
     {0, 0, 0},
     {kAttrEnSqdAsyncNotify, kAttrEnSqdAsyncNotify, kAttrEnSqdAsyncNotify}},
    {QpState::kSqd,
     QpState::kSqd,
     {0, 0, 0},
     {kSqdRcOptional, kAttrAv | kAttrAccessFlags | kAttrPkeyIndex, kAttrPkeyIndex | kAttrQkey}},
    {QpState::kSqd,
     QpState::kRts,
     {0, 0, 0},
     {kAttrCurState | kAttrAccessFlags | kAttrMinRnrTimer, kAttrCurState | kAttrAccessFlags,
      kAttrCurState | kAttrQkey}},
    {QpState::kSqe,
     QpState::kRts,
     {0, 0, 0},
     {0, kAttrCurState | kAttrAccessFlags, kAttrCurState | kAttrQkey}},
};

size_t TypeColumn(QpType type) { return type == QpType::kRc ? 0 : type == QpType::kUc ? 1 : 2; }

}  // namespace

int CheckTransition(QpType type, QpState current, QpState next, uint32_t mask) {
  const uint32_t attributes = mask & ~static_cast<uint32_t>(kAttrState);
  if (next == QpState::kReset || next == QpState::kError) return attributes != 0 ? EINVAL : 0;
  if (type == QpType::kRc && current == QpState::kSqe) return EINVAL;
  for (const Transition& t : kTransitions) {
    if (t.from != current || t.to != next) continue;
    const uint32_t required = t.required[TypeColumn(type)];
    const uint32_t optional = t.optional[TypeColumn(type)];
    if ((attributes & required) != required) return EINVAL;
    return attributes & ~(required | optional) ? EINVAL : 0;
  }
  return EINVAL;
}

void TakeAttributes(uint32_t mask, const QpAttributes& wanted, QpAttributes& to) {
  if (mask & kAttrAccessFlags) to.access = wanted.access;
  if (mask & kAttrPkeyIndex) to.pkey_index = wanted.pkey_index;
  if (mask & kAttrPort) to.port = wanted.port;
  if (mask & kAttrQkey) to.qkey = wanted.qkey;
  if (mask & kAttrAv) {
    to.path = wanted.path;
    to.sgid_index = wanted.sgid_index;
    to.flow_label = wanted.flow_label;
    to.service_level = wanted.service_level;
  }
  if (mask & kAttrPathMtu) to.path_mtu = wanted.path_mtu;
  if (mask & kAttrTimeout) to.timeout = wanted.timeout;
  if (mask & kAttrRetryCnt) to.retry_count = wanted.retry_count;
  if (mask & kAttrRnrRetry) to.rnr_retry = wanted.rnr_retry;
  if (mask & kAttrRqPsn) to.rq_psn = wanted.rq_psn;
  if (mask & kAttrSqPsn) to.sq_psn = wanted.sq_psn;
  if (mask & kAttrMaxQpRdAtomic) to.max_rd_atomic = wanted.max_rd_atomic;
  if (mask & kAttrMaxDestRdAtomic) to.max_dest_rd_atomic = wanted.max_dest_rd_atomic;
  if (mask & kAttrMinRnrTimer) to.min_rnr_timer = wanted.min_rnr_timer;
  if (mask & kAttrDestQpn) to.dest_qpn = wanted.dest_qpn;
}

const char* StateName(QpState state) {
  static constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  const auto i = static_cast<size_t>(state);
  return i < sizeof kNames / sizeof *kNames ? kNames[i] : "invalid";
}

}  // namespace rocegw::verbs
