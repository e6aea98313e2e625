// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/sqlite/sqlite_store.h"

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "controlplane/store/local/local_watch.h"
#include "controlplane/store/local/recent_changes.h"
#include "controlplane/store/sqlite/group_commit.h"

namespace rocegw::store {
namespace {

constexpr size_t kMaxReaders = 4;
constexpr size_t kHistoryRows = 512;

struct Reader {
  explicit Reader(std::unique_ptr<SqliteDatabase> opened)
      : database(std::move(opened)), history(*database) {}
  std::unique_ptr<SqliteDatabase> database;
  SqliteHistory history;
};

// Pool of connections for reads. A connection is taken for one answer; if all are in use, the
// caller waits.
class Readers {
 public:
  explicit Readers(SqliteFileOptions options) : options_(std::move(options)) {}

  StatusOr<std::unique_ptr<Reader>> Take() {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return !idle_.empty() || open_ < kMaxReaders; });
    if (!idle_.empty()) {
      auto reader = std::move(idle_.back());
      idle_.pop_back();
      return reader;
    }
    ++open_;
    lock.unlock();
    auto database = OpenSqliteReader(options_);
    if (database.ok()) return std::make_unique<Reader>(std::move(*database));
    lock.lock();
    --open_;
    returned_.notify_one();
    return database.status();
  }
  void Return(std::unique_ptr<Reader> reader) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(reader));
    returned_.notify_one();
  }

 private:
  const SqliteFileOptions options_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Reader>> idle_;
  size_t open_ = 0;
};

class SqliteStore : public Store, private History, private GroupCommit::Observer {
 public:
  SqliteStore(SqliteFile file, const SqliteFileOptions& options)
      : file_(std::move(file)),
        revision_(file_.revision),
        compacted_(file_.compacted),
        readers_(options),
        writer_(*file_.database, {file_.revision, file_.compacted, file_.swept}, *this) {}

  const std::string& uuid() const override { return file_.uuid; }
  std::string_view backend() const override { return "sqlite"; }

  void TxnAsync(Transaction transaction, TxnDone done) override {
    Begin(std::move(transaction), std::move(done), &GroupCommit::Post);
  }
  void TxnHere(Transaction transaction, TxnDone done) override {
    Begin(std::move(transaction), std::move(done), &GroupCommit::WriteOrPost);
  }
  void RangeAsync(RangeRequest request, RangeDone done) override { done(Read(request)); }
  StatusOr<std::unique_ptr<Watch>> NewWatch(KeyRange range, Revision from,
                                            std::function<void()> ready) override;
  Status Compact(Revision revision) override;
  StatusOr<std::unique_ptr<Lease>> NewLease(std::chrono::seconds time_to_live,
                                            std::function<void()> lost) override;
  // Waits. Lease 0: all keys that an earlier process left.
  Status EndLease(LeaseId lease);

 private:
  using WriteWith = void (GroupCommit::*)(Transaction, TxnDone);
  void Begin(Transaction transaction, TxnDone done, WriteWith write);
  // Executes a transaction that only reads: it waits for no writer.
  StatusOr<TransactionResult> ReadKeys(const Transaction& transaction);
  // Calls read(history, revision) at the newest revision, or at the requested one.
  template <typename Result, typename Function>
  StatusOr<Result> ReadAt(Revision revision, const Function& read);
  StatusOr<RangeResult> Read(const RangeRequest& request);
  StatusOr<HistoryPage> ReadHistory(const KeyRange& range, Revision from) override;
  std::optional<Revision> QuietUntil(const KeyRange& range, Revision from) override {
    return recent_.QuietUntil(range, from);
  }
  void Committed(std::vector<Changes> transactions) override;
  void Compacted(Revision revision) override { compacted_ = revision; }
  void Acknowledged() override { hub_.Wake(); }

  SqliteFile file_;
  std::atomic<Revision> revision_;
  // Raised before superfluous rows are removed: a read that finds it unchanged afterwards has seen
  // everything.
  std::atomic<Revision> compacted_;
  Readers readers_;
  RecentChanges recent_;
  WatchHub hub_{*this, watches_};
  DeliveryThread watches_;  // destroyed before the hub that its work uses
  GroupCommit writer_;      // destroyed first
};

class SqliteLease : public Lease {
 public:
  SqliteLease(SqliteStore& store, LeaseId id) : store_(store), id_(id) {}
  ~SqliteLease() override {
    // If this fails, the keys are deleted when the file is opened again.
    static_cast<void>(store_.EndLease(id_));
  }
  LeaseId id() const override { return id_; }
  // Its holder lives in the store's process.
  bool alive() const override { return true; }

 private:
  SqliteStore& store_;
  const LeaseId id_;
};

