// SPDX-License-Identifier: Apache-2.0
// Memory of a program that is a buffer of the test: the first byte has the address `base`. One
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "gateway/memory/direct_copy.h"
#include "gateway/memory/memory_op.h"

namespace rocegw::testing {

class BufferMemory final : public memory::MemorySpace {
 public:
  BufferMemory(std::span<uint8_t> bytes, uint64_t base) : bytes_(bytes), base_(base) {}

  size_t Execute(std::span<memory::MemoryOp> ops, memory::MemoryCounts& counts) override {
    if (gone_) return 0;
    for (size_t i = 0; i < ops.size(); ++i) {
      memory::MemoryOp& op = ops[i];
      if (op.address < base_ || op.address - base_ > bytes_.size() ||
          op.length > bytes_.size() - (op.address - base_)) {
        return i;
      }
      uint8_t* at = bytes_.data() + (op.address - base_);
      ++counts.cross_operations;
      counts.cross_bytes += op.length;
      switch (op.kind) {
        case memory::OpKind::kRead:
          std::memcpy(op.buffer, at, op.length);
          break;
        case memory::OpKind::kWrite:
          std::memcpy(at, op.buffer, op.length);
          break;
        case memory::OpKind::kCompareSwap:
        case memory::OpKind::kFetchAdd:
        case memory::OpKind::kAtomicStore:
        case memory::OpKind::kAtomicLoad:
        case memory::OpKind::kFetchAnd:
        case memory::OpKind::kFetchOr:
        case memory::OpKind::kFetchXor: {
          uint64_t value = 0;
          std::memcpy(&value, at, sizeof value);
          std::memcpy(op.buffer, &value, sizeof value);
          value = memory::AtomicResult(op, value);
          std::memcpy(at, &value, sizeof value);
          break;
        }
      }
    }
    return ops.size();
  }
  bool Gone() const override { return gone_; }
  // Every later operation faults: the process has ended.
  void EndProcess() { gone_ = true; }

 private:
  const std::span<uint8_t> bytes_;
  const uint64_t base_;
  bool gone_ = false;
};

}  // namespace rocegw::testing
