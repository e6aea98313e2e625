/* SPDX-License-Identifier: Apache-2.0
 * The contract as a C11 program sees it: it needs nothing but itself, and its layout is the same.
 */
#include <stddef.h>

#include "gateway/abi/rocegw_abi.h"

#define SIZE(type, size) _Static_assert(sizeof(struct type) == (size), #type);
#define FIELD(type, field, offset) \
  _Static_assert(offsetof(struct type, field) == (offset), #type "." #field);
#include "tests/unit/abi/layout.def"
#undef FIELD
#undef SIZE

uint32_t SqStrideInC(uint32_t max_sge) { return rocegw_sq_stride(max_sge); }
uint32_t RqStrideInC(uint32_t max_sge) { return rocegw_rq_stride(max_sge); }
