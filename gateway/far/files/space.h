// SPDX-License-Identifier: Apache-2.0
// Space that files are stored in: a session of remote memory, or memory of a test.
#pragma once

#include <cstdint>

#include "gateway/far/request/part.h"

namespace rocegw::far {

class Space {
 public:
  using Done = void (*)(void* argument, int status);

  virtual ~Space() = default;
  // Starts a transfer; `done` is called once, by any thread or within the call, unless the call
  // returns a negative errno value.
  virtual int Submit(Direction direction, uint64_t offset, uint8_t* buffer, uint64_t length,
                     Done done, void* argument) = 0;
  // Registered memory; nullptr: none is left.
  virtual uint8_t* Allocate(uint64_t bytes) = 0;
  virtual void Free(uint8_t* memory) = 0;
  // Calls `done` when all transfers that were complete before survive this process; -EIO: not all
  // do. A space that promises nothing calls it at once.
  virtual void Flush(Done done, void* argument) { done(argument, 0); }
};

}  // namespace rocegw::far
