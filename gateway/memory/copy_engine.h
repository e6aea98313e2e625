// SPDX-License-Identifier: Apache-2.0
// Interface of a copy engine: a device that copies memory of this process while the processor does
// other work (Intel DSA, for example). It reads and writes addresses of this process. Workers use
// it for writes to remapped regions (worker/memory/engine_copies.h).
//
// An engine has a queue for each worker that it serves. Copies of a queue may be executed in any
// order and at the same time. A copy that fails may have written some of its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "gateway/base/time.h"

namespace rocegw::memory {

// Queue of one worker. Only the worker's thread calls it.
class CopyQueue {
 public:
  struct Completion {
    uint32_t cookie = 0;  // as given to Add
    bool copied = false;
  };

  virtual ~CopyQueue() = default;

  // Returns the number of copies that may be in flight.
  virtual uint32_t depth() const = 0;
  // Queues a copy of length > 0 bytes. Returns false if no descriptor is free. Source and
  // destination must stay mapped until Poll has returned the cookie.
  virtual bool Add(uint8_t* to, const uint8_t* from, uint32_t length, uint32_t cookie) = 0;
  // Lets the engine begin the copies that were queued.
  virtual void Start() = 0;
  // Writes completions to the front of `into` and returns their number. The bytes of a completed
  // copy are visible to the caller.
  virtual size_t Poll(std::span<Completion> into) = 0;
  // Takes the queue from the device, which reads and writes nothing of what was added any more, and
  // reports none of it. May wait for the device's driver. Returns false if the device may go on.
  // The queue must not be used after true.
  virtual bool Abandon() = 0;
};

// Time after which a copy that has not ended is lost, and the engine out of order.
inline constexpr Duration kCopyLost = Seconds(1);

// Owner of the queues. Control thread; destroyed when no queue is in use and no copy in flight.
class CopyEngine {
 public:
  virtual ~CopyEngine() = default;

  virtual size_t queues() const = 0;
  // Returns nullptr for workers without a queue.
  virtual CopyQueue* queue(size_t worker) = 0;
  // Returns the names of the devices, for the log.
  virtual const std::string& devices() const = 0;
};

// Use of an engine by one worker.
struct CopySettings {
  CopyQueue* queue = nullptr;     // not owned; nullptr: the processor makes all copies
  uint32_t minimum_bytes = 4096;  // shorter copies are made by the processor
  // Datagrams at the end of a burst that the processor copies while the engine completes the
  // earlier ones. Shorter bursts do without the engine, which would only add its latency.
  uint32_t last_by_processor = 4;
  // Copies in flight of one pool; 0: half of the queue.
  uint32_t most_of_pool = 0;
};

}  // namespace rocegw::memory
