// SPDX-License-Identifier: Apache-2.0
// Groups of endpoints of rocegwdv.h. The daemon creates a group as a number; endpoints name the
// group when they are created.
#include <cerrno>
#include <cstdlib>

#include "gateway/client/device/objects.h"
#include "gateway/client/dv/known_size.h"
#include "gateway/client/process/real.h"

namespace {

static_assert(int{ROCEGWDV_DISPATCH_HASH} == int{ROCEGW_DISPATCH_HASH} &&
              int{ROCEGWDV_DISPATCH_ROUND_ROBIN} == int{ROCEGW_DISPATCH_ROUND_ROBIN} &&
              int{ROCEGWDV_DISPATCH_DEPTH} == int{ROCEGW_DISPATCH_DEPTH});

using rocegw::client::IsOurs;
using rocegw::client::SessionOf;

// Takes what is known of the attributes. Returns an errno value.
int CheckGroup(const ibv_pd* pd, const rocegwdv_group_init_attr* attr, size_t size,
               rocegwdv_group_init_attr* known) {
  if (pd == nullptr || attr == nullptr) return EINVAL;
  if (!IsOurs(pd->context) || !rocegw::client::TakeKnown(attr, size, known)) return EOPNOTSUPP;
  if (known->dispatch > ROCEGWDV_DISPATCH_DEPTH) return EINVAL;
  if (known->srq == nullptr) return 0;
  if (known->srq->context != pd->context) return EINVAL;
  return rocegw::client::DaemonKnowsEndpointStates(SessionOf(pd->context)) ? 0 : EOPNOTSUPP;
}

}  // namespace

ROCEGW_EXPORT rocegwdv_group* rocegwdv_create_group(ibv_pd* pd,
                                                    const rocegwdv_group_init_attr* attr,
                                                    size_t size) {
  rocegwdv_group_init_attr known = {};
  int error = CheckGroup(pd, attr, size, &known);
  rocegwdv_group* group = nullptr;
  if (error == 0) {
    group = rocegw::client::MakeObject<rocegwdv_group>();
    if (group == nullptr) error = ENOMEM;
  }
  if (error == 0) {
    rocegw_create_group request = {};
    request.pd = pd->handle;
    request.key = known.key;
    request.dispatch = known.dispatch;
    request.srq = known.srq != nullptr ? known.srq->handle : 0;
    rocegw_group_reply reply;
    error = SessionOf(pd->context)->Call(ROCEGW_MSG_CREATE_GROUP, &request, &reply);
    error = rocegw::client::OfAnyDaemon(error);
    if (error == 0) *group = {pd->context, reply.number, reply.handle};
  }
  if (error == 0) return group;
  free(group);
  errno = error;
  return nullptr;
}

ROCEGW_EXPORT int rocegwdv_destroy_group(rocegwdv_group* group) {
  if (group == nullptr) return EINVAL;
  const int error = SessionOf(group->context)->CallDestroy(ROCEGW_MSG_DESTROY_GROUP, group->handle);
  if (error != 0) return error;
  free(group);
  return 0;
}
