// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/rings/receive_slots.h"

#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "gateway/client/process/raw_syscall.h"

namespace rocegw::client {

namespace {

// Copies to on-demand memory through the kernel: unmapped memory then gives an error instead of a
// signal.
bool CopyOnDemand(uint8_t* to, const uint8_t* from, uint32_t length) {
  const iovec source = {const_cast<uint8_t*>(from), length};
  const iovec target = {to, length};
  const long copied =
      RawSyscall(SYS_process_vm_writev, RawSyscall(SYS_getpid), &source, 1UL, &target, 1UL, 0UL);
  if (copied != -EPERM && copied != -ENOSYS) return copied == static_cast<long>(length);
  memcpy(to, from, length);  // a sandbox forbids the call
  return true;
}

bool NoDevice(uint8_t*, const uint8_t*, uint32_t) { return false; }

}  // namespace

bool (*copy_to_device)(uint8_t* to, const uint8_t* from, uint32_t length) = NoDevice;

int WriteReceive(const ReceiveSlots& slots, uint32_t slot, const ibv_recv_wr& wr) {
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > slots.max_sge) return EINVAL;
  uint8_t* place = slots.slots + size_t{slot & slots.mask} * slots.stride;
  auto* wqe = reinterpret_cast<rocegw_recv_wqe*>(place);
  *wqe = {wr.wr_id, static_cast<uint32_t>(wr.num_sge), 0};
  if (wr.num_sge != 0) {
    memcpy(place + sizeof(*wqe), wr.sg_list, static_cast<size_t>(wr.num_sge) * sizeof(rocegw_sge));
  }
  return 0;
}

bool ScatterPayload(const ReceiveSlots& slots, const rocegw_cqe& cqe) {
  uint32_t left = cqe.byte_length;
  if (slots.payload == nullptr || left > slots.payload_stride) return false;
  const uint32_t slot = cqe.ring_slot & slots.mask;
  if (slot >= slots.payload_slots) return false;
  const uint8_t* from = slots.payload + size_t{slot} * slots.payload_stride;
  const uint8_t* place = slots.slots + size_t{slot} * slots.stride;
  const auto* wqe = reinterpret_cast<const rocegw_recv_wqe*>(place);
  const auto* sge = reinterpret_cast<const rocegw_sge*>(place + sizeof(*wqe));
  const uint32_t count = wqe->num_sge < slots.max_sge ? wqe->num_sge : slots.max_sge;
  for (uint32_t i = 0; i < count && left != 0; ++i) {
    const uint32_t piece = sge[i].length < left ? sge[i].length : left;
    if (piece == 0) continue;
    const auto locate = [&](uint32_t not_access) {
      return slots.keys->Locate(sge[i].lkey, slots.pd, sge[i].address, piece,
                                IBV_ACCESS_LOCAL_WRITE, not_access);
    };
    if (uint8_t* const plain = locate(IBV_ACCESS_ON_DEMAND | kAccessDeviceMemory)) {
      memcpy(plain, from, piece);
    } else if (uint8_t* const on_demand = locate(kAccessDeviceMemory)) {
      if (!CopyOnDemand(on_demand, from, piece)) return false;
    } else {
      uint8_t* const device = locate(0);
      if (device == nullptr || !copy_to_device(device, from, piece)) return false;
    }
    from += piece;
    left -= piece;
  }
  return left == 0;
}

}  // namespace rocegw::client
