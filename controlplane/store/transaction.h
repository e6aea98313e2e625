// SPDX-License-Identifier: Apache-2.0
// Values of the key-value store: keys and ranges, entries, transactions and their results. Plain
// data, any thread. Keys and values are bytes; keys are ordered as unsigned bytes. A revision
// numbers a transaction that changed something: it grows with each, not always by one (etcd shares
// its counter with others). 0 is no revision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/base/status.h"

namespace rocegw::store {

using Revision = int64_t;
using LeaseId = int64_t;  // 0: none

inline constexpr size_t kMaxKeyBytes = 1024;
inline constexpr size_t kMaxOperations = 128;  // in each of compares, then, otherwise
inline constexpr size_t kMaxTransactionBytes = size_t{1} << 20;  // sum of all keys and values

// Keys from `begin` up to, not including, `end`; an empty `end` means no bound.
struct KeyRange {
  std::string begin;
  std::string end;

  static KeyRange All() { return {}; }
  static KeyRange Key(std::string_view key);
  static KeyRange Prefix(std::string_view prefix);
  // Returns the part of this range behind `key`, for the next page.
  KeyRange After(std::string_view key) const;
  bool Contains(std::string_view key) const;
};

struct Entry {
  std::string key;
  std::string value;
  Revision create_revision = 0;  // revision of the put that created the key
  Revision mod_revision = 0;     // revision of the last put
  LeaseId lease = 0;

  bool operator==(const Entry&) const = default;
};

// Condition on one key. An absent key has revisions of 0; a condition on its value never holds.
struct Compare {
  enum class Field : uint8_t { kCreateRevision, kModRevision, kValue };
  enum class Relation : uint8_t { kEqual, kNotEqual, kLess, kGreater };

  std::string key;
  Field field = Field::kModRevision;
  Relation relation = Relation::kEqual;
  Revision revision = 0;  // right side for revisions
  std::string value;      // right side for the value

  static Compare Absent(std::string_view key) { return CreatedAt(key, 0); }
  static Compare Exists(std::string_view key);
  static Compare ModifiedAt(std::string_view key, Revision revision);
  static Compare CreatedAt(std::string_view key, Revision revision);
  static Compare HasValue(std::string_view key, std::string_view value);

  // `entry`: the key's entry, nullptr if absent.
  bool Holds(const Entry* entry) const;
};

struct Operation {
  enum class Kind : uint8_t { kPut, kDelete, kGet };

  Kind kind = Kind::kGet;
  std::string key;
  std::string value;  // value of a put
  LeaseId lease = 0;  // put: the key is deleted when this lease ends; 0 detaches it

  static Operation Put(std::string_view key, std::string_view value, LeaseId lease = 0);
  static Operation Delete(std::string_view key);
  static Operation Get(std::string_view key);
};

// Transaction: if all compares hold, `then` is executed, else `otherwise`, atomically in one
// revision. A key may occur once in each branch.
struct Transaction {
  std::vector<Compare> compares;
  std::vector<Operation> then;
  std::vector<Operation> otherwise;

  // Returns kInvalid (store.h), with the reason, if a limit is exceeded.
  Status Validate() const;
  // Returns true if neither branch changes anything.
  bool OnlyReads() const;
};

struct OperationResult {
  // Get: the entry. Put and Delete: nullopt.
  std::optional<Entry> entry;
  // Delete: the key existed.
  bool deleted = false;
};

struct TransactionResult {
  bool succeeded = false;  // `then` was executed
  // Revision of this transaction if it changed anything, else one at which its answer was true. A
  // put always counts as a change, the deletion of an absent key does not.
  Revision revision = 0;
  std::vector<OperationResult> results;  // result per operation of the executed branch
};

struct RangeRequest {
  KeyRange range;
  Revision revision = 0;  // 0: newest
  size_t limit = 0;       // number of entries; 0: all
  bool keys_only = false;
};

struct RangeResult {
  std::vector<Entry> entries;  // in key order
  Revision revision = 0;       // revision of the entries
  // More entries follow: read range.After(last key) at `revision`.
  bool more = false;
};

// Transaction as a watch sees it: its changes in the watch's range, one per key.
struct Change {
  bool deleted = false;
  Entry entry;  // deleted: key and mod_revision only

  bool operator==(const Change&) const = default;
};

struct Changes {
  Revision revision = 0;
  std::vector<Change> changes;
};

}  // namespace rocegw::store
