/* SPDX-License-Identifier: Apache-2.0
 * What librocegw-verbs.so asks of librocegw-engine.so, the gateway inside of a program
 * (docs/user/in_process.md). Both come with the same release; what goes over the descriptor is the
 * attach protocol of rocegw_abi.h, which has versions. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A descriptor that is connected to the gateway of this process, which is started by the first
 * call; or -errno, and why in `reason`, for a person. One call at a time. */
#define ROCEGW_ENGINE_ATTACH "rocegw_engine_attach"
typedef int rocegw_engine_attach_function(char* reason, size_t size);

/* With ROCEGW_RUN_IN_POLL, after an attach: what the gateway has to do now is done on the calling
 * thread, unless another thread is at it. Any thread. */
#define ROCEGW_ENGINE_PROGRESS "rocegw_engine_progress"
typedef void rocegw_engine_progress_function();

#ifdef __cplusplus
}
#endif
