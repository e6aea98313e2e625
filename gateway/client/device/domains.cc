// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/device/domains.h"

#include <cerrno>
#include <cstdlib>

#include "gateway/client/device/objects.h"
#include "gateway/client/device/refusals.h"

namespace rocegw::client {

namespace {

struct ThreadDomain {
  ibv_td ibv;      // first: programs hold it
  uint32_t users;  // parent domains
};

ThreadDomain* FromIbv(ibv_td* td) { return reinterpret_cast<ThreadDomain*>(td); }
void Add(uint32_t* users) { __atomic_fetch_add(users, 1, __ATOMIC_RELAXED); }
void Drop(uint32_t* users) { __atomic_fetch_sub(users, 1, __ATOMIC_RELEASE); }

int CheckParent(const ibv_context* context, const ibv_parent_domain_init_attr& attr) {
  constexpr uint32_t kAllocators = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  constexpr uint32_t kKnown = kAllocators | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  if ((attr.comp_mask & ~kKnown) != 0 || attr.pd == nullptr || attr.pd->context != context ||
      (attr.td != nullptr && attr.td->context != context)) {
    return EINVAL;
  }
  return (attr.comp_mask & kAllocators) != 0 ? refusal::ibv_alloc_parent_domain : 0;
}

}  // namespace

ibv_td* AllocThreadDomain(ibv_context* context, ibv_td_init_attr* attr) {
  if (attr->comp_mask != 0) {
    errno = EINVAL;
    return nullptr;
  }
  auto* td = MakeObject<ThreadDomain>();
  if (td == nullptr) return nullptr;
  td->ibv.context = context;
  return &td->ibv;
}

int DeallocThreadDomain(ibv_td* td) {
  if (__atomic_load_n(&FromIbv(td)->users, __ATOMIC_ACQUIRE) != 0) return WithErrno(EBUSY);
  free(FromIbv(td));
  return 0;
}

ibv_pd* AllocParentDomain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  const int error = CheckParent(context, *attr);
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto* parent = MakeObject<Pd>();
  if (parent == nullptr) return nullptr;
  // A parent domain of a parent domain stands for the same protection domain.
  Pd* given = FromIbv(attr->pd);
  parent->protection = given->protection != nullptr ? given->protection : given;
  parent->thread = attr->td;
  parent->ibv.context = context;
  parent->ibv.handle = parent->protection->ibv.handle;
  Add(&parent->protection->parents);
  if (attr->td != nullptr) Add(&FromIbv(attr->td)->users);
  return &parent->ibv;
}

void DeallocParentDomain(ibv_pd* pd) {
  Pd* parent = FromIbv(pd);
  Drop(&parent->protection->parents);
  if (parent->thread != nullptr) Drop(&FromIbv(parent->thread)->users);
  free(parent);
}

}  // namespace rocegw::client
