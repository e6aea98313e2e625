// SPDX-License-Identifier: Apache-2.0
// A program's end of a connection with rings, as the library has it (gateway/client/session), or
// with any content that a test writes into the shared memory.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/unique_fd.h"
#include "gateway/client/session/message_rings.h"
#include "gateway/session/attach/message_rings.h"

namespace rocegw::testing {

// Mapping of the rings' memory.
class MappedRings {
 public:
  explicit MappedRings(int fd)
      : base_(::mmap(nullptr, sizeof(rocegw_message_rings), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                     0)) {}
  ~MappedRings() {
    if (valid()) ::munmap(base_, sizeof(rocegw_message_rings));
  }
  MappedRings(const MappedRings&) = delete;
  MappedRings& operator=(const MappedRings&) = delete;

  bool valid() const { return base_ != MAP_FAILED; }
  rocegw_message_rings* operator->() const { return static_cast<rocegw_message_rings*>(base_); }

  // Puts a request into the next slot, whatever is there.
  void Put(std::span<const uint8_t> message) const {
    rocegw_message_rings& rings = *static_cast<rocegw_message_rings*>(base_);
    rocegw_ring_slot& slot = rings.request[rings.requests % ROCEGW_RING_SLOTS];
    slot.length = static_cast<uint32_t>(message.size());
    std::memcpy(slot.message, message.data(), std::min(message.size(), sizeof slot.message));
    __atomic_fetch_add(&rings.requests, 1, __ATOMIC_SEQ_CST);
  }

 private:
  void* const base_;
};

// The library's rings.
class LibraryRings {
 public:
  LibraryRings() = default;
  ~LibraryRings() { rings_.Unmap(); }
  LibraryRings(const LibraryRings&) = delete;
  LibraryRings& operator=(const LibraryRings&) = delete;
  client::MessageRings* operator->() { return &rings_; }
  // Uses rings as their program does. Returns the program's eventfd; -1: none.
  int Use(const session::MessageRings& daemon) {
    const int wake = ::fcntl(daemon.wake_fd(), F_DUPFD_CLOEXEC, 0);
    int passed = wake;
    rings_.RestartCount();
    if (!rings_.SetWake(&passed) || !rings_.Map(daemon.fd(), sizeof(rocegw_message_rings)))
      return -1;
    rings_.Open();
    return wake;
  }

 private:
  client::MessageRings rings_;
};

}  // namespace rocegw::testing
