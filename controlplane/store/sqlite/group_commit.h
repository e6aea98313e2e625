// SPDX-License-Identifier: Apache-2.0
// Writes of an SQLite store. One thread at a time takes all waiting transactions, makes one SQLite
// transaction of them, and acknowledges each after one common fdatasync. The next ones collect
// during the sync. A caller that finds no writer may write its transaction itself, which saves two
// thread switches; all others are written by a dedicated thread. The public methods are thread
// safe; the rest belongs to the current writer.
//
// A group is durable or refused as a whole. After an error that leaves this undecided (a failed
// sync), everything is refused until the process restarts.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "controlplane/store/local/delivery_thread.h"
#include "controlplane/store/sqlite/sqlite_file.h"
#include "controlplane/store/sqlite/sqlite_history.h"
#include "controlplane/store/store.h"

namespace rocegw::store {

class GroupCommit {
 public:
  // Events for the rest of the store, from the writer.
  class Observer {
   public:
    virtual ~Observer() = default;
    // Reports durable transactions, in order; they are readable from now on, and acknowledged when
    // this returns.
    virtual void Committed(std::vector<Changes> transactions) = 0;
    // Reports that older revisions are not readable from now on; nothing was removed yet.
    virtual void Compacted(Revision revision) = 0;
    // Called after the acknowledgements, so that callers do not wait for the watches. Another
    // thread may write already.
    virtual void Acknowledged() = 0;
  };
  struct Position {
    Revision revision = 0;
    Revision compacted = 0;
    Revision swept = 0;
  };

  GroupCommit(SqliteDatabase& database, Position position, Observer& observer);
  // Finishes the posted work.
  ~GroupCommit();
  GroupCommit(const GroupCommit&) = delete;
  GroupCommit& operator=(const GroupCommit&) = delete;

  // Refuses with kUnavailable if too much would wait.
  void Post(Transaction transaction, Store::TxnDone done);
  // Does the same; but if no thread writes, the caller writes and waits for the disk.
  void WriteOrPost(Transaction transaction, Store::TxnDone done);
  void PostCompaction(Revision revision, std::function<void(Status)> done);
  // Deletes the keys of a lease; puts may name it until then. Lease 0: the keys of all leases,
  // which ended with the process that created them.
  void PostLeaseEnd(LeaseId lease, std::function<void(Status)> done);
  LeaseId NewLease();

 private:
  struct Write {
    Transaction transaction;
    Store::TxnDone done;
  };
  struct Compaction {
    Revision revision;
    std::function<void(Status)> done;
  };
  struct LeaseEnd {
    LeaseId lease;
    std::function<void(Status)> done;
  };
  using Job = std::variant<Write, Compaction, LeaseEnd>;
  // Reports the result of a job to its poster, given the result of its group.
  using Answer = std::function<void(const Status& group)>;

  void Run();
  void Take(Transaction transaction, Store::TxnDone done, bool may_write);
  std::deque<Job> TakeGroup();
  // Run by the writer; `writing_` is cleared before the answers are given.
  void RunGroup(std::deque<Job> jobs);
  void StopWriting();
  bool HasWork() const;
  // Applies everything except the commit. Answers are complete even if an error ends the group.
  Status ApplyGroup(std::deque<Job> jobs, std::vector<Answer>* answers);
  Status Commit();
  StatusOr<TransactionResult> ApplyWrite(const Transaction& transaction);
  Status ApplyCompaction(Revision revision);
  Status ApplyLeaseEnd(LeaseId lease);
  Status CheckLeases(const std::vector<Operation>& operations);
  // Adds one key to the future transaction `changes`.
  Status Append(Changes* changes, Change change);
  void Finish(Changes changes);

  SqliteDatabase& database_;
  SqliteHistory history_;
  SqliteStatement begin_{database_, "BEGIN IMMEDIATE"};
  SqliteStatement commit_{database_, "COMMIT"};
  Observer& observer_;
  Position position_;  // position of durable data
  // Positions of the current group.
  Position next_;
  std::vector<Changes> group_;
  Status broken_;

  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Job> jobs_;
  size_t waiting_bytes_ = 0;
  std::set<LeaseId> leases_;
  LeaseId last_lease_ = 0;
  bool writing_ = false;
  int guests_ = 0;  // callers of WriteOrPost that have written
  bool stopping_ = false;
  std::condition_variable left_;
  DeliveryThread acknowledgements_;
  std::thread thread_;
};

}  // namespace rocegw::store
