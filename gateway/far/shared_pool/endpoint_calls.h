// SPDX-License-Identifier: Apache-2.0
// Calls of rocegwdv.h for endpoints, if this process has them: they come with librocegw-verbs.so,
// which programs that use another verbs device do not have.
#pragma once

#include "gateway/client/dv/rocegwdv.h"

namespace rocegw::far {

struct EndpointCalls {
  decltype(&rocegwdv_is_supported) is_supported = nullptr;
  decltype(&rocegwdv_query_device) query_device = nullptr;
  decltype(&rocegwdv_create_ep) create_ep = nullptr;
  decltype(&rocegwdv_create_peer) create_peer = nullptr;
  decltype(&rocegwdv_destroy_peer) destroy_peer = nullptr;
  decltype(&rocegwdv_post_send) post_send = nullptr;

  // nullptr: the process lacks a call.
  static const EndpointCalls* Find();
  // nullptr: also when the device has no endpoints with READs, WRITEs and atomics.
  static const EndpointCalls* For(ibv_context* context);
};

}  // namespace rocegw::far
