// SPDX-License-Identifier: Apache-2.0
// One piece of memory shared with one client: a memfd made, sized and sealed here, never one that a
// client brings, so that nobody can cut it under us (SIGBUS). What only the daemon writes carries
// F_SEAL_FUTURE_WRITE as well: our mapping stays writable, the client can map it for reading and no
// other way, whatever it does with the descriptor (memfd_create(2), fcntl(2)). Not hugetlb: such a
// memfd could fail at the first touch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::shm {

enum class Writer : uint8_t { kClient, kDaemon };

class Chunk {
 public:
  // size in bytes, a multiple of the page size.
  static StatusOr<std::unique_ptr<Chunk>> Create(uint64_t size, Writer writer);
  ~Chunk();
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  int fd() const { return fd_.get(); }
  uint64_t size() const { return size_; }
  Writer writer() const { return writer_; }
  uint8_t* base() const { return base_; }

  // Makes sure that pages are there, so that a worker that writes them never meets a page fault,
  // least of all one that the system cannot serve. ENOMEM when there is not enough.
  Status Populate(uint64_t offset, uint64_t length);
  // The same for all of it, and our mapping knows them: whoever touches it first is not slowed
  // down.
  Status Prefault();

 private:
  Chunk(UniqueFd fd, uint8_t* base, uint64_t size, Writer writer)
      : fd_(std::move(fd)), base_(base), size_(size), writer_(writer) {}

  UniqueFd fd_;
  uint8_t* base_;
  uint64_t size_;
  Writer writer_;
  std::vector<bool> populated_;  // by granule
};

}  // namespace rocegw::shm
