// SPDX-License-Identifier: Apache-2.0
// Client memory whose pages lie in a memfd of the gateway, mapped by both: the fast memory access
// mode. The client moves the pages of a private mapping there and reports which addresses they had.
// The memfd is sealed against shrinking, growing and resealing, so that the gateway's mapping never
// faults. It is refused if the kernel accounts memory strictly (vm.overcommit_memory 2), because a
// page could then be missing during a copy. The memfd is longer than the part mapped here: a
// program that grows its mapping finds zeros instead of a bus error. Shared by the session and the
// threads that copy; the last owner unmaps it.
//
// A region may also be a dma-buf of the client (dma_buf.h), which the client has mapped at the
// reported address.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/memory/dma_buf.h"

namespace rocegw::memory {

class Region {
 public:
  // address and length describe the client's mapping and must be whole pages.
  static StatusOr<std::shared_ptr<Region>> Create(uint64_t address, uint64_t length);
  // Maps the first `length` bytes of a dma-buf that was inspected. EOPNOTSUPP: its pages may vanish
  // (KeepsPages); EACCES: it is open for reading only.
  static StatusOr<std::shared_ptr<Region>> Import(UniqueFd fd, const DmaBuf& buffer,
                                                  uint64_t address, uint64_t length);
  // Maps a region of the gateway that this one replaces. EPROTO: it is no such region.
  static StatusOr<std::shared_ptr<Region>> Adopt(UniqueFd fd, uint64_t address, uint64_t length);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  int fd() const { return fd_.get(); }
  uint64_t address() const { return address_; }
  uint64_t length() const { return length_; }
  // Returns the exporter of the dma-buf; empty: the region is a memfd of the gateway.
  const std::string& exporter() const { return exporter_; }

  // Returns the address of the client's bytes in the gateway's mapping; nullptr if they are not all
  // in this region.
  uint8_t* Find(uint64_t address, uint64_t length) const;

 private:
  static StatusOr<std::shared_ptr<Region>> Map(UniqueFd fd, uint64_t address, uint64_t length,
                                               std::string exporter = {});

  Region(UniqueFd fd, uint8_t* base, uint64_t address, uint64_t length, std::string exporter)
      : fd_(std::move(fd)),
        base_(base),
        address_(address),
        length_(length),
        exporter_(std::move(exporter)) {}

  UniqueFd fd_;
  uint8_t* base_;
  uint64_t address_;
  uint64_t length_;
  std::string exporter_;
};

}  // namespace rocegw::memory
