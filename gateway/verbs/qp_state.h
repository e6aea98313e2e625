// SPDX-License-Identifier: Apache-2.0
// Legal modify_qp calls: a table of the attribute masks of IBTA 11.2.5.2 by QP type and transition.
// Pure functions.
#pragma once

#include <cstdint>

#include "gateway/verbs/types.h"

namespace rocegw::verbs {

// Returns 0, or EINVAL if a queue pair of `type` must not go from `current` to `next` with `mask`.
int CheckTransition(QpType type, QpState current, QpState next, uint32_t mask);

// Copies the attributes that the mask names, except states.
void TakeAttributes(uint32_t mask, const QpAttributes& wanted, QpAttributes& to);

const char* StateName(QpState state);

}  // namespace rocegw::verbs
