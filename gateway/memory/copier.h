// SPDX-License-Identifier: Apache-2.0
// Thread that executes the memory operations of one untrusted session instead of the workers. The
// client can block such an operation for ever (userfaultfd, FUSE), which must stop only the client
// itself. There is one pair of rings per worker; batches return to the worker that submitted them,
// in its order. Bounded: Submit refuses when `depth` batches of that worker are outstanding.
//
// The thread cannot be interrupted while it is blocked. It therefore owns what it uses (the memory,
// and the keepalive for mappings behind MemoryOp::direct), and the copier can be destroyed at any
// time: a blocked thread ends when the client's memory lets it, uses no descriptor of a worker any
// more and frees the rest.
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
  // Data that the worker attaches to a batch. The copier's thread may destroy it, so it must own
  // nothing that belongs to a worker (no packets of a port).
  class User {
   public:
    virtual ~User() = default;
  };

  std::vector<MemoryOp> ops;  // their buffers lie in `staging`, or live as long as the batch
  // Empty, or one per op: after a fault the later ops of its group are not executed.
  std::vector<uint32_t> groups;
  std::vector<uint8_t> staging;
  std::unique_ptr<User> user;

  // Output: ascending indices of ops that were not executed, because of their own fault or an
  // earlier one in their group.
  std::vector<uint32_t> failed;
  MemoryCounts counts;
};

// Interface of the copier to workers.
class Copier {
 public:
  struct Options {
    size_t workers = 1;
    size_t depth = 64;          // batches per worker that are not collected yet
    std::vector<int> wake_fds;  // eventfd per worker, written when a batch is done; may be empty
  };

  // Starts the thread. keepalive: owner of the memory that MemoryOp::direct may point to. Released
  // when the copier is destroyed and the thread has ended, by whichever thread does that last.
  static StatusOr<std::unique_ptr<Copier>> Start(std::shared_ptr<MemorySpace> memory,
                                                 std::shared_ptr<void> keepalive, Options options);
  // Returns the number of such threads alive in this process, including blocked ones of closed
  // sessions.
  static size_t LiveThreads();

  virtual ~Copier() = default;  // call Stop first
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  // Takes the batch if it returns true. Submit and Collect may be called only by the thread of that
  // worker.
  virtual bool Submit(WorkerIndex worker, std::unique_ptr<Batch>& batch) = 0;
  // Returns the oldest finished batch, or nullptr.
  virtual std::unique_ptr<Batch> Collect(WorkerIndex worker) = 0;

  // Begins no further batch. Called by any one thread after the last Submit and Collect. Returns at
  // once; the thread ends as soon as client memory lets it.
  virtual void Stop() = 0;

 protected:
  Copier() = default;
};

// Executes a batch as the thread does.
void ExecuteBatch(MemorySpace& memory, Batch& batch);

}  // namespace rocegw::memory
