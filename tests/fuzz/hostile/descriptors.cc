// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/hostile/descriptors.h"

#include <algorithm>
#include <cstring>

namespace rocegw::testing {
namespace {

using verbs::QpType;

constexpr uint32_t kMostBytes = 4096;
constexpr size_t kListAt = sizeof(rocegw_send_wqe);

template <typename T>
T Load(std::span<const uint8_t> bytes, size_t at = 0) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <typename T>
void Store(std::span<uint8_t> bytes, const T& value, size_t at = 0) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

bool IsAtomic(uint8_t opcode) {
  return opcode == ROCEGW_WR_ATOMIC_CMP_AND_SWP || opcode == ROCEGW_WR_ATOMIC_FETCH_AND_ADD ||
         (opcode >= ROCEGW_WR_ATOMIC_SWAP && opcode <= ROCEGW_WR_ATOMIC_FETCH_SUB);
}

bool IsOfEight(uint8_t opcode) { return IsAtomic(opcode) || opcode == ROCEGW_WR_ATOMIC_WRITE; }

// Which opcodes there are for a type.
std::span<const uint8_t> OpcodesOf(QpType type) {
  static constexpr uint8_t kReliable[] = {ROCEGW_WR_RDMA_WRITE,
                                          ROCEGW_WR_RDMA_WRITE_WITH_IMM,
                                          ROCEGW_WR_SEND,
                                          ROCEGW_WR_SEND_WITH_IMM,
                                          ROCEGW_WR_RDMA_READ,
                                          ROCEGW_WR_ATOMIC_CMP_AND_SWP,
                                          ROCEGW_WR_ATOMIC_FETCH_AND_ADD,
                                          ROCEGW_WR_LOCAL_INV,
                                          ROCEGW_WR_BIND_MW,
                                          ROCEGW_WR_SEND_WITH_INV,
                                          ROCEGW_WR_FLUSH,
                                          ROCEGW_WR_ATOMIC_WRITE,
                                          ROCEGW_WR_ATOMIC_SWAP,
                                          ROCEGW_WR_ATOMIC_LOAD,
                                          ROCEGW_WR_ATOMIC_STORE,
                                          ROCEGW_WR_ATOMIC_FETCH_AND,
                                          ROCEGW_WR_ATOMIC_FETCH_OR,
                                          ROCEGW_WR_ATOMIC_FETCH_XOR,
                                          ROCEGW_WR_ATOMIC_FETCH_SUB};
  static constexpr uint8_t kUnreliable[] = {ROCEGW_WR_RDMA_WRITE, ROCEGW_WR_RDMA_WRITE_WITH_IMM,
                                            ROCEGW_WR_SEND,       ROCEGW_WR_SEND_WITH_IMM,
                                            ROCEGW_WR_LOCAL_INV,  ROCEGW_WR_BIND_MW};
  static constexpr uint8_t kDatagram[] = {ROCEGW_WR_SEND, ROCEGW_WR_SEND_WITH_IMM};
  static constexpr uint8_t kEndpoint[] = {
      ROCEGW_WR_RDMA_WRITE,           ROCEGW_WR_RDMA_WRITE_WITH_IMM, ROCEGW_WR_SEND,
      ROCEGW_WR_SEND_WITH_IMM,        ROCEGW_WR_RDMA_READ,           ROCEGW_WR_ATOMIC_CMP_AND_SWP,
      ROCEGW_WR_ATOMIC_FETCH_AND_ADD, ROCEGW_WR_ATOMIC_SWAP,         ROCEGW_WR_ATOMIC_LOAD,
      ROCEGW_WR_ATOMIC_STORE,         ROCEGW_WR_ATOMIC_FETCH_AND,    ROCEGW_WR_ATOMIC_FETCH_OR,
      ROCEGW_WR_ATOMIC_FETCH_XOR,     ROCEGW_WR_ATOMIC_FETCH_SUB};
  // XRC has neither the placement extensions nor the atomics behind them.
  if (type == QpType::kXrcSend) return std::span(kReliable).first(std::size(kReliable) - 9);
  if (type == QpType::kRc) return kReliable;
  if (type == QpType::kUc) return kUnreliable;
  if (type == QpType::kEndpoint) return kEndpoint;
  return kDatagram;
}

}  // namespace

rocegw_sge Descriptors::GoodPiece(uint32_t most) {
  const auto length = static_cast<uint32_t>(random_.Between(0, most));
  return {around_.memory + random_.Below(around_.memory_bytes - length + 1), length,
          around_.local_keys.front()};
}

void Descriptors::GoodSend(std::span<uint8_t> slot) {
  const std::span<const uint8_t> opcodes = OpcodesOf(type_);
  rocegw_send_wqe wqe{};
  wqe.wr_id = random_.Bits();
  // Local requests are the smallest part of what programs ask for.
  do {
    wqe.opcode = opcodes[random_.Below(opcodes.size())];
  } while (wqe.opcode >= ROCEGW_WR_LOCAL_INV && random_.Below(4) != 0);
  wqe.flags = random_.Below(8) == 0 ? ROCEGW_WQE_FENCE : 0;
  wqe.imm_or_rkey = wqe.opcode >= ROCEGW_WR_LOCAL_INV ? around_.window : random_.Value<uint32_t>();
  if (wqe.opcode == ROCEGW_WR_BIND_MW) {
    wqe.u.bind = {around_.memory, 4096, around_.local_keys.front(), around_.window, 7, 0};
  } else if (type_ == QpType::kUd) {
    wqe.u.ud = {around_.address, around_.peer_qpn, around_.qkey};
  } else {
    wqe.u.rdma.remote_address = around_.peer_memory + random_.Below(kMostBytes) / 8 * 8;
    wqe.u.rdma.rkey = around_.remote_keys.front();
    wqe.u.rdma.compare_add = random_.Bits();
    wqe.u.rdma.swap = random_.Bits();
    if (type_ == QpType::kXrcSend) wqe.u.rdma.peer = around_.peer_srq;
    if (type_ == QpType::kEndpoint) {
      wqe.u.rdma.peer = around_.peer;
      if (random_.Below(8) == 0 && wqe.opcode < ROCEGW_WR_RDMA_READ)
        wqe.flags |= ROCEGW_WQE_UNACKNOWLEDGED;
    }
  }
  if (wqe.opcode == ROCEGW_WR_FLUSH) {
    wqe.u.rdma.compare_add %= kMostBytes;
    wqe.u.rdma.swap = 1 | (random_.Coin() ? 0x10 : 0);
  } else if (IsOfEight(wqe.opcode)) {
    wqe.num_sge = 1;
    Store(slot, rocegw_sge{around_.memory, 8, around_.local_keys.front()}, kListAt);
  } else {
    const bool inside = wqe.opcode != ROCEGW_WR_RDMA_READ && random_.Below(4) == 0;
    if (inside) wqe.flags |= random_.Coin() ? ROCEGW_WQE_INLINE : ROCEGW_WQE_COPIED;
    wqe.num_sge = static_cast<uint8_t>(random_.Below(3));
    const uint32_t most = inside ? 32 : type_ == QpType::kUd ? 500 : kMostBytes / 2;
    for (size_t i = 0; i < wqe.num_sge; ++i)
      Store(slot, GoodPiece(most), kListAt + i * sizeof(rocegw_sge));
  }
  Store(slot, wqe);
}

void Descriptors::SpoilPiece(rocegw_sge& piece) {
  switch (random_.Below(6)) {
    case 0:
      piece.lkey = around_.local_keys[random_.Below(around_.local_keys.size())];
      break;
    case 1:
      piece.lkey = random_.Value<uint32_t>();
      break;
    case 2:
      piece.address = random_.Coin() ? random_.Bits() : around_.memory + around_.memory_bytes - 1;
      break;
    case 3:
      piece.length = random_.Value<uint32_t>();
      break;
    case 4:
      piece.address =
          around_.hole + random_.Below(around_.memory_bytes - piece.length % kMostBytes);
      piece.lkey = around_.hole_key;
      break;
    default:
      piece.length = static_cast<uint32_t>(random_.Below(kMostBytes));
  }
}

void Descriptors::FlipBits(std::span<uint8_t> slot) {
  for (size_t n = random_.Between(1, 4); n != 0; --n)
    slot[random_.Below(slot.size())] ^= static_cast<uint8_t>(1u << random_.Below(8));
}

void Descriptors::SpoilSendField(std::span<uint8_t> slot) {
  auto wqe = Load<rocegw_send_wqe>(slot);
  auto piece = Load<rocegw_sge>(slot, kListAt);
  switch (random_.Below(8)) {
    case 0:
      wqe.opcode = random_.Value<uint8_t>();
      break;
    case 1:
      wqe.opcode = static_cast<uint8_t>(random_.Below(17));
      break;
    case 2:
      wqe.num_sge = random_.Value<uint8_t>();
      break;
    case 3:
      wqe.flags = random_.Value<uint16_t>();
      break;
    case 4:
      if (type_ == QpType::kUd) {
        wqe.u.ud.remote_qpn = random_.Value<uint32_t>();
      } else {
        wqe.u.rdma.rkey = around_.remote_keys[random_.Below(around_.remote_keys.size())];
        if ((type_ == QpType::kXrcSend || type_ == QpType::kEndpoint) && random_.Coin())
          wqe.u.rdma.peer = random_.Value<uint32_t>();
      }
      break;
    case 5:
      if (type_ == QpType::kUd) {
        wqe.u.ud.av.dgid[random_.Below(16)] ^= random_.Value<uint8_t>();
        wqe.u.ud.av.sgid_index = random_.Value<uint8_t>();
      } else {
        wqe.u.rdma.remote_address += random_.Coin() ? random_.Bits() : random_.Below(1 << 17);
      }
      break;
    case 6:
      wqe.imm_or_rkey ^= 1u << random_.Below(32);
      break;
    default:
      SpoilPiece(piece);
  }
  Store(slot, wqe);
  Store(slot, piece, kListAt);
}

void Descriptors::WriteSend(std::span<uint8_t> slot, Harm harm) {
  if (harm == Harm::kAll) {
    for (uint8_t& byte : slot) byte = random_.Value<uint8_t>();
    // Else hardly one would get further than its opcode.
    if (random_.Coin()) slot[8] = OpcodesOf(type_)[random_.Below(OpcodesOf(type_).size())];
    if (random_.Coin()) slot[9] = static_cast<uint8_t>(random_.Below(5));
    return;
  }
  GoodSend(slot);
  if (harm == Harm::kHarmless) {
    auto wqe = Load<rocegw_send_wqe>(slot);
    wqe.wr_id ^= random_.Bits() | 1;
    wqe.flags ^= ROCEGW_WQE_SOLICITED | ROCEGW_WQE_SIGNALED;
    Store(slot, wqe);
  } else if (random_.Below(4) == 0) {
    FlipBits(slot);
  } else {
    SpoilSendField(slot);
  }
}

void Descriptors::WriteReceive(std::span<uint8_t> slot, Harm harm) {
  if (harm == Harm::kAll) {
    for (uint8_t& byte : slot) byte = random_.Value<uint8_t>();
    if (random_.Coin()) Store(slot, static_cast<uint32_t>(random_.Below(5)), 8);
    return;
  }
  rocegw_recv_wqe wqe{random_.Bits(), static_cast<uint32_t>(random_.Between(0, 2)), 0};
  rocegw_sge piece = GoodPiece(kMostBytes);
  Store(slot, GoodPiece(kMostBytes), sizeof wqe + sizeof piece);
  if (harm == Harm::kHarmless) {
    wqe.reserved = random_.Value<uint32_t>() | 1;
  } else if (random_.Below(3) == 0) {
    wqe.num_sge = random_.Value<uint32_t>();
  } else {
    SpoilPiece(piece);
  }
  Store(slot, wqe);
  Store(slot, piece, sizeof wqe);
  if (harm == Harm::kField && random_.Below(4) == 0) FlipBits(slot);
}

bool Malformed(QpType type, const rocegw_qp_reply& queues, std::span<const uint8_t> slot) {
  constexpr uint64_t kLongest = uint64_t{1} << 31;
  const auto wqe = Load<rocegw_send_wqe>(slot);
  const std::span<const uint8_t> opcodes = OpcodesOf(type);
  if (std::find(opcodes.begin(), opcodes.end(), wqe.opcode) == opcodes.end()) return true;
  if (wqe.num_sge > queues.max_send_sge) return true;
  if (wqe.opcode == ROCEGW_WR_LOCAL_INV || wqe.opcode == ROCEGW_WR_BIND_MW) return false;
  if (wqe.opcode == ROCEGW_WR_FLUSH) return wqe.num_sge != 0 || wqe.u.rdma.compare_add > kLongest;
  uint64_t total = 0;
  for (size_t i = 0; i < wqe.num_sge; ++i)
    total += Load<rocegw_sge>(slot, kListAt + i * sizeof(rocegw_sge)).length;
  if (total > kLongest || (IsOfEight(wqe.opcode) && total != 8)) return true;
  if ((wqe.flags & (ROCEGW_WQE_INLINE | ROCEGW_WQE_COPIED)) == 0) return false;
  const bool asks_for_bytes = IsAtomic(wqe.opcode) || wqe.opcode == ROCEGW_WR_RDMA_READ;
  return asks_for_bytes || total > queues.sq_payload_stride;
}

}  // namespace rocegw::testing
