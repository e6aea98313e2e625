// SPDX-License-Identifier: Apache-2.0
// Doorbell bits of one session: pages of 4096 bits per worker, allocated when needed, in memory
// that the client writes. Owner: the session, control thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/ids.h"
#include "gateway/shm/segment.h"

namespace rocegw::session {

class Doorbells {
 public:
  struct Bit {
    uint32_t page = 0;
    uint32_t bit = 0;
  };

  explicit Doorbells(size_t workers) : pages_(workers) {}

  // Returns true if Take needs another page.
  bool NeedsPage(WorkerIndex worker) const;
  // Adds a page and returns its index on that worker.
  uint32_t AddPage(WorkerIndex worker, const shm::Block& memory);
  Bit Take(WorkerIndex worker);
  // Takes that bit. Returns false if there is none or it is taken.
  [[nodiscard]] bool TakeAt(WorkerIndex worker, Bit bit);
  void Give(WorkerIndex worker, Bit bit);
  size_t page_count(WorkerIndex worker) const { return pages_[worker].size(); }

  const shm::Block& page(WorkerIndex worker, uint32_t index) const {
    return pages_[worker][index].memory;
  }

 private:
  struct Page {
    shm::Block memory;
    uint32_t used = 0;
    std::array<uint64_t, ROCEGW_DOORBELL_BITS / 64> taken{};
  };
  std::vector<std::vector<Page>> pages_;  // by worker
};

}  // namespace rocegw::session
