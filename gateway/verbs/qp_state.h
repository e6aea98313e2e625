// SPDX-License-Identifier: Apache-2.0
// Which modify_qp calls are legal: the attribute masks of IBTA 11.2.5.2, per QP type and
// transition, as a table.
#pragma once

#include <cstdint>

#include "gateway/verbs/types.h"

namespace rocegw::verbs {

// 0, or EINVAL when a QP of `type` in state `current` must not be modified to `next` with `mask`.
int CheckTransition(QpType type, QpState current, QpState next, uint32_t mask);

// Those that the mask names, except states.
void TakeAttributes(uint32_t mask, const QpAttributes& wanted, QpAttributes& to);

const char* StateName(QpState state);

}  // namespace rocegw::verbs
