// SPDX-License-Identifier: Apache-2.0
// Store of the control plane: keys with values under one growing revision, with transactions, reads
// of the past, and watches. Backends: memory_store.h, sqlite_store.h, etcd_store.h; all follow this
// contract, which one suite checks (tests/support/store_conformance).
//
// Threads: every method may be called from any thread. Callbacks (`done`, `ready`, `lost`) run on
// threads of the store, `done` also on the caller's before the call returns: they must not block,
// and may call the store's asynchronous methods. No lock of the store is held meanwhile. Watches
// and leases are destroyed before their store.
//
// Linearizable: a read without revision that begins after a transaction was acknowledged sees it.
// Durable: an acknowledged transaction survives a power failure (not: memory). Errors: a Status
// with one of the errno values below; anything else comes from the system.
#pragma once

#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controlplane/store/transaction.h"
#include "gateway/base/status.h"

namespace rocegw::store {

inline constexpr int kInvalid = EINVAL;  // violates a limit; will never work
inline constexpr int kCompacted =
    ESTALE;  // the requested past is gone: list again, watch from there
inline constexpr int kFutureRevision = ERANGE;     // the revision does not exist yet
inline constexpr int kLeaseGone = ENOENT;          // a put named an ended lease; nothing was done
inline constexpr int kUnavailable = EAGAIN;        // nothing was done; may work later
inline constexpr int kOutcomeUnknown = ETIMEDOUT;  // done or not: read the keys to find out
inline constexpr int kFull = ENOSPC;               // no space; nothing was done
inline constexpr int kDamaged = EUCLEAN;           // the disk has no valid store
inline constexpr int kInUse = EBUSY;               // another process owns it
inline constexpr int kClosed = ECANCELED;          // the store is being closed; nothing was done

// Returns the same text for every backend.
Status IsCompacted(Revision compacted);
Status NotYet(Revision revision, Revision newest);

// Watch: delivers every change in its range from a revision on: whole transactions, in order, each
// once. It pulls: undelivered changes stay in the store's history (etcd: one message waits in
// memory), so a slow watcher delays neither writers nor other watchers. A watch that is overtaken
// by the compaction gets kCompacted. Used by one thread at a time. Its destructor waits for a
// running `ready`, so it must not run inside one.
class Watch {
 public:
  virtual ~Watch() = default;

  // Returns the next transaction, or nullopt if there is none yet; then `ready` is called once as
  // soon as there may be one (spurious calls are possible). An error is final: kCompacted, kClosed,
  // kDamaged. Never waits for the network; may read from disk.
  virtual StatusOr<std::optional<Changes>> TryNext() = 0;

  // Returns kUnavailable if the store has been unreachable for seconds, so that changes may be
  // missing; the watch continues by itself afterwards. Any thread.
  virtual Status reach() const { return OkStatus(); }
};

// Lease: keys put with it are deleted in one transaction when it ends: when this object is
// destroyed, when its process dies, or when the store has not heard of it for its time to live.
class Lease {
 public:
  virtual ~Lease() = default;
  virtual LeaseId id() const = 0;
  // Returns false once it has ended or may have, by the clock of this machine.
  virtual bool alive() const = 0;
};

class Store {
 public:
  using TxnDone = std::function<void(StatusOr<TransactionResult>)>;
  using RangeDone = std::function<void(StatusOr<RangeResult>)>;

  virtual ~Store() = default;

  // Identity of the store, created with it and kept in it: 36 characters. Distinguishes it from an
  // emptied or another store with unrelated revisions.
  virtual const std::string& uuid() const = 0;
  // Name of the backend: memory, sqlite, etcd.
  virtual std::string_view backend() const = 0;

  virtual void TxnAsync(Transaction transaction, TxnDone done) = 0;
  // Does the same, but the caller may wait for the disk: if a backend can write at once on its
  // thread, that is faster than a thread switch.
  virtual void TxnHere(Transaction transaction, TxnDone done) {
    TxnAsync(std::move(transaction), std::move(done));
  }
  // kCompacted below the compaction revision, kFutureRevision above the newest.
  virtual void RangeAsync(RangeRequest request, RangeDone done) = 0;

  // Watches changes of revision `from` (at least 1) and later. To miss nothing: read, then watch
  // from the read's revision + 1. kCompacted, here or from TryNext, if `from` is not above the
  // compaction revision. `ready` may be empty for callers that poll.
  virtual StatusOr<std::unique_ptr<Watch>> NewWatch(KeyRange range, Revision from,
                                                    std::function<void()> ready) = 0;

  // Discards the past below `revision`, which stays readable; its space is reused later. Compacting
  // an already compacted revision succeeds. kFutureRevision above the newest. Waits.
  virtual Status Compact(Revision revision) = 0;

  // `lost` is called if the lease ends before its object; it may run during the object's
  // destruction. Waits.
  virtual StatusOr<std::unique_ptr<Lease>> NewLease(std::chrono::seconds time_to_live,
                                                    std::function<void()> lost) = 0;

  // Does the same and waits for the answer. Not on a thread of the store.
  StatusOr<TransactionResult> Txn(Transaction transaction);
  StatusOr<RangeResult> Range(RangeRequest request);
  // Returns the newest entry of one key.
  StatusOr<std::optional<Entry>> Get(std::string_view key);
};

// Watch for a thread that only waits for it.
class BlockingWatch {
 public:
  BlockingWatch(Store& store, KeyRange range, Revision from);
  ~BlockingWatch();
  // Returns nullopt if there is none within the time.
  StatusOr<std::optional<Changes>> Next(std::chrono::milliseconds timeout);
  Status reach() const { return watch_ == nullptr ? opened_ : watch_->reach(); }
  // Ends a waiting Next from another thread; it and all later ones return nullopt at once.
  void Interrupt();

 private:
  struct Signal;
  std::shared_ptr<Signal> signal_;
  Status opened_;
  std::unique_ptr<Watch> watch_;
};

}  // namespace rocegw::store
