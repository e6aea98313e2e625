// SPDX-License-Identifier: Apache-2.0
// Memory registration. The range is checked like hardware drivers do when they pin it: unmapped
// memory, or memory that is not writable although the access requires it, gives EFAULT. On-demand
// regions are neither pinned nor checked, and their mappings may change.
#include <cerrno>
#include <cstdlib>

#include "gateway/client/device/objects.h"
#include "gateway/client/device/refusals.h"
#include "gateway/client/memory/device_mr.h"
#include "gateway/client/memory/dma_buf.h"
#include "gateway/client/memory/memory_map.h"
#include "gateway/client/memory/region_mr.h"
#include "gateway/client/memory/remap.h"
#include "gateway/client/process/real.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace rocegw::client {

namespace {

constexpr uint32_t kWriting = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
constexpr uint32_t kKnownAccess = kWriting | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND;
// Hints without effect: memory is never pinned as huge pages, and ordering is always kept.
// Zero-based concerns the region's start address, which only the library uses.
constexpr uint32_t kIgnoredAccess = IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING |
                                    IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_ZERO_BASED;

int CheckAccess(ibv_context* context, uint32_t access) {
  if (FromIbv(context)->placement) access &= ~kAccessFlushGlobal;
  if ((access & ~(kKnownAccess | kIgnoredAccess)) != 0) return refusal::ibv_reg_mr;
  if (!DataAccessIsValid(access)) return EINVAL;
  return 0;
}

// Requested properties of a region.
struct Wish {
  ibv_pd* pd;
  void* address;
  uint64_t length;
  uint64_t iova;
  uint32_t access;

