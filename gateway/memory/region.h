// SPDX-License-Identifier: Apache-2.0
// Memory of a client whose pages lie in a memfd of ours, mapped by both: the fast way. The client
// moves the pages of a private mapping there and tells which addresses they had. Sealed against
// shrinking, growing and resealing, and refused where the kernel accounts memory strictly
// (vm.overcommit_memory 2: a page could then be missing under a copy), so that our mapping never
// faults. The memfd is longer than what is mapped here: a program that grows its mapping finds
// zeros there and no bus error. Shared by the session and whoever still copies from it; it is
// unmapped when the last lets go.
#pragma once

#include <cstdint>
#include <memory>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::memory {

class Region {
 public:
  // address and length describe the client's mapping and must be whole pages.
  static StatusOr<std::shared_ptr<Region>> Create(uint64_t address, uint64_t length);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  int fd() const { return fd_.get(); }
  uint64_t address() const { return address_; }
  uint64_t length() const { return length_; }

  // Where bytes of the client lie in our mapping; nullptr when they are not all inside this region.
  uint8_t* Find(uint64_t address, uint64_t length) const;

 private:
  Region(UniqueFd fd, uint8_t* base, uint64_t address, uint64_t length)
      : fd_(std::move(fd)), base_(base), address_(address), length_(length) {}

  UniqueFd fd_;
  uint8_t* base_;
  uint64_t address_;
  uint64_t length_;
};

}  // namespace rocegw::memory
