// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/shared_pool/endpoint_calls.h"

#include <dlfcn.h>

#include <cstring>

namespace rocegw::far {
namespace {

template <typename Call>
void Look(const char* name, Call* call, bool* all) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  static_assert(sizeof found == sizeof *call);
  std::memcpy(call, &found, sizeof found);
  *all = *all && found != nullptr;
}

}  // namespace

const EndpointCalls* EndpointCalls::Find() {
  static const struct Found {
    EndpointCalls calls;
    bool all = true;
    Found() {
      Look("rocegwdv_is_supported", &calls.is_supported, &all);
      Look("rocegwdv_query_device", &calls.query_device, &all);
      Look("rocegwdv_create_ep", &calls.create_ep, &all);
      Look("rocegwdv_create_peer", &calls.create_peer, &all);
      Look("rocegwdv_destroy_peer", &calls.destroy_peer, &all);
      Look("rocegwdv_post_send", &calls.post_send, &all);
    }
  } found;
  return found.all ? &found.calls : nullptr;
}

const EndpointCalls* EndpointCalls::For(ibv_context* context) {
  constexpr uint32_t kNeeded =
      1u << IBV_WR_RDMA_READ | 1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_ATOMIC_CMP_AND_SWP;
  const EndpointCalls* const calls = Find();
  if (calls == nullptr || !calls->is_supported(context->device)) return nullptr;
  rocegwdv_device_attr device{};
  if (calls->query_device(context, &device, sizeof device) != 0) return nullptr;
  return (device.ep_operations & kNeeded) == kNeeded ? calls : nullptr;
}

}  // namespace rocegw::far
