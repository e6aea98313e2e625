// SPDX-License-Identifier: Apache-2.0
// The writes of an SQLite store. Who writes, one at a time, takes all transactions that wait, makes
// one SQLite transaction of them, and acknowledges each after the one fdatasync that they share.
// While it syncs, the next ones gather; nobody waits for company. Who finds that nobody writes may
// write its own transaction itself, which saves two changes of thread; all others are written by a
// thread that is kept for it. The public methods are thread safe; the rest belongs to who writes.
//
// What cannot be written is refused whole: a group is durable or has not been. After an error that
// leaves this open (a failed sync), everything is refused until the process starts anew.
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
  // What the rest of the store learns, from who writes.
  class Observer {
   public:
    virtual ~Observer() = default;
    // Durable, in order; from now on readable, and acknowledged when this returns.
    virtual void Committed(std::vector<Changes> transactions) = 0;
    // From now on this is not readable; nothing has been removed yet.
    virtual void Compacted(Revision revision) = 0;
    // After the acknowledgements, for which somebody waits: who watches may be told. Somebody else
    // may write again already.
    virtual void Acknowledged() = 0;
  };
  struct Position {
    Revision revision = 0;
    Revision compacted = 0;
    Revision swept = 0;
  };

  GroupCommit(SqliteDatabase& database, Position position, Observer& observer);
  // Finishes what has been posted.
  ~GroupCommit();
  GroupCommit(const GroupCommit&) = delete;
  GroupCommit& operator=(const GroupCommit&) = delete;

  // Refuses, with kUnavailable, what would make too much wait.
  void Post(Transaction transaction, Store::TxnDone done);
  // The same; but when nobody writes, this thread does, and waits for the disk.
  void WriteOrPost(Transaction transaction, Store::TxnDone done);
  void PostCompaction(Revision revision, std::function<void(Status)> done);
  // Deletes the keys of a lease; puts may name it until then. Lease 0: those of all leases, which
  // ended with the process that wrote them.
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
  // Says to whoever posted a job what became of it, given what became of its group.
  using Answer = std::function<void(const Status& group)>;

  void Run();
  void Take(Transaction transaction, Store::TxnDone done, bool may_write);
  std::deque<Job> TakeGroup();
  // By who is `writing_`, which it is no more when the answers are given.
  void RunGroup(std::deque<Job> jobs);
  void StopWriting();
  bool HasWork() const;
  // Everything but the commit. Answers are made even when an error ends the group.
  Status ApplyGroup(std::deque<Job> jobs, std::vector<Answer>* answers);
  Status Commit();
  StatusOr<TransactionResult> ApplyWrite(const Transaction& transaction);
  Status ApplyCompaction(Revision revision);
  Status ApplyLeaseEnd(LeaseId lease);
  Status CheckLeases(const std::vector<Operation>& operations);
  // One key of the transaction that `changes` is going to be.
  Status Append(Changes* changes, Change change);
  void Finish(Changes changes);

  SqliteDatabase& database_;
  SqliteHistory history_;
  SqliteStatement begin_{database_, "BEGIN IMMEDIATE"};
  SqliteStatement commit_{database_, "COMMIT"};
  Observer& observer_;
  Position position_;  // of what is durable
  // Of the group at work.
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
  int guests_ = 0;  // threads within WriteOrPost that have written
  bool stopping_ = false;
  std::condition_variable left_;
  DeliveryThread acknowledgements_;
  std::thread thread_;
};

}  // namespace rocegw::store
