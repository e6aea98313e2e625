// SPDX-License-Identifier: Apache-2.0
// Piece of memory shared with one client: a memfd that the gateway creates, sizes and seals. A
// memfd from a client would be unsafe: the client could truncate it (SIGBUS). Memory that only the
// daemon writes also carries F_SEAL_FUTURE_WRITE: the existing mapping stays writable, but the
// client can map the memory for reading only (memfd_create(2), fcntl(2)). Not hugetlb, because such
// a memfd could fail at the first touch.
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

  // Allocates the pages, so that a worker that writes them meets no page fault, above all none that
  // the system cannot serve. Returns ENOMEM if memory is short.
  Status Populate(uint64_t offset, uint64_t length);
  // Populates the whole chunk and maps its pages, so that the first access is not slowed down.
  Status Prefault();

 private:
  Chunk(UniqueFd fd, uint8_t* base, uint64_t size, Writer writer)
      : fd_(std::move(fd)), base_(base), size_(size), writer_(writer) {}

  UniqueFd fd_;
  uint8_t* base_;
  uint64_t size_;
  Writer writer_;
  std::vector<bool> populated_;  // by granule of kGranule bytes
};

}  // namespace rocegw::shm
