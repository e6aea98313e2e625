// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/memory/on_demand.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "gateway/client/device/objects.h"
#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/session/session.h"

// Linux 5.14.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace rocegw::client {

namespace {

// Returns 0 or an errno value as the manual page defines them.
int Locate(const ibv_pd* pd, const ibv_sge& sge, bool for_writing, uint8_t** place) {
  KeyTable& keys = SessionOf(pd->context)->keys();
  RegisteredRange range;
  if (!keys.Find(sge.lkey, &range)) return ENOENT;
  if (range.pd != pd->handle) return EPERM;
  if ((range.access & IBV_ACCESS_ON_DEMAND) == 0) return EINVAL;
  if (for_writing && (range.access & IBV_ACCESS_LOCAL_WRITE) == 0) return EPERM;
  *place = keys.Locate(sge.lkey, pd->handle, sge.addr, sge.length, 0);
  return *place != nullptr ? 0 : EFAULT;
}

int BringIn(const uint8_t* place, uint32_t length, bool for_writing) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uint64_t>(place) & ~(page - 1);
  const uint64_t end = reinterpret_cast<uint64_t>(place) + length;
  const long result = RawAdvise(reinterpret_cast<void*>(start), end - start,
                                for_writing ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
  // Some kernels and mappings cannot do it: the call is only advice.
  return result == 0 || result == -EINVAL ? 0 : EFAULT;
}

}  // namespace

void FillOnDemandCaps(ibv_device_attr_ex* attr) {
  constexpr uint32_t kDatagrams = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
  constexpr uint32_t kConnected = kDatagrams | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_SRQ_RECV;
  constexpr uint32_t kReliable = kConnected | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
  attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
  attr->odp_caps.per_transport_caps = {kReliable, kConnected,
                                       kDatagrams | IBV_ODP_SUPPORT_SRQ_RECV};
  attr->xrc_odp_caps = kReliable;
}

int AdviseMr(ibv_pd* pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge* list,
             uint32_t count) {
  if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
      advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) {
    return EOPNOTSUPP;
  }
  if ((flags & ~uint32_t{IBV_ADVISE_MR_FLAG_FLUSH}) != 0 || count == 0) return EINVAL;
  const bool for_writing = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
  const bool bring_in =
      advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT && (flags & IBV_ADVISE_MR_FLAG_FLUSH) != 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint8_t* place = nullptr;
    int error = Locate(pd, list[i], for_writing, &place);
    if (error == 0 && bring_in && list[i].length != 0)
      error = BringIn(place, list[i].length, for_writing);
    if (error != 0) return error;
  }
  return 0;
}

}  // namespace rocegw::client
