// SPDX-License-Identifier: Apache-2.0
// The store of the control plane: keys with values under one growing revision, with transactions,
// reads of the past, and watches. Backends: memory_store.h, sqlite_store.h, etcd_store.h; all of
// them keep this contract, and one suite checks it (tests/support/store_conformance).
//
// Threads: every method may be called from any thread. Callbacks (`done`, `ready`, `lost`) run on
// threads of the store, `done` also on the caller's before the call returns: they must not block,
// and may call the store's asynchronous methods. No lock of the store is held meanwhile.
// Watches and leases go before their store.
// Linearizable: a read without revision that begins after a transaction was acknowledged sees it.
// Durable: acknowledged means that it survives a power cut (not: memory).
// Errors: a Status with one of the errno values below; anything else is the environment's.
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

inline constexpr int kInvalid = EINVAL;  // breaks a limit; will never work
inline constexpr int kCompacted =
    ESTALE;  // the past asked for is gone: list again, watch from there
inline constexpr int kFutureRevision = ERANGE;  // a revision that has not been yet
inline constexpr int kLeaseGone = ENOENT;    // a put named a lease that has ended; nothing was done
inline constexpr int kUnavailable = EAGAIN;  // nothing was done; later it may work
inline constexpr int kOutcomeUnknown = ETIMEDOUT;  // done or not: read the keys to know
inline constexpr int kFull = ENOSPC;               // no room; nothing was done
inline constexpr int kDamaged = EUCLEAN;   // what is on the disk is not, or no longer, a store
inline constexpr int kInUse = EBUSY;       // another process has it
inline constexpr int kClosed = ECANCELED;  // the store is being closed; nothing was done

// The same words from every backend that has to find them itself.
Status IsCompacted(Revision compacted);
Status NotYet(Revision revision, Revision newest);

// Delivers every change in its range from a revision on: whole transactions, in order, none twice,
// none left out. It pulls: what nobody takes stays in the store's history (etcd: one message waits
// in memory), so a slow watcher costs neither writers nor other watchers anything. One that is
// overtaken by the compaction gets kCompacted. Used by one thread at a time. Its destruction waits
// for a `ready` that is running, so it must not happen inside one.
class Watch {
 public:
  virtual ~Watch() = default;

  // The next transaction, or nullopt when there is none yet; `ready` is then called once as soon as
  // there may be one (sometimes there is none after all). An error is final: kCompacted, kClosed,
  // kDamaged. Never waits for the network; may read from the disk.
  virtual StatusOr<std::optional<Changes>> TryNext() = 0;

  // kUnavailable: the store has been out of reach for seconds, so that changes may be missing until
  // it is back, which the watch waits for by itself. From any thread.
  virtual Status reach() const { return OkStatus(); }
};

// Keys that were put with this lease are deleted, in one transaction, when it ends: when this
// object goes, when its process dies, or when the store has not heard of it for its time to live.
class Lease {
 public:
  virtual ~Lease() = default;
  virtual LeaseId id() const = 0;
  // False once it has certainly ended or may have, by the clock of this machine.
  virtual bool alive() const = 0;
};

class Store {
 public:
  using TxnDone = std::function<void(StatusOr<TransactionResult>)>;
  using RangeDone = std::function<void(StatusOr<RangeResult>)>;

  virtual ~Store() = default;

  // Made once, with the store, and kept in it: 36 characters. Tells a store from an emptied or
  // another one whose revisions mean nothing to those who know this one's.
  virtual const std::string& uuid() const = 0;
  // memory, sqlite, etcd.
  virtual std::string_view backend() const = 0;

  virtual void TxnAsync(Transaction transaction, TxnDone done) = 0;
  // The same, but the caller may wait for the disk: where a backend can write on its thread at
  // once, that is quicker than handing it over and back.
  virtual void TxnHere(Transaction transaction, TxnDone done) {
    TxnAsync(std::move(transaction), std::move(done));
  }
  // kCompacted below the compaction point, kFutureRevision above the newest one.
  virtual void RangeAsync(RangeRequest request, RangeDone done) = 0;

  // Changes of revision `from` (at least 1) and later. To miss nothing: read, then watch from the
  // read's revision + 1. kCompacted, here or from TryNext, if `from` is at or below the compaction
  // point. `ready` may be empty for who asks by himself.
  virtual StatusOr<std::unique_ptr<Watch>> NewWatch(KeyRange range, Revision from,
                                                    std::function<void()> ready) = 0;

  // Gives up the past below `revision`, which remains readable; later, space is used again. Done
  // already is done. kFutureRevision above the newest one. Waits.
  virtual Status Compact(Revision revision) = 0;

  // `lost` is called when the lease ended before its object did, and may still be running, or
  // begin, while the object goes. Waits.
  virtual StatusOr<std::unique_ptr<Lease>> NewLease(std::chrono::seconds time_to_live,
                                                    std::function<void()> lost) = 0;

  // The same, waiting for the answer. Not on a thread of the store.
  StatusOr<TransactionResult> Txn(Transaction transaction);
  StatusOr<RangeResult> Range(RangeRequest request);
  // One key, the newest.
  StatusOr<std::optional<Entry>> Get(std::string_view key);
};

// A watch for a thread that has nothing else to do than to wait for it.
class BlockingWatch {
 public:
  BlockingWatch(Store& store, KeyRange range, Revision from);
  ~BlockingWatch();
  // nullopt: none within the time.
  StatusOr<std::optional<Changes>> Next(std::chrono::milliseconds timeout);
  Status reach() const { return watch_ == nullptr ? opened_ : watch_->reach(); }
  // Ends a Next that waits, from another thread; it and all later ones return nullopt at once.
  void Interrupt();

 private:
  struct Signal;
  std::shared_ptr<Signal> signal_;
  Status opened_;
  std::unique_ptr<Watch> watch_;
};

}  // namespace rocegw::store
