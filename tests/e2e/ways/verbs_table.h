/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of libibverbs that a program with its own loading of that library calls, as NCCL
 * does: by pointer. Posting and polling go through the context's operations and need no symbol.
 */
#pragma once

#include <infiniband/verbs.h>

/* verbs.h has macros of these names around the functions. */
#undef ibv_reg_mr
#undef ibv_query_port

/* F(name, oldest version that has it) */
#define VERBS_FUNCTIONS(F)               \
  F(ibv_get_device_list, "IBVERBS_1.1")  \
  F(ibv_free_device_list, "IBVERBS_1.1") \
  F(ibv_get_device_name, "IBVERBS_1.1")  \
  F(ibv_open_device, "IBVERBS_1.1")      \
  F(ibv_close_device, "IBVERBS_1.1")     \
  F(ibv_query_gid, "IBVERBS_1.1")        \
  F(ibv_alloc_pd, "IBVERBS_1.1")         \
  F(ibv_dealloc_pd, "IBVERBS_1.1")       \
  F(ibv_reg_mr, "IBVERBS_1.1")           \
  F(ibv_dereg_mr, "IBVERBS_1.1")         \
  F(ibv_create_cq, "IBVERBS_1.1")        \
  F(ibv_destroy_cq, "IBVERBS_1.1")       \
  F(ibv_create_qp, "IBVERBS_1.1")        \
  F(ibv_modify_qp, "IBVERBS_1.1")        \
  F(ibv_destroy_qp, "IBVERBS_1.1")       \
  F(ibv_wc_status_str, "IBVERBS_1.1")    \
  F(ibv_fork_init, "IBVERBS_1.1")

struct verbs_table {
#define VERBS_MEMBER(name, version) __typeof__(&(name)) name##_;
  VERBS_FUNCTIONS(VERBS_MEMBER)
#undef VERBS_MEMBER
};
