// SPDX-License-Identifier: Apache-2.0
// Functions that libibverbs and librdmacm got after the release whose headers this is compiled
// with. A program linked with a later release calls them with our handles, in which the installed
// library would look for its private part. Their C++ names differ, since later headers declare the
// originals.
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>

#include "gateway/client/cm/cm_id.h"
#include "gateway/client/device/later_verbs.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/device/query.h"
#include "gateway/client/device/refusals.h"
#include "gateway/client/process/real.h"

#define ROCEGW_LATER(name) __asm__(#name) __attribute__((visibility("default")))

namespace rocegw::client {

// Memory for a program's registrations. The installed library's buffers begin with a pointer.
struct LaterBuffer {
  uint64_t mark;
  ibv_pd* pd;
  void* address;
  size_t size;
};

namespace {

constexpr uint64_t kBufferMark = 0x6675625f77676372;

bool IsOurBuffer(const LaterBuffer* buffer) { return buffer->mark == kBufferMark; }

// Calls the installed function of that name; returns `refused` if there is none.
template <typename Result, typename... Arguments>
Result CallReal(const char* name, Result refused, Arguments... arguments) {
  using Function = Result (*)(Arguments...);
  const auto real = reinterpret_cast<Function>(FindReal(name));
  if (real != nullptr) return real(arguments...);
  errno = EOPNOTSUPP;
  return refused;
}

template <typename Result>
Result Refuse(int error, Result result) {
  errno = error;
  return result;
}

constexpr void* kNothing = nullptr;

// Returns the speed in units of 100 Mbit/s.
uint64_t SpeedOf(const ibv_port_attr& port) {
  struct Speed {
    uint8_t code;
    uint64_t per_lane;
  };
  constexpr Speed kSpeeds[] = {{1, 25},   {2, 50},   {4, 100},  {8, 100},
                               {16, 140}, {32, 250}, {64, 500}, {128, 1000}};
  constexpr uint8_t kLanes[][2] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  uint64_t speed = 0;
  for (const Speed& row : kSpeeds) {
    if (row.code == port.active_speed) speed = row.per_lane;
  }
  for (const auto& row : kLanes) {
    if (row[0] == port.active_width) return speed * row[1];
  }
  return 0;
}

// Returns true if the buffer is ours and of this domain, and contains the range.
bool Fits(const LaterBuffer* buffer, const ibv_pd* pd, const void* address, size_t length) {
  if (!IsOurBuffer(buffer) || buffer->pd != pd) return false;
  const auto start = reinterpret_cast<uint64_t>(buffer->address);
  const auto offset = reinterpret_cast<uint64_t>(address) - start;
  return offset <= buffer->size && length <= buffer->size - offset;
}

}  // namespace

}  // namespace rocegw::client

using rocegw::client::CallReal;
using rocegw::client::CmError;
using rocegw::client::Fits;
using rocegw::client::IsOurBuffer;
using rocegw::client::IsOurs;
using rocegw::client::kBufferMark;
using rocegw::client::kNothing;
using rocegw::client::LaterBuffer;
using rocegw::client::LaterMrInitAttr;
using rocegw::client::Refuse;
namespace refusal = rocegw::client::refusal;

extern "C" {

// rdma-core 62
int RocegwQueryPortSpeed(ibv_context* context, uint32_t port, uint64_t* speed)
    ROCEGW_LATER(ibv_query_port_speed);
int RocegwQueryPortSpeed(ibv_context* context, uint32_t port, uint64_t* speed) {
  if (!IsOurs(context)) return CallReal("ibv_query_port_speed", EOPNOTSUPP, context, port, speed);
  if (port > UINT8_MAX) return EINVAL;
  ibv_port_attr attr;
  const int error =
      rocegw::client::QueryPort(context, static_cast<uint8_t>(port), &attr, sizeof(attr));
  if (error == 0) *speed = rocegw::client::SpeedOf(attr);
  return error;
}

// rdma-core 59: registration by members that a mask names.
ibv_mr* RocegwRegMrEx(ibv_pd* pd, LaterMrInitAttr* attr) ROCEGW_LATER(ibv_reg_mr_ex);
ibv_mr* RocegwRegMrEx(ibv_pd* pd, LaterMrInitAttr* attr) {
  using namespace rocegw::client;  // NOLINT: its constants
  ibv_mr* const none = nullptr;
  if (!IsOurs(pd->context)) return CallReal("ibv_reg_mr_ex", none, pd, attr);
  constexpr uint64_t kOfDmaBuf = kMrHasFd | kMrHasFdOffset | kMrHasIova;
  if (attr->comp_mask == kOfDmaBuf) {
    return ibv_reg_dmabuf_mr(pd, attr->fd_offset, attr->length, attr->iova, attr->fd, attr->access);
  }
  if ((attr->comp_mask & (kMrHasFd | kMrHasFdOffset)) != 0) return Refuse(EINVAL, none);
  if ((attr->comp_mask & ~(kMrHasIova | kMrHasAddress | kMrHasBuffer)) != 0) {
    return Refuse(refusal::ibv_reg_mr_ex, none);
  }
  if ((attr->comp_mask & kMrHasAddress) == 0) return Refuse(EINVAL, none);
  if ((attr->comp_mask & kMrHasBuffer) != 0 && !Fits(attr->buf, pd, attr->addr, attr->length)) {
    return Refuse(EINVAL, none);
  }
  if ((attr->comp_mask & kMrHasIova) == 0) {
    return (ibv_reg_mr)(pd, attr->addr, attr->length, attr->access);
  }
  return ibv_reg_mr_iova2(pd, attr->addr, attr->length, attr->iova,
                          static_cast<unsigned>(attr->access));
}

// rdma-core 64: memory of the kind that suits the device, here plain memory.
void* RocegwAllocBuf(ibv_pd* pd, size_t size, LaterBuffer** made) ROCEGW_LATER(ibv_alloc_buf);
void* RocegwAllocBuf(ibv_pd* pd, size_t size, LaterBuffer** made) {
  if (!IsOurs(pd->context)) return CallReal("ibv_alloc_buf", kNothing, pd, size, made);
  auto* buffer = static_cast<LaterBuffer*>(malloc(sizeof(LaterBuffer)));
  if (buffer == nullptr) return nullptr;
  void* memory =
      size == 0 ? Refuse(EINVAL, MAP_FAILED)
                : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    free(buffer);
    return nullptr;
  }
  *buffer = {kBufferMark, pd, memory, size};
  *made = buffer;
  return memory;
}

