// SPDX-License-Identifier: Apache-2.0
// Required and optional attributes of each transition of a queue pair: the tables of IBTA 11.2.5.2
// as data, for a device without alternate paths, path migration and rate limits. A transition
// without a row is not allowed.
#pragma once

#include <cstdint>
#include <optional>

#include "gateway/verbs/types.h"

namespace rocegw::testing {

struct TransitionRule {
  uint32_t must = 0;
  uint32_t may = 0;
};

inline constexpr verbs::QpState kQpStates[] = {
    verbs::QpState::kReset, verbs::QpState::kInit, verbs::QpState::kRtr,  verbs::QpState::kRts,
    verbs::QpState::kSqd,   verbs::QpState::kSqe,  verbs::QpState::kError};

namespace transition_table {

using enum verbs::QpAttrMask;
using S = verbs::QpState;

enum Types : uint8_t { kRc = 1, kUc = 2, kUd = 4, kXrcSend = 8, kXrcReceive = 16, kXrc = 24 };

struct Row {
  S from;
  S to;
  uint8_t types;
  uint32_t must;
  uint32_t may;
};

inline constexpr Row kRows[] = {
    {S::kReset, S::kInit, kRc | kUc | kXrc, kAttrPkeyIndex | kAttrPort | kAttrAccessFlags, 0},
    {S::kReset, S::kInit, kUd, kAttrPkeyIndex | kAttrPort | kAttrQkey, 0},

    {S::kInit, S::kInit, kRc | kUc | kXrc, 0, kAttrPkeyIndex | kAttrPort | kAttrAccessFlags},
    {S::kInit, S::kInit, kUd, 0, kAttrPkeyIndex | kAttrPort | kAttrQkey},

    {S::kInit, S::kRtr, kRc | kXrcReceive,
     kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn | kAttrMaxDestRdAtomic | kAttrMinRnrTimer,
     kAttrAccessFlags | kAttrPkeyIndex},
    {S::kInit, S::kRtr, kUc | kXrcSend, kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn,
     kAttrAccessFlags | kAttrPkeyIndex},
    {S::kInit, S::kRtr, kUd, 0, kAttrPkeyIndex | kAttrQkey},

    {S::kRtr, S::kRts, kRc,
     kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrSqPsn | kAttrMaxQpRdAtomic,
     kAttrCurState | kAttrAccessFlags | kAttrMinRnrTimer},
    {S::kRtr, S::kRts, kXrcSend,
     kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrSqPsn | kAttrMaxQpRdAtomic,
     kAttrCurState | kAttrAccessFlags},
    {S::kRtr, S::kRts, kXrcReceive, kAttrTimeout | kAttrSqPsn,
     kAttrCurState | kAttrAccessFlags | kAttrMinRnrTimer},
    {S::kRtr, S::kRts, kUc, kAttrSqPsn, kAttrCurState | kAttrAccessFlags},
    {S::kRtr, S::kRts, kUd, kAttrSqPsn, kAttrCurState | kAttrQkey},

    {S::kRts, S::kRts, kRc | kXrcReceive, 0, kAttrCurState | kAttrAccessFlags | kAttrMinRnrTimer},
    {S::kRts, S::kRts, kUc | kXrcSend, 0, kAttrCurState | kAttrAccessFlags},
    {S::kRts, S::kRts, kUd, 0, kAttrCurState | kAttrQkey},

    {S::kRts, S::kSqd, kRc | kUc | kUd | kXrc, 0, kAttrEnSqdAsyncNotify},

    {S::kSqd, S::kSqd, kRc, 0,
     kAttrPort | kAttrAv | kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrMaxQpRdAtomic |
         kAttrMaxDestRdAtomic | kAttrAccessFlags | kAttrPkeyIndex | kAttrMinRnrTimer},
    {S::kSqd, S::kSqd, kXrcSend, 0,
     kAttrPort | kAttrAv | kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrMaxQpRdAtomic |
         kAttrAccessFlags | kAttrPkeyIndex},
    {S::kSqd, S::kSqd, kXrcReceive, 0,
     kAttrPort | kAttrAv | kAttrTimeout | kAttrMaxDestRdAtomic | kAttrAccessFlags | kAttrPkeyIndex |
         kAttrMinRnrTimer},
    {S::kSqd, S::kSqd, kUc, 0, kAttrAv | kAttrAccessFlags | kAttrPkeyIndex},
    {S::kSqd, S::kSqd, kUd, 0, kAttrPkeyIndex | kAttrQkey},

    {S::kSqd, S::kRts, kRc | kXrcReceive, 0, kAttrCurState | kAttrAccessFlags | kAttrMinRnrTimer},
    {S::kSqd, S::kRts, kUc | kXrcSend, 0, kAttrCurState | kAttrAccessFlags},
    {S::kSqd, S::kRts, kUd, 0, kAttrCurState | kAttrQkey},

    // Reliable queue pairs do not have this state.
    {S::kSqe, S::kRts, kUc, 0, kAttrCurState | kAttrAccessFlags},
    {S::kSqe, S::kRts, kUd, 0, kAttrCurState | kAttrQkey},
};

}  // namespace transition_table

inline std::optional<TransitionRule> RuleOf(verbs::QpType type, verbs::QpState from,
                                            verbs::QpState to) {
  using namespace transition_table;  // NOLINT(google-build-using-namespace)
  // From any state, without attributes.
  if (to == S::kReset || to == S::kError) return TransitionRule{};
  const uint8_t bit = type == verbs::QpType::kRc           ? kRc
                      : type == verbs::QpType::kUc         ? kUc
                      : type == verbs::QpType::kXrcSend    ? kXrcSend
                      : type == verbs::QpType::kXrcReceive ? kXrcReceive
                                                           : kUd;
  for (const Row& row : kRows) {
    if (row.from == from && row.to == to && (row.types & bit) != 0)
      return TransitionRule{row.must, row.may};
  }
  return std::nullopt;
}

}  // namespace rocegw::testing
