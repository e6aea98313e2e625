// SPDX-License-Identifier: Apache-2.0
// Work requests as private, validated values, and iteration over their scatter/gather lists. A
// request is copied from the client's ring once; afterwards only payload in the ring is read from
// it.
#pragma once

#include <cstdint>
#include <span>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/verbs/mr_table.h"
#include "gateway/verbs/qp_config.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::verbs {

// Limit of SGEs of a request.
inline constexpr uint32_t kMaxSge = 32;
inline constexpr uint32_t kMaxMessage = 1u << 31;

enum class SendOpcode : uint8_t {
  kWrite = ROCEGW_WR_RDMA_WRITE,
  kWriteImm = ROCEGW_WR_RDMA_WRITE_WITH_IMM,
  kSend = ROCEGW_WR_SEND,
  kSendImm = ROCEGW_WR_SEND_WITH_IMM,
  kRead = ROCEGW_WR_RDMA_READ,
  kCompareSwap = ROCEGW_WR_ATOMIC_CMP_AND_SWP,
  kFetchAdd = ROCEGW_WR_ATOMIC_FETCH_AND_ADD,
  kLocalInvalidate = ROCEGW_WR_LOCAL_INV,
  kBindMw = ROCEGW_WR_BIND_MW,
  kSendInvalidate = ROCEGW_WR_SEND_WITH_INV,
  kFlush = ROCEGW_WR_FLUSH,
  kAtomicWrite = ROCEGW_WR_ATOMIC_WRITE,
  kAtomicSwap = ROCEGW_WR_ATOMIC_SWAP,
  kAtomicLoad = ROCEGW_WR_ATOMIC_LOAD,
  kAtomicStore = ROCEGW_WR_ATOMIC_STORE,
  kFetchAnd = ROCEGW_WR_ATOMIC_FETCH_AND,
  kFetchOr = ROCEGW_WR_ATOMIC_FETCH_OR,
  kFetchXor = ROCEGW_WR_ATOMIC_FETCH_XOR,
  kFetchSubtract = ROCEGW_WR_ATOMIC_FETCH_SUB,
};

// Send work request. Fits one cache line.
struct SendRequest {
  uint64_t wr_id = 0;
  // Payload in the ring (INLINE, COPIED), else nullptr. Client memory: copy it first and check the
  // copy.
  const uint8_t* ring_payload = nullptr;
  uint64_t remote_address = 0;  // bind: address of the region's first byte
  uint64_t compare_add = 0;     // bind: length; FLUSH: length of the range in bytes
  uint64_t swap = 0;            // bind: access; FLUSH: FETH
  uint32_t rkey = 0;            // bind: L_Key of the region
  uint32_t length = 0;          // message bytes
  uint32_t immediate = 0;       // or the key to invalidate
  uint32_t peer = 0;            // endpoint: its peer; XRC: SRQ number; bind: key of the window
  uint32_t ring_slot = 0;
  uint16_t flags = 0;  // enum rocegw_wqe_flags
  SendOpcode opcode = SendOpcode::kSend;
  uint8_t sge_count = 0;

  bool reads_remote() const { return opcode == SendOpcode::kRead || is_atomic(); }
  // Returns true for the memory placement extensions (IBTA annex A19).
  bool is_placement() const {
    return opcode == SendOpcode::kFlush || opcode == SendOpcode::kAtomicWrite;
  }
  // Returns true if a native peer answers with more than an acknowledgement.
  bool has_own_answer() const { return reads_remote() || is_placement(); }
  // Returns the length in bytes of the remote range.
  uint32_t remote_length() const {
    return opcode == SendOpcode::kFlush ? static_cast<uint32_t>(compare_add) : length;
  }
  uint32_t feth() const { return static_cast<uint32_t>(swap); }
  bool is_atomic() const {
    return opcode == SendOpcode::kCompareSwap || opcode == SendOpcode::kFetchAdd ||
           is_fetch_operate();
  }
  // Returns true for atomics that only gateways execute (wire::FrameKind::kFetchOperate).
  bool is_fetch_operate() const { return opcode >= SendOpcode::kAtomicSwap; }
  wire::MessageOrder order() const {
    // A FLUSH refers to everything before it.
    if (opcode == SendOpcode::kFlush) return wire::MessageOrder::kAfterAll;
    if ((flags & ROCEGW_WQE_ORDER_RELAXED) != 0) return wire::MessageOrder::kRelaxed;
    if ((flags & ROCEGW_WQE_ORDER_NONE) != 0) return wire::MessageOrder::kNone;
    return (flags & ROCEGW_WQE_FENCE_TARGET) != 0 ? wire::MessageOrder::kAfterAll
                                                  : wire::MessageOrder::kStrong;
  }
  bool has_immediate() const {
    return opcode == SendOpcode::kSendImm || opcode == SendOpcode::kWriteImm;
  }
  bool is_write() const { return opcode == SendOpcode::kWrite || opcode == SendOpcode::kWriteImm; }
  bool is_send() const {
    return opcode == SendOpcode::kSend || opcode == SendOpcode::kSendImm || invalidates();
  }
  // Returns true for a SEND that invalidates a key at the peer.
  bool invalidates() const { return opcode == SendOpcode::kSendInvalidate; }
  // Returns true for requests that change a window here and send nothing.
  bool is_local() const {
    return opcode == SendOpcode::kLocalInvalidate || opcode == SendOpcode::kBindMw;
  }
  BindRequest bind() const {
    return {.before = MemoryKey{peer},
            .key = MemoryKey{immediate},
            .region = MemoryKey{rkey},
            .access = static_cast<uint32_t>(swap),
            .address = remote_address,
            .length = compare_add};
  }
};

