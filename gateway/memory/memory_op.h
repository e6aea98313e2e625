// SPDX-License-Identifier: Apache-2.0
// Operation on client memory. The transport never touches client memory: it emits operations, and
// delays what depends on them (ACK, NAK, completion) until they are reported done. A MemorySpace
// executes the operations of one process.
//
// Order: operations of one batch take effect in order. The last up to eight bytes of a write with
// `publish` become visible after all its other bytes, because programs poll on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rocegw::memory {

enum class OpKind : uint8_t {
  kRead,         // client -> buffer
  kWrite,        // buffer -> client
  kCompareSwap,  // 8 bytes, aligned; buffer receives the original value (host order)
  kFetchAdd,     // 8 bytes, aligned; buffer receives the original value
  kAtomicStore,  // 8 bytes, aligned, of swap_or_add; buffer receives the original value
  kAtomicLoad,   // 8 bytes, aligned
  kFetchAnd,     // these three: 8 bytes, aligned; buffer receives the original value
  kFetchOr,
  kFetchXor,
};

struct MemoryOp {
  OpKind kind = OpKind::kRead;
  bool publish = false;
  bool want_crc = false;   // kRead with `direct`: compute the CRC while copying
  bool crc_valid = false;  // output: crc holds wire::CrcUpdate(0, bytes)
  uint32_t length = 0;     // bytes
  uint64_t address = 0;    // in the client's address space
  // The same bytes in the gateway's mapping (remapped memory), or nullptr.
  uint8_t* direct = nullptr;
  uint8_t* buffer = nullptr;
  // kCompareSwap: value to compare with. kWrite without buffer: its first `length` bytes are the
  // data.
  uint64_t compare = 0;
  uint64_t swap_or_add = 0;
  uint32_t crc = 0;  // output

  bool is_atomic() const { return kind != OpKind::kRead && kind != OpKind::kWrite; }
};

struct MemoryCounts {
  uint64_t cross_operations = 0;
  uint64_t cross_bytes = 0;
  uint64_t direct_operations = 0;
  uint64_t direct_bytes = 0;
  uint64_t device_operations = 0;
  uint64_t device_bytes = 0;
};

// Memory of one client process. One thread at a time calls Execute: the worker for trusted pools,
// otherwise the session's copier thread.
class MemorySpace {
 public:
  virtual ~MemorySpace() = default;

  // Executes in order. Stops at the first operation whose memory is not accessible and returns its
  // index, or ops.size(). That operation may be executed in part; later ones are not begun. Adds to
  // `counts`.
  virtual size_t Execute(std::span<MemoryOp> ops, MemoryCounts& counts) = 0;

  // Returns true after a failed operation if the process does not exist any more. The failure then
  // must not be reported as an access error. Any thread.
  virtual bool Gone() const { return false; }
};

}  // namespace rocegw::memory
