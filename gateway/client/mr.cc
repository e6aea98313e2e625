// SPDX-License-Identifier: Apache-2.0
// Memory registration. The range is checked here as hardware drivers do by pinning it: not mapped,
// or not writable where the access asks for it, is EFAULT. On-demand regions are neither pinned nor
// checked, and what is mapped there may change.
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
constexpr uint32_t kKnownAccess = kWriting | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND;
// Hints that change nothing here: memory is never huge-page pinned, and ordering is always kept.
constexpr uint32_t kIgnoredAccess =
    IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_OPTIONAL_RANGE;
constexpr uint32_t kNeedLocalWrite = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

int CheckAccess(ibv_context* context, uint32_t access) {
  if (FromIbv(context)->placement) access &= ~kAccessFlushGlobal;
  if ((access & ~(kKnownAccess | kIgnoredAccess)) != 0) return refusal::ibv_reg_mr;
  if ((access & kNeedLocalWrite) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) return EINVAL;
  return 0;
}

// Registers at the daemon and fills `mr`; its address in the program stays. 0 or errno, and nothing
// is registered then.
int Fill(ibv_pd* pd, void* address, size_t length, uint64_t iova, uint32_t access, Mr* mr) {
  const auto start = reinterpret_cast<uint64_t>(address);
  int error = CheckAccess(pd->context, access);
  if (error == 0 && (length == 0 || start + length < start || iova + length < iova)) error = EINVAL;
  // What is there counts when it is used, not now.
  const bool on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0;
  if (error == 0 && !on_demand) error = CheckMapped(start, length, (access & kWriting) != 0);
  if (error != 0) return error;
  auto* registration = MakeObject<Registration>();
  if (registration == nullptr) return ENOMEM;
  Session* session = SessionOf(pd->context);
  rocegw_reg_mr request = {};
  request.pd = pd->handle;
  request.access = access & (kKnownAccess | kAccessFlushGlobal);
  request.address = start;
  request.length = length;
  request.iova = iova;
  const bool written = (access & kWriting) != 0;
  if (on_demand) {
    ListRegistration(session, start, length, written, registration);
  } else {
    BeginRegistration(session, start, length, written, registration);
  }
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
    free(registration);
    return error;
  }
  mr->registration = registration;
  mr->access = access;
  mr->iova = iova;
  mr->ibv.context = pd->context;
  mr->ibv.pd = pd;
  mr->ibv.addr = address;
  mr->ibv.length = length;
  mr->ibv.handle = reply.handle;
  mr->ibv.lkey = reply.lkey;
  mr->ibv.rkey = reply.rkey;
  return 0;
}

ibv_mr* Register(ibv_pd* pd, void* address, size_t length, uint64_t iova, uint32_t access) {
  auto* mr = MakeObject<Mr>();
  if (mr == nullptr) return nullptr;
  const int error = Fill(pd, address, length, iova, access, mr);
  if (error == 0) return &mr->ibv;
  free(mr);
  errno = error;
  return nullptr;
}

int Release(const Mr& mr) {
  Session* session = SessionOf(mr.ibv.context);
  const int error = session->CallDestroy(ROCEGW_MSG_DEREG_MR, mr.ibv.handle);
  if (error != 0) return error;
  session->keys().Remove(mr.ibv.lkey);
  EndRegistration(mr.registration);
  free(mr.registration);
  return 0;
}

// The new one is made before the old one goes, so a refusal leaves the region as it was. Keys
// change, as the manual page allows ("performs the functions deregister followed by register").
int Reregister(Mr* mr, uint32_t flags, ibv_pd* pd, void* address, size_t length, uint32_t access) {
  constexpr uint32_t kKnown =
      IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool changes_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  if (flags == 0 || (flags & ~kKnown) != 0 || (moves && address == nullptr) ||
      (changes_pd && (pd == nullptr || pd->context != mr->ibv.context))) {
    return EINVAL;
  }
  const Mr old = *mr;
  Mr fresh = old;
  int error =
      Fill(changes_pd ? pd : old.ibv.pd, moves ? address : old.ibv.addr,
           moves ? length : old.ibv.length, moves ? reinterpret_cast<uint64_t>(address) : old.iova,
           (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 ? access : old.access, &fresh);
  if (error != 0) return error;
  error = Release(old);
  if (error != 0) {
    Release(fresh);
    return error;
  }
  *mr = fresh;
  return 0;
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
  const int error = rocegw::client::Release(*mr);
  if (error == 0) free(mr);
  return error;
}

ROCEGW_EXPORT int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, size_t length,
                               int access) {
  if (!IsOurs(mr->context)) {
    return ROCEGW_REAL(ibv_rereg_mr)(mr, flags, pd, address, length, access);
  }
  const int error = rocegw::client::Reregister(FromIbv(mr), static_cast<uint32_t>(flags), pd,
                                               address, length, static_cast<uint32_t>(access));
  if (error == 0) return 0;
  errno = error;
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
