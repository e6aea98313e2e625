// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/sqlite/sqlite_history.h"

#include <limits>
#include <utility>

namespace rocegw::store {
namespace {

// Limit of rows per sweep: some milliseconds of the writer.
constexpr int64_t kSweepRows = 512;

// Row ids: the revision, then the number within its transaction (a lease may end with many keys).
constexpr int kSubBits = 20;
int64_t FirstIdOf(Revision revision) { return revision << kSubBits; }
Revision RevisionOf(int64_t id) { return id >> kSubBits; }

}  // namespace

StatusOr<std::optional<Entry>> SqliteHistory::Find(const std::string& key) {
  return FindBelow(key, std::numeric_limits<int64_t>::max());
}

StatusOr<std::optional<Entry>> SqliteHistory::FindAt(const std::string& key, Revision revision) {
  return FindBelow(key, FirstIdOf(revision + 1));
}

StatusOr<std::optional<Entry>> SqliteHistory::FindBelow(const std::string& key, int64_t end) {
  if (Status status = find_.Start(key, end); !status.ok()) return status;
  const SqliteReset reset(find_);
  const auto row = find_.Step();
  if (!row.ok()) return row.status();
  if (!row.value() || find_.Number(2) != 0) return std::optional<Entry>();
  return std::optional<Entry>(Entry{key, std::string(find_.Blob(4)), find_.Number(1),
                                    RevisionOf(find_.Number(0)), find_.Number(3)});
}

StatusOr<RangeResult> SqliteHistory::Read(const RangeRequest& request, Revision revision) {
  const KeyRange& range = request.range;
  const int64_t end = FirstIdOf(revision + 1);
  SqliteStatement& read = range.end.empty() ? read_open_ : read_bounded_;
  Status started =
      range.end.empty() ? read.Start(range.begin, end) : read.Start(range.begin, range.end, end);
  if (!started.ok()) return started;
  const SqliteReset reset(read);
  RangeResult result;
  result.revision = revision;
  while (true) {
    const auto row = read.Step();
    if (!row.ok()) return row.status();
    if (!row.value()) return result;
    if (request.limit != 0 && result.entries.size() == request.limit) {
      result.more = true;
      return result;
    }
    Entry& entry = result.entries.emplace_back();
    entry.key = read.Blob(0);
    if (!request.keys_only) entry.value = read.Blob(1);
    entry.create_revision = read.Number(2);
    entry.mod_revision = RevisionOf(read.Number(3));
    entry.lease = read.Number(4);
  }
}

StatusOr<std::vector<Changes>> SqliteHistory::ReadChanges(Revision from, Revision to, size_t rows) {
  if (Status status = changes_.Start(FirstIdOf(from), FirstIdOf(to + 1)); !status.ok())
    return status;
  const SqliteReset reset(changes_);
  std::vector<Changes> transactions;
  for (size_t passed = 0;; ++passed) {
    const auto row = changes_.Step();
    if (!row.ok()) return row.status();
    if (!row.value()) return transactions;
    const Revision revision = RevisionOf(changes_.Number(0));
    if (transactions.empty() || transactions.back().revision != revision) {
      if (passed >= rows) return transactions;
      transactions.push_back({revision, {}});
    }
    Change& change = transactions.back().changes.emplace_back();
    change.deleted = changes_.Number(3) != 0;
    change.entry.key = changes_.Blob(1);
    change.entry.mod_revision = revision;
    if (change.deleted) continue;
    change.entry.create_revision = changes_.Number(2);
    change.entry.lease = changes_.Number(4);
    change.entry.value = changes_.Blob(5);
  }
}

Status SqliteHistory::Append(Revision revision, int64_t sub, const Change& change) {
  const Entry& entry = change.entry;
  return append_.Run(FirstIdOf(revision) + sub, entry.key, entry.create_revision,
                     int64_t{change.deleted ? 1 : 0}, entry.lease, entry.value);
}

StatusOr<std::vector<std::string>> SqliteHistory::Keys(SqliteStatement& statement) {
  const SqliteReset reset(statement);
  std::vector<std::string> keys;
  while (true) {
    const auto row = statement.Step();
    if (!row.ok()) return row.status();
    if (!row.value()) return keys;
    keys.emplace_back(statement.Blob(0));
  }
}

StatusOr<std::vector<std::string>> SqliteHistory::KeysOfLeases() {
  if (Status status = leased_.Start(); !status.ok()) return status;
  return Keys(leased_);
}

StatusOr<std::vector<std::string>> SqliteHistory::KeysOfLease(LeaseId lease) {
  if (Status status = of_lease_.Start(lease); !status.ok()) return status;
  return Keys(of_lease_);
}

Status SqliteHistory::MarkCompacted(Revision revision) { return mark_.Run(revision); }

StatusOr<Revision> SqliteHistory::Sweep(Revision swept, Revision compacted) {
  const int64_t begin = FirstIdOf(swept + 1);
  Revision end = compacted;
  {
    if (Status status = piece_.Start(begin, FirstIdOf(compacted + 1), kSweepRows); !status.ok())
      return status;
    const SqliteReset reset(piece_);
    const auto row = piece_.Step();
    if (!row.ok()) return row.status();
    if (row.value()) end = RevisionOf(piece_.Number(0));
  }
  Status status = sweep_old_.Run(begin, FirstIdOf(end + 1));
  // After the rows that they superseded: a key must not reappear.
  if (status.ok()) status = sweep_deletions_.Run(begin, FirstIdOf(end + 1));
  if (status.ok()) status = swept_.Run(end);
  if (!status.ok()) return status;
  return end;
}

}  // namespace rocegw::store