static_assert(sizeof(SendRequest) == 64);

// Work request of a UD queue pair; each names its destination.
struct DatagramRequest : SendRequest {
  rocegw_address_vector av{};
  Qpn remote_qpn;
  uint32_t remote_qkey = 0;
};

// Copies the request in `slot` (client memory) to `out` and its SGE list to `sges` (at least
// config.max_send_sge entries), and checks everything that needs no key. Returns kSuccess, or the
// status that the request must fail with. `out` has wr_id and ring_slot in any case.
WcStatus ParseSend(const QpMessageConfig& config, const QpPayloadConfig& payload,
                   const uint8_t* slot, uint32_t ring_slot, SendRequest& out,
                   std::span<rocegw_sge> sges);
// The same for a UD queue pair.
WcStatus ParseDatagram(const QpMessageConfig& config, const QpPayloadConfig& payload,
                       const uint8_t* slot, uint32_t ring_slot, DatagramRequest& out,
                       std::span<rocegw_sge> sges);

struct ReceiveRequest {
  uint64_t wr_id = 0;
  uint64_t capacity = 0;  // bytes of all SGEs
  uint32_t ring_slot = 0;
  uint8_t sge_count = 0;
};

WcStatus ParseReceive(const QpMessageConfig& config, const uint8_t* slot, uint32_t ring_slot,
                      ReceiveRequest& out, std::span<rocegw_sge> sges);

// Checks the keys of a list: every SGE must lie in a region of the scope that grants `access`.
// Empty SGEs are not checked (IBTA 10.6.3).
bool CheckKeys(const MrTable& regions, const KeyScope& scope, std::span<const rocegw_sge> sges,
               uint32_t access);

// Contiguous piece of an SGE list.
struct Piece {       // not initialised: lists of pieces are made for every packet
  uint64_t address;  // in the client's address space
  uint8_t* direct;   // in the gateway's mapping, or nullptr
  uint32_t length;
  uint32_t offset;  // from the start of the range
};

// Calls on_piece(const Piece&) for bytes [offset, offset + length) of the message. Keys are looked
// up again, because regions may have been deregistered. Returns false if a region is missing;
// earlier pieces were visited then.
template <typename F>
bool WalkPieces(const MrTable& regions, const KeyScope& scope, std::span<const rocegw_sge> sges,
                uint32_t access, uint64_t offset, uint32_t length, F&& on_piece) {
  uint32_t done = 0;
  for (const rocegw_sge& sge : sges) {
    if (length == done) break;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const uint64_t room = sge.length - offset;
    const uint32_t take = room < length - done ? static_cast<uint32_t>(room) : length - done;
    const uint64_t va = sge.address + offset;
    const RegionConfig* region =
        regions.Find(MemoryKey{sge.lkey}, scope.session, scope.pd, access, va, take);
    if (region == nullptr) return false;
    const uint64_t in_region = va - region->iova;
    on_piece(Piece{region->address + in_region, region->DirectAt(in_region, take), take, done});
    done += take;
    offset = 0;
  }
  return done == length;
}

}  // namespace rocegw::verbs
