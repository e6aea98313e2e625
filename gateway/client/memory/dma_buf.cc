// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/memory/dma_buf.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/device/objects.h"
#include "gateway/client/device/refusals.h"
#include "gateway/client/memory/device_mr.h"
#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/process/real.h"
#include "gateway/client/process/report.h"

namespace rocegw::client {

namespace {

constexpr long kMaxErrno = 4095;
// Flags that the kernel accepts for dma-bufs, too.
constexpr uint32_t kKnownAccess = kDataAccess | IBV_ACCESS_RELAXED_ORDERING;

// Requested region: bytes [offset, offset + length) of the buffer.
struct Wish {
  ibv_pd* pd;
  uint64_t offset;
  uint64_t length;
  uint64_t iova;
  int fd;
  uint32_t access;
};

// Returns 0 or an errno value, as the kernel's drivers do.
int Check(const Wish& wish, uint64_t page) {
  if ((wish.access & ~kKnownAccess) != 0 || !DataAccessIsValid(wish.access)) return EINVAL;
  const uint64_t most = UINT64_MAX - page;
  if (wish.length == 0 || wish.length > most || wish.offset > most - wish.length ||
      wish.iova > UINT64_MAX - wish.length) {
    return EINVAL;
  }
  return ((wish.offset ^ wish.iova) & (page - 1)) != 0 ? EINVAL : 0;
}

int Map(const Wish& wish, uint64_t page, DmaBufMapping* mapping) {
  const uint64_t length = (wish.offset + wish.length + page - 1) & ~(page - 1);
  const long base = RawSyscall(SYS_mmap, nullptr, length, long{PROT_READ | PROT_WRITE},
                               long{MAP_SHARED}, static_cast<long>(wish.fd), 0L);
  if (base < 0 && base >= -kMaxErrno) {
    const int error = static_cast<int>(-base);
    Debug("dma-buf cannot be mapped: %s", strerror(error));
    // Exporters without a mapping for processors use errors of several kinds.
    const bool common =
        error == EBADF || error == EACCES || error == EINVAL || error == ENOMEM || error == EPERM;
    return common ? error : refusal::ibv_reg_dmabuf_mr;
  }
  *mapping = {reinterpret_cast<void*>(base), length, 0};
  return 0;
}

int Import(Session* session, int fd, DmaBufMapping* mapping) {
  rocegw_import_region request = {};
  request.address = reinterpret_cast<uint64_t>(mapping->base);
  request.length = mapping->length;
  rocegw_object_reply reply;
  const int error =
      OfAnyDaemon(session->Call(ROCEGW_MSG_IMPORT_REGION, &request, &reply, nullptr, fd));
  if (error != 0) {
    Debug("the gateway does not map the dma-buf: %s", strerror(error));
    return error;
  }
  mapping->region = reply.handle;
  return 0;
}

// Returns 0, or an errno value with nothing mapped.
int Make(const Wish& wish, Mr* mr) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  Session* const session = SessionOf(wish.pd->context);
  int error = Check(wish, page);
  if (error != 0) return error;
  // The address is what libibverbs sets.
  MrWish region = {wish.pd,    reinterpret_cast<void*>(wish.offset), 0, wish.length, wish.iova,
                   wish.access};
  error = Map(wish, page, &mr->dma_buf);
  // Programs register the exported memory of a GPU with its own address as iova. Such a buffer has
  // no mapping for processors; the allocation behind the address has an IPC handle.
  rocegw_import_device allocation = {};
  int descriptor = -1;
  if (error != 0 && FindDeviceMemory(wish.iova, &allocation, &descriptor) == MemoryPlace::kDevice) {
    region.start = wish.iova;
    region.access &= ~uint32_t{IBV_ACCESS_RELAXED_ORDERING};
    return RegisterDevice(region, &allocation, descriptor, mr);
  }
  if (error != 0) return error;
  error = Import(session, wish.fd, &mr->dma_buf);
  if (error == 0) {
    region.start = reinterpret_cast<uint64_t>(mr->dma_buf.base) + wish.offset;
    error = RegisterIn(mr->dma_buf.region, wish.offset, region, wish.access & kDataAccess,
                       wish.access, mr);
  }
  if (error != 0) EndDmaBuf(session, &mr->dma_buf);
  return error;
}

}  // namespace

void EndDmaBuf(Session* session, DmaBufMapping* mapping) {
  if (mapping->region != 0) session->CallDestroy(ROCEGW_MSG_DESTROY_REGION, mapping->region);
  if (mapping->base != nullptr) RawUnmap(mapping->base, mapping->length);
  *mapping = {};
}

}  // namespace rocegw::client

ROCEGW_EXPORT ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova,
                                        int fd, int access) {
  using namespace rocegw::client;  // NOLINT: this call is theirs
  if (!IsOurs(pd->context)) {
    return ROCEGW_REAL(ibv_reg_dmabuf_mr)(pd, offset, length, iova, fd, access);
  }
  auto* mr = MakeObject<Mr>();
  if (mr == nullptr) return nullptr;
  const int error = Make({pd, offset, length, iova, fd, static_cast<uint32_t>(access)}, mr);
  if (error == 0) return &mr->ibv;
  free(mr);
  errno = error;
  return nullptr;
}