void RocegwFreeBuf(LaterBuffer* buffer) ROCEGW_LATER(ibv_free_buf);
void RocegwFreeBuf(LaterBuffer* buffer) {
  if (!IsOurBuffer(buffer)) {
    using Function = void (*)(LaterBuffer*);
    reinterpret_cast<Function>(rocegw::client::FindReal("ibv_free_buf"))(buffer);
    return;
  }
  munmap(buffer->address, buffer->size);
  free(buffer);
}

ibv_mr* RocegwRegBufMr(ibv_pd* pd, LaterBuffer* buffer, void* address, size_t length, int access)
    ROCEGW_LATER(ibv_reg_buf_mr);
ibv_mr* RocegwRegBufMr(ibv_pd* pd, LaterBuffer* buffer, void* address, size_t length, int access) {
  ibv_mr* const none = nullptr;
  if (!IsOurs(pd->context)) {
    return CallReal("ibv_reg_buf_mr", none, pd, buffer, address, length, access);
  }
  if (!Fits(buffer, pd, address, length)) return Refuse(EINVAL, none);
  return (ibv_reg_mr)(pd, address, length, access);
}

// rdma-core 65
int RocegwExportBufDmabufFd(LaterBuffer* buffer) ROCEGW_LATER(ibv_export_buf_dmabuf_fd);
int RocegwExportBufDmabufFd(LaterBuffer* buffer) {
  if (!IsOurBuffer(buffer)) return CallReal("ibv_export_buf_dmabuf_fd", -1, buffer);
  return Refuse(refusal::ibv_export_buf_dmabuf_fd, -1);
}

// rdma-core 59: hints for the caches of a device.
void* RocegwAllocDmah(ibv_context* context, void* attr) ROCEGW_LATER(ibv_alloc_dmah);
void* RocegwAllocDmah(ibv_context* context, void* attr) {
  if (!IsOurs(context)) return CallReal("ibv_alloc_dmah", kNothing, context, attr);
  return Refuse<void*>(refusal::ibv_alloc_dmah, nullptr);
}

// rdma-core 65: counters of completions. Only the installed library has them, for other devices.
int RocegwQueryCompCntrCaps(ibv_context* context, void* caps, size_t size)
    ROCEGW_LATER(_ibv_query_comp_cntr_caps);
int RocegwQueryCompCntrCaps(ibv_context* context, void* caps, size_t size) {
  if (!IsOurs(context)) {
    return CallReal("_ibv_query_comp_cntr_caps", EOPNOTSUPP, context, caps, size);
  }
  return refusal::_ibv_query_comp_cntr_caps;
}

void* RocegwCreateCompCntr(ibv_context* context, void* attr) ROCEGW_LATER(ibv_create_comp_cntr);
void* RocegwCreateCompCntr(ibv_context* context, void* attr) {
  if (!IsOurs(context)) return CallReal("ibv_create_comp_cntr", kNothing, context, attr);
  return Refuse<void*>(refusal::ibv_create_comp_cntr, nullptr);
}

int RocegwQpAttachCompCntr(ibv_qp* qp, void* counter, void* attr)
    ROCEGW_LATER(ibv_qp_attach_comp_cntr);
int RocegwQpAttachCompCntr(ibv_qp* qp, void* counter, void* attr) {
  if (!IsOurs(qp->context)) {
    return CallReal("ibv_qp_attach_comp_cntr", EOPNOTSUPP, qp, counter, attr);
  }
  return refusal::ibv_qp_attach_comp_cntr;
}

// rdma-core 60: resolution of service names in the background, with an event of its own.
int RocegwResolveAddrinfo(rdma_cm_id* id, const char* node, const char* service,
                          const rdma_addrinfo* hints) ROCEGW_LATER(rdma_resolve_addrinfo);
int RocegwResolveAddrinfo(rdma_cm_id* id, const char* node, const char* service,
                          const rdma_addrinfo* hints) {
  if (!IsOurs(id)) return CallReal("rdma_resolve_addrinfo", -1, id, node, service, hints);
  return CmError(refusal::rdma_resolve_addrinfo);
}

int RocegwQueryAddrinfo(rdma_cm_id* id, rdma_addrinfo** info) ROCEGW_LATER(rdma_query_addrinfo);
int RocegwQueryAddrinfo(rdma_cm_id* id, rdma_addrinfo** info) {
  if (!IsOurs(id)) return CallReal("rdma_query_addrinfo", -1, id, info);
  return CmError(refusal::rdma_query_addrinfo);
}

int RocegwWriteCmEvent(rdma_cm_id* id, rdma_cm_event_type event, int status, uint64_t argument)
    ROCEGW_LATER(rdma_write_cm_event);
int RocegwWriteCmEvent(rdma_cm_id* id, rdma_cm_event_type event, int status, uint64_t argument) {
  if (!IsOurs(id)) return CallReal("rdma_write_cm_event", -1, id, event, status, argument);
  return CmError(refusal::rdma_write_cm_event);
}

}  // extern "C"
