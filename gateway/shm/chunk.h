// SPDX-License-Identifier: Apache-2.0
// Piece of memory shared with one client: a memfd that the gateway creates, sizes and seals. A
// memfd from a client would be unsafe: the client could truncate it (SIGBUS). Not hugetlb, because
// such a memfd could fail at the first touch.
//
// The client can map memory that only the daemon writes for reading only. Sealing says how:
//   kForever       F_SEAL_FUTURE_WRITE: no process gets another writable mapping, nor does a
//                  gateway that takes over (memfd_create(2), fcntl(2)).
//   kForSuccessor  The client gets a descriptor that is open for reading, of a file that only its
//                  owner may open. A client of the daemon's own user could still open it for
//                  writing, and spoil what the daemon tells it; the daemon never relies on it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::shm {

enum class Writer : uint8_t { kClient, kDaemon };
enum class Sealing : uint8_t { kForever, kForSuccessor };

class Chunk {
 public:
  // size in bytes, a multiple of the page size.
  static StatusOr<std::unique_ptr<Chunk>> Create(uint64_t size, Writer writer,
                                                 Sealing sealing = Sealing::kForever);
  // Maps a chunk of the gateway that this one replaces. EPROTO: it is no such chunk.
  static StatusOr<std::unique_ptr<Chunk>> Adopt(UniqueFd fd, uint64_t size, Writer writer);
  ~Chunk();
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  int fd() const { return fd_.get(); }
  // Returns the descriptor for the client. Call Announced when the client has it.
  int client_fd() const { return for_client_.valid() ? for_client_.get() : fd_.get(); }
  void Announced() { for_client_.Reset(); }
  uint64_t size() const { return size_; }
  Writer writer() const { return writer_; }
  uint8_t* base() const { return base_; }

  // Allocates the pages, so that a worker that writes them meets no page fault, above all none that
  // the system cannot serve. Returns ENOMEM if memory is short.
  Status Populate(uint64_t offset, uint64_t length);
  // Populates the whole chunk and maps its pages, so that the first access is not slowed down.
  Status Prefault();
  // Maps the first pages, which are allocated, so that no access to them meets a page fault.
  void MapPages(uint64_t length);

 private:
  Chunk(UniqueFd fd, uint8_t* base, uint64_t size, Writer writer)
      : fd_(std::move(fd)), base_(base), size_(size), writer_(writer) {}

  UniqueFd fd_;
  UniqueFd for_client_;  // open for reading; invalid: seals suffice, or the client has it
  uint8_t* base_;
  uint64_t size_;
  Writer writer_;
  std::vector<bool> populated_;  // by granule of kGranule bytes
};

}  // namespace rocegw::shm
