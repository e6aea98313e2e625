// SPDX-License-Identifier: Apache-2.0
// Protection domains.
#include <cerrno>
#include <cstdlib>

#include "gateway/client/device/domains.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/device/refusals.h"
#include "gateway/client/process/real.h"

using rocegw::client::FromIbv;
using rocegw::client::IsOurs;
using rocegw::client::MakeObject;
using rocegw::client::Pd;
using rocegw::client::SessionOf;
using rocegw::client::WithErrno;

ROCEGW_EXPORT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  if (!IsOurs(context)) return ROCEGW_REAL(ibv_alloc_pd)(context);
  auto* pd = MakeObject<Pd>();
  if (pd == nullptr) return nullptr;
  rocegw_alloc_pd request = {};
  request.context = FromIbv(context)->handle;
  rocegw_object_reply reply;
  const int error = SessionOf(context)->Call(ROCEGW_MSG_ALLOC_PD, &request, &reply);
  if (error != 0) {
    free(pd);
    errno = error;
    return nullptr;
  }
  pd->ibv.context = context;
  pd->ibv.handle = reply.handle;
  return &pd->ibv;
}

ROCEGW_EXPORT int ibv_dealloc_pd(ibv_pd* pd) {
  if (!IsOurs(pd->context)) return ROCEGW_REAL(ibv_dealloc_pd)(pd);
  // The daemon does not count address handles, which exist only in the library.
  if (__atomic_load_n(&FromIbv(pd)->handles, __ATOMIC_ACQUIRE) != 0) return WithErrno(EBUSY);
  if (FromIbv(pd)->protection != nullptr) {
    rocegw::client::DeallocParentDomain(pd);
    return 0;
  }
  if (__atomic_load_n(&FromIbv(pd)->parents, __ATOMIC_ACQUIRE) != 0) return WithErrno(EBUSY);
  const int error = SessionOf(pd->context)->CallDestroy(ROCEGW_MSG_DEALLOC_PD, pd->handle);
  if (error == 0) free(FromIbv(pd));
  return WithErrno(error);
}

ROCEGW_EXPORT ibv_pd* ibv_import_pd(ibv_context* context, uint32_t handle) {
  if (!IsOurs(context)) return ROCEGW_REAL(ibv_import_pd)(context, handle);
  errno = rocegw::client::refusal::ibv_import_pd;
  return nullptr;
}

ROCEGW_EXPORT void ibv_unimport_pd(ibv_pd* pd) {
  if (!IsOurs(pd->context)) ROCEGW_REAL(ibv_unimport_pd)(pd);
}
