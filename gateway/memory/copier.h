// SPDX-License-Identifier: Apache-2.0
// A thread that executes memory operations of one untrusted session in the workers' place: the
// client can make such an operation wait for ever (userfaultfd, FUSE), which must stop nobody but
// itself. One pair of rings per worker; batches come back to the worker that submitted them, in its
// order. Bounded: Submit refuses when `depth` batches of that worker are out.
//
// The thread cannot be interrupted while it is blocked. So it owns what it uses (the memory, and
// the keepalive for mappings behind MemoryOp::direct), and the copier can be destroyed at any time:
// a blocked thread finishes by itself when the client's memory lets go, touches no worker's
// descriptor any more and frees the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/status.h"
#include "gateway/memory/memory_op.h"

namespace rocegw::memory {

struct Batch {
  // What the worker hangs on a batch, to know it again. May be destroyed by the copier's thread, so
  // it must own nothing that belongs to a worker (no packets of a port).
  class User {
   public:
    virtual ~User() = default;
  };

  std::vector<MemoryOp> ops;  // their buffers lie in `staging`, or live as long as the batch
  std::vector<uint32_t>
      groups;  // empty, or one per op: after a fault the later ops of its group are not executed
  std::vector<uint8_t> staging;
  std::unique_ptr<User> user;

  // Out: indices of ops that were not done, ascending; a fault, or one of its group before it.
  std::vector<uint32_t> failed;
  MemoryCounts counts;
};

// What a worker sees of it.
class Copier {
 public:
  struct Options {
    size_t workers = 1;
    size_t depth = 64;          // batches per worker that are not collected yet
    std::vector<int> wake_fds;  // eventfd per worker, written when a batch is done; may be empty
  };

  // The thread. keepalive: what MemoryOp::direct may point into.
  static StatusOr<std::unique_ptr<Copier>> Start(std::shared_ptr<MemorySpace> memory,
                                                 std::shared_ptr<void> keepalive, Options options);
  // Such threads that are alive in this process: those of running sessions and those still blocked.
  static size_t LiveThreads();

  virtual ~Copier() = default;  // Stop
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  // Worker: takes the batch when it returns true. Only that worker's thread may call these two with
  // its number.
  virtual bool Submit(WorkerIndex worker, std::unique_ptr<Batch>& batch) = 0;
  // Worker: the oldest batch that is done, or nullptr.
  virtual std::unique_ptr<Batch> Collect(WorkerIndex worker) = 0;

  // Any one thread, after the last Submit and Collect: no further batch is begun. Returns at once;
  // the thread ends as soon as client memory lets it.
  virtual void Stop() = 0;

 protected:
  Copier() = default;
};

// What the thread does with a batch.
void ExecuteBatch(MemorySpace& memory, Batch& batch);

}  // namespace rocegw::memory