  uint64_t start() const { return reinterpret_cast<uint64_t>(address); }
  bool on_demand() const { return (access & IBV_ACCESS_ON_DEMAND) != 0; }
  bool written() const { return (access & kWriting) != 0; }
  MrWish of_program() const { return {pd, address, start(), length, iova, access}; }
  RegisteredRange range() const { return {iova, length, start(), pd->handle, access}; }
};

int Check(const Wish& wish) {
  const int error = CheckAccess(wish.pd->context, wish.access);
  if (error != 0) return error;
  if (wish.length == 0 || wish.start() + wish.length < wish.start() ||
      wish.iova + wish.length < wish.iova) {
    return EINVAL;
  }
  // On-demand memory is checked when it is used, not now.
  return wish.on_demand() ? 0 : CheckMapped(wish.start(), wish.length, wish.written());
}

void End(Registration* registration) {
  EndRegistration(registration);
  free(registration);
}

// Asks the daemon to create or change a region. Returns 0 and the registration, which the caller
// ends; or errno, and nothing has changed.
template <typename Request>
int Ask(uint32_t type, const Wish& wish, Request* request, Registration** made,
        rocegw_mr_reply* reply) {
  auto* registration = MakeObject<Registration>();
  if (registration == nullptr) return ENOMEM;
  Session* session = SessionOf(wish.pd->context);
  request->pd = wish.pd->handle;
  request->access = wish.access & (kKnownAccess | kAccessFlushGlobal);
  request->address = wish.start();
  request->length = wish.length;
  request->iova = wish.iova;
  if (wish.on_demand()) {
    ListRegistration(session, wish.start(), wish.length, wish.written(), registration);
  } else {
    BeginRegistration(session, wish.start(), wish.length, wish.written(), registration);
  }
  request->region = RegionHandle(*registration);
  request->region_offset = RegionOffset(*registration);
  request->kept = registration->kept;
  int error = session->Call(type, request, reply);
  // A bound window prevents the change wherever its memory is.
  if (error != 0 && error != EBUSY && request->region != 0) {
    // Daemons that require a region to hold the whole registration, or limits that count both.
    LeaveRegion(registration);
    request->region = 0;
    request->region_offset = 0;
    request->kept = registration->kept;
    error = session->Call(type, request, reply);
  }
  if (error == 0) {
    *made = registration;
    return 0;
  }
  End(registration);
  return error;
}

// Fills in the region; its address in the program stays.
void Fill(const Wish& wish, const rocegw_mr_reply& reply, Registration* registration, Mr* mr) {
  mr->registration = registration;
  FillMr(wish.of_program(), reply, mr);
}

// Returns 0, or errno without a registration.
int Make(const Wish& wish, Mr* mr) {
  rocegw_import_device allocation = {};
  int descriptor = -1;
  switch (FindDeviceMemory(wish.start(), &allocation, &descriptor)) {
    case MemoryPlace::kHost:
      break;
    case MemoryPlace::kDevice:
      return RegisterDevice(wish.of_program(), &allocation, descriptor, mr);
    case MemoryPlace::kUnreachable:
      return EOPNOTSUPP;
  }
  int error = Check(wish);
  if (error != 0) return error;
  Session* session = SessionOf(wish.pd->context);
  Registration* registration = nullptr;
  rocegw_reg_mr request = {};
  rocegw_mr_reply reply;
  error = Ask(ROCEGW_MSG_REG_MR, wish, &request, &registration, &reply);
  if (error != 0) return error;
  error = session->keys().Insert(reply.lkey, wish.range());
  if (error != 0) {
    session->CallDestroy(ROCEGW_MSG_DEREG_MR, reply.handle);
    End(registration);
    return error;
  }
  Fill(wish, reply, registration, mr);
  return 0;
}

// Returns the region's start address for its users, if none is requested.
uint64_t StartOf(const void* address, uint32_t access) {
  return (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : reinterpret_cast<uint64_t>(address);
}

ibv_mr* Register(ibv_pd* pd, void* address, size_t length, uint64_t iova, uint32_t access) {
  auto* mr = MakeObject<Mr>();
  if (mr == nullptr) return nullptr;
  const int error = Make({pd, address, length, iova, access}, mr);
  if (error == 0) return &mr->ibv;
  free(mr);
  errno = error;
  return nullptr;
}

int Release(Mr* mr) {
  Session* session = SessionOf(mr->ibv.context);
  const int error = session->CallDestroy(ROCEGW_MSG_DEREG_MR, mr->ibv.handle);
  if (error != 0) return error;
  session->keys().Remove(mr->ibv.lkey);
  if (mr->device_region != 0) {
    session->CallDestroy(ROCEGW_MSG_DESTROY_REGION, mr->device_region);
  } else if (mr->dma_buf.base != nullptr) {
    EndDmaBuf(session, &mr->dma_buf);
  } else {
    End(mr->registration);
  }
  return 0;
}

// Changes the region and keeps its keys.
int Change(const Wish& wish, Mr* mr) {
  const int error = Check(wish);
  if (error != 0) return error;
  Registration* registration = nullptr;
  rocegw_rereg_mr request = {};
  request.mr = mr->ibv.handle;
  rocegw_mr_reply reply;
  const int refused = Ask(ROCEGW_MSG_REREG_MR, wish, &request, &registration, &reply);
  if (refused != 0) return refused;
  SessionOf(wish.pd->context)->keys().Replace(reply.lkey, wish.range());
  End(mr->registration);
  Fill(wish, reply, registration, mr);
  return 0;
}

// Replaces the region by one with other keys. The new one is created first, so that a refusal
// leaves the old one unchanged.
int MakeAnew(const Wish& wish, Mr* mr) {
  Mr fresh = *mr;
  int error = Make(wish, &fresh);
  if (error != 0) return error;
  error = Release(mr);
  if (error != 0) {
    Release(&fresh);
    return error;
  }
  *mr = fresh;
  return 0;
}

int Reregister(Mr* mr, uint32_t flags, ibv_pd* pd, void* address, size_t length, uint32_t access) {
  constexpr uint32_t kKnown =
      IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool changes_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  // As libibverbs: only regions of ibv_reg_mr change. Here not those of GPUs' memory, either.
  if (mr->dma_buf.base != nullptr || mr->device_region != 0) return EINVAL;
  if (flags == 0 || (flags & ~kKnown) != 0 || (moves && address == nullptr) ||
      (changes_pd && (pd == nullptr || pd->context != mr->ibv.context))) {
    return EINVAL;
  }
  Wish wish = {mr->ibv.pd, mr->ibv.addr, mr->ibv.length, mr->iova, mr->access};
  if (changes_pd) wish.pd = pd;
  if (moves) {
    wish.address = address;
    wish.length = length;
  }
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) wish.access = access;
  if (moves) wish.iova = StartOf(address, wish.access);
  constexpr uint32_t kMinorWithChanges = 11;
  const bool changes = SessionOf(mr->ibv.context)->welcome().minor >= kMinorWithChanges;
  return changes ? Change(wish, mr) : MakeAnew(wish, mr);
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
using rocegw::client::StartOf;

ROCEGW_EXPORT ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
  if (!IsOurs(pd->context)) return ROCEGW_REAL(ibv_reg_mr)(pd, address, length, access);
  return Register(pd, address, length, StartOf(address, static_cast<uint32_t>(access)),
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
  // The header's inline ibv_reg_mr comes here with the address twice if its flags are not constant.
  if (iova == reinterpret_cast<uint64_t>(address)) iova = StartOf(address, access);
  return Register(pd, address, length, iova, access);
}

ROCEGW_EXPORT int ibv_dereg_mr(ibv_mr* ibv) {
  if (!IsOurs(ibv->context)) return ROCEGW_REAL(ibv_dereg_mr)(ibv);
  Mr* mr = FromIbv(ibv);
  const int error = rocegw::client::Release(mr);
  if (error == 0) free(mr);
  return rocegw::client::WithErrno(error);
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
  // EIO: the gateway could neither change the region nor keep the old one.
  return error == EIO ? IBV_REREG_MR_ERR_CMD : IBV_REREG_MR_ERR_INPUT;
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
