// SPDX-License-Identifier: Apache-2.0
#include "gateway/verbs/qp_state.h"

#include <cerrno>

namespace rocegw::verbs {
namespace {

struct Transition {
  QpState from;
  QpState to;
  uint32_t required[5];  // by type: RC, UC, UD, XRC sending, XRC receiving
  uint32_t optional[5];
};

constexpr uint32_t kInit = kAttrPkeyIndex | kAttrPort | kAttrAccessFlags;
constexpr uint32_t kInitDatagrams = kAttrPkeyIndex | kAttrPort | kAttrQkey;
constexpr uint32_t kRtrConnected = kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn;
constexpr uint32_t kRtrReceives = kRtrConnected | kAttrMaxDestRdAtomic | kAttrMinRnrTimer;
constexpr uint32_t kRtrOptional = kAttrAccessFlags | kAttrPkeyIndex;
constexpr uint32_t kRtsSends =
    kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrSqPsn | kAttrMaxQpRdAtomic;
constexpr uint32_t kRunning = kAttrCurState | kAttrAccessFlags;
constexpr uint32_t kRunningReceives = kRunning | kAttrMinRnrTimer;
constexpr uint32_t kRunningDatagrams = kAttrCurState | kAttrQkey;
constexpr uint32_t kSqdUc = kAttrAv | kAttrAccessFlags | kAttrPkeyIndex;
constexpr uint32_t kSqdSends =
    kSqdUc | kAttrPort | kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrMaxQpRdAtomic;
constexpr uint32_t kSqdReceives =
    kSqdUc | kAttrPort | kAttrTimeout | kAttrMaxDestRdAtomic | kAttrMinRnrTimer;
constexpr uint32_t kNotify = kAttrEnSqdAsyncNotify;

constexpr Transition kTransitions[] = {
    {QpState::kReset, QpState::kInit, {kInit, kInit, kInitDatagrams, kInit, kInit}, {}},
    {QpState::kInit, QpState::kInit, {}, {kInit, kInit, kInitDatagrams, kInit, kInit}},
    {QpState::kInit,
     QpState::kRtr,
     {kRtrReceives, kRtrConnected, 0, kRtrConnected, kRtrReceives},
     {kRtrOptional, kRtrOptional, kAttrPkeyIndex | kAttrQkey, kRtrOptional, kRtrOptional}},
    {QpState::kRtr,
     QpState::kRts,
     {kRtsSends, kAttrSqPsn, kAttrSqPsn, kRtsSends, kAttrTimeout | kAttrSqPsn},
     {kRunningReceives, kRunning, kRunningDatagrams, kRunning, kRunningReceives}},
    {QpState::kRts,
     QpState::kRts,
     {},
     {kRunningReceives, kRunning, kRunningDatagrams, kRunning, kRunningReceives}},
    {QpState::kRts, QpState::kSqd, {}, {kNotify, kNotify, kNotify, kNotify, kNotify}},
    {QpState::kSqd,
     QpState::kSqd,
     {},
     {kSqdSends | kSqdReceives, kSqdUc, kAttrPkeyIndex | kAttrQkey, kSqdSends, kSqdReceives}},
    {QpState::kSqd,
     QpState::kRts,
     {},
     {kRunningReceives, kRunning, kRunningDatagrams, kRunning, kRunningReceives}},
    {QpState::kSqe, QpState::kRts, {}, {0, kRunning, kRunningDatagrams, 0, 0}},
};

size_t TypeColumn(QpType type) {
  switch (type) {
    case QpType::kRc:
      return 0;
    case QpType::kUc:
      return 1;
    case QpType::kXrcSend:
      return 3;
    case QpType::kXrcReceive:
      return 4;
    default:
      return 2;
  }
}

}  // namespace

int CheckTransition(QpType type, QpState current, QpState next, uint32_t mask) {
  const uint32_t attributes = mask & ~static_cast<uint32_t>(kAttrState);
  if (next == QpState::kReset || next == QpState::kError) return attributes != 0 ? EINVAL : 0;
  if (IsReliable(type) && current == QpState::kSqe) return EINVAL;
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