void SqliteStore::Committed(std::vector<Changes> transactions) {
  const Revision newest = transactions.back().revision;
  for (Changes& changes : transactions) recent_.Append(std::move(changes));
  revision_ = newest;
}

void SqliteStore::Begin(Transaction transaction, TxnDone done, WriteWith write) {
  if (Status status = transaction.Validate(); !status.ok()) return done(std::move(status));
  if (transaction.OnlyReads()) return done(ReadKeys(transaction));
  (writer_.*write)(std::move(transaction), std::move(done));
}

template <typename Result, typename Function>
StatusOr<Result> SqliteStore::ReadAt(Revision revision, const Function& read) {
  while (true) {
    const Revision newest = revision_;
    const Revision at = revision == 0 ? newest : revision;
    if (at < 0 || at > newest) {
      return NotYet(at, newest);
    }
    auto reader = readers_.Take();
    if (!reader.ok()) return reader.status();
    StatusOr<Result> result = read((*reader)->history, at);
    readers_.Return(std::move(*reader));
    if (at >= compacted_) return result;
    if (revision != 0) return IsCompacted(compacted_);
  }
}

StatusOr<RangeResult> SqliteStore::Read(const RangeRequest& request) {
  return ReadAt<RangeResult>(request.revision, [&](SqliteHistory& history, Revision at) {
    return history.Read(request, at);
  });
}

StatusOr<TransactionResult> SqliteStore::ReadKeys(const Transaction& transaction) {
  const auto read = [&](SqliteHistory& history, Revision at) -> StatusOr<TransactionResult> {
    TransactionResult result{.succeeded = true, .revision = at, .results = {}};
    for (const Compare& compare : transaction.compares) {
      const auto entry = history.FindAt(compare.key, at);
      if (!entry.ok()) return entry.status();
      result.succeeded &= compare.Holds(entry.value().has_value() ? &*entry.value() : nullptr);
    }
    for (const Operation& get : result.succeeded ? transaction.then : transaction.otherwise) {
      auto entry = history.FindAt(get.key, at);
      if (!entry.ok()) return entry.status();
      result.results.emplace_back().entry = std::move(*entry);
    }
    return result;
  };
  return ReadAt<TransactionResult>(0, read);
}

StatusOr<HistoryPage> SqliteStore::ReadHistory(const KeyRange& range, Revision from) {
  if (from <= compacted_) return IsCompacted(compacted_);
  const Revision newest = revision_;
  if (from > newest) return HistoryPage{{}, from};
  if (auto page = recent_.Read(range, from)) return std::move(*page);
  auto reader = readers_.Take();
  if (!reader.ok()) return reader.status();
  auto transactions = (*reader)->history.ReadChanges(from, newest, kHistoryRows);
  readers_.Return(std::move(*reader));
  if (!transactions.ok()) return transactions.status();
  if (from <= compacted_) return IsCompacted(compacted_);
  HistoryPage page{{}, from};
  for (const Changes& changes : transactions.value()) {
    Changes visible = Visible(changes, range);
    if (!visible.changes.empty()) page.transactions.push_back(std::move(visible));
    page.next = changes.revision + 1;
  }
  return page;
}

StatusOr<std::unique_ptr<Watch>> SqliteStore::NewWatch(KeyRange range, Revision from,
                                                       std::function<void()> ready) {
  if (from < 1) return Status(kInvalid, "a watch begins at revision 1 or later");
  if (from <= compacted_) return IsCompacted(compacted_);
  return hub_.Add(std::move(range), from, std::move(ready));
}

Status SqliteStore::Compact(Revision revision) {
  auto answer = std::make_shared<std::promise<Status>>();
  auto future = answer->get_future();
  writer_.PostCompaction(revision,
                         [answer](Status status) { answer->set_value(std::move(status)); });
  return future.get();
}

StatusOr<std::unique_ptr<Lease>> SqliteStore::NewLease(std::chrono::seconds,
                                                       std::function<void()>) {
  return std::unique_ptr<Lease>(std::make_unique<SqliteLease>(*this, writer_.NewLease()));
}

Status SqliteStore::EndLease(LeaseId lease) {
  auto answer = std::make_shared<std::promise<Status>>();
  auto future = answer->get_future();
  writer_.PostLeaseEnd(lease, [answer](Status status) { answer->set_value(std::move(status)); });
  return future.get();
}

}  // namespace

StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteFileOptions& options) {
  auto file = OpenSqliteFile(options);
  if (!file.ok()) return file.status();
  auto store = std::make_unique<SqliteStore>(std::move(*file), options);
  if (Status status = store->EndLease(0); !status.ok()) return status;
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace rocegw::store
