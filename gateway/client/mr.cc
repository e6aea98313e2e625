// SPDX-License-Identifier: Apache-2.0
// Memory registration. The range is checked here as hardware drivers do by pinning it: not mapped,
// or not writable where the access asks for it, is EFAULT.
#include <cerrno>
#include <cstdlib>

#include "gateway/client/memory_map.h"
#include "gateway/client/objects.h"
#include "gateway/client/real.h"
#include "gateway/client/refusals.h"
#include "gateway/client/remap.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace rocegw::client {

namespace {

constexpr uint32_t kWriting = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
constexpr uint32_t kKnownAccess = kWriting | IBV_ACCESS_REMOTE_READ;
// Hints that change nothing here: memory is never huge-page pinned, and ordering is always kept.
constexpr uint32_t kIgnoredAccess =
    IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_OPTIONAL_RANGE;
constexpr uint32_t kNeedLocalWrite = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

int CheckAccess(uint32_t access) {
  if ((access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED)) != 0) return refusal::ibv_reg_mr;
  if ((access & ~(kKnownAccess | kIgnoredAccess)) != 0) return refusal::ibv_reg_mr;
  if ((access & kNeedLocalWrite) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) return EINVAL;
  return 0;
}

ibv_mr* Register(ibv_pd* pd, void* address, size_t length, uint64_t iova, uint32_t access) {
  const auto start = reinterpret_cast<uint64_t>(address);
  int error = CheckAccess(access);
  if (error == 0 && (length == 0 || start + length < start || iova + length < iova)) error = EINVAL;
  if (error == 0) error = CheckMapped(start, length, (access & kWriting) != 0);
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto* mr = MakeObject<Mr>();
  if (mr == nullptr) return nullptr;
  Session* session = SessionOf(pd->context);
  rocegw_reg_mr request = {};
  request.pd = pd->handle;
  request.access = access & kKnownAccess;
  request.address = start;
  request.length = length;
  request.iova = iova;
  Registration* registration = &mr->registration;
  BeginRegistration(session, start, length, (access & kWriting) != 0, registration);
  request.region = RegionHandle(*registration);
  request.region_offset = RegionOffset(*registration);
  request.kept = registration->kept;
  rocegw_mr_reply reply;
  error = session->Call(ROCEGW_MSG_REG_MR, &request, &reply);
  if (error != 0 && request.region != 0) {
    // Daemons that want regions to hold all of a registration, limits that count both.
    LeaveRegion(registration);
    request.region = 0;
    request.region_offset = 0;
    request.kept = registration->kept;
    error = session->Call(ROCEGW_MSG_REG_MR, &request, &reply);
  }
  if (error == 0) {
    error = session->keys().Insert(reply.lkey, {iova, length, start, pd->handle, access});
    if (error != 0) session->CallDestroy(ROCEGW_MSG_DEREG_MR, reply.handle);
  }
  if (error != 0) {
    EndRegistration(registration);
    free(mr);
    errno = error;
    return nullptr;
  }
  mr->ibv.context = pd->context;
  mr->ibv.pd = pd;
  mr->ibv.addr = address;
  mr->ibv.length = length;
  mr->ibv.handle = reply.handle;
  mr->ibv.lkey = reply.lkey;
  mr->ibv.rkey = reply.rkey;
  return &mr->ibv;
}

ibv_mr* RefuseMr(int error) {
  errno = error;
  return nullptr;
}

}  // namespace

}  // namespace rocegw::client

using rocegw::client::FromIbv;
using rocegw::client::IsOurs;
namespace refusal = rocegw::client::refusal;
using rocegw::client::Mr;
using rocegw::client::RefuseMr;
using rocegw::client::Register;
using rocegw::client::Session;
using rocegw::client::SessionOf;

ROCEGW_EXPORT ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
  if (!IsOurs(pd->context)) return ROCEGW_REAL(ibv_reg_mr)(pd, address, length, access);
  return Register(pd, address, length, reinterpret_cast<uint64_t>(address),
                  static_cast<uint32_t>(access));
}

ROCEGW_EXPORT ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, size_t length, uint64_t iova,
                                      int access) {
  if (!IsOurs(pd->context)) return ROCEGW_REAL(ibv_reg_mr_iova)(pd, address, length, iova, access);
  return Register(pd, address, length, iova, static_cast<uint32_t>(access));
}

ROCEGW_EXPORT ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t iova,
                                       unsigned access) {
  if (!IsOurs(pd->context)) return ROCEGW_REAL(ibv_reg_mr_iova2)(pd, address, length, iova, access);
  return Register(pd, address, length, iova, access);
}

ROCEGW_EXPORT int ibv_dereg_mr(ibv_mr* ibv) {
  if (!IsOurs(ibv->context)) return ROCEGW_REAL(ibv_dereg_mr)(ibv);
  Mr* mr = FromIbv(ibv);
  Session* session = SessionOf(ibv->context);
  const int error = session->CallDestroy(ROCEGW_MSG_DEREG_MR, ibv->handle);
  if (error != 0) return error;
  session->keys().Remove(ibv->lkey);
  EndRegistration(&mr->registration);
  free(mr);
  return 0;
}

ROCEGW_EXPORT int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, size_t length,
                               int access) {
  if (!IsOurs(mr->context)) {
    return ROCEGW_REAL(ibv_rereg_mr)(mr, flags, pd, address, length, access);
  }
  errno = refusal::ibv_rereg_mr;
  return IBV_REREG_MR_ERR_INPUT;  // the region is as it was
}

ROCEGW_EXPORT ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova,
                                        int fd, int access) {
  if (!IsOurs(pd->context)) {
    return ROCEGW_REAL(ibv_reg_dmabuf_mr)(pd, offset, length, iova, fd, access);
  }
  return RefuseMr(refusal::ibv_reg_dmabuf_mr);
}

ROCEGW_EXPORT ibv_mr* ibv_import_mr(ibv_pd* pd, uint32_t handle) {
  if (!IsOurs(pd->context)) return ROCEGW_REAL(ibv_import_mr)(pd, handle);
  return RefuseMr(refusal::ibv_import_mr);
}

ROCEGW_EXPORT void ibv_unimport_mr(ibv_mr* mr) {
  if (!IsOurs(mr->context)) ROCEGW_REAL(ibv_unimport_mr)(mr);
}

ROCEGW_EXPORT ibv_dm* ibv_import_dm(ibv_context* context, uint32_t handle) {
  if (!IsOurs(context)) return ROCEGW_REAL(ibv_import_dm)(context, handle);
  errno = refusal::ibv_import_dm;
  return nullptr;
}

ROCEGW_EXPORT void ibv_unimport_dm(ibv_dm* dm) {
  if (!IsOurs(dm->context)) ROCEGW_REAL(ibv_unimport_dm)(dm);
}
