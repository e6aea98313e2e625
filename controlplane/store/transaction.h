// SPDX-License-Identifier: Apache-2.0
// Values of the key-value store: keys and ranges, entries, transactions and what they answer. Plain
// data without an owner, usable from any thread. Keys and values are bytes; keys are ordered as
// unsigned bytes. A revision numbers a transaction that changed something: it grows with each, not
// always by one (etcd shares its counter with others). 0 is no revision.
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
inline constexpr size_t kMaxTransactionBytes = size_t{1} << 20;  // all keys and values together

// From `begin` up to, not including, `end`; an empty `end` is no bound.
struct KeyRange {
  std::string begin;
  std::string end;

  static KeyRange All() { return {}; }
  static KeyRange Key(std::string_view key);
  static KeyRange Prefix(std::string_view prefix);
  // What of this range lies behind `key`: the next page.
  KeyRange After(std::string_view key) const;
  bool Contains(std::string_view key) const;
};

struct Entry {
  std::string key;
  std::string value;
  Revision create_revision = 0;  // of the put that made the key after it had been absent
  Revision mod_revision = 0;     // of the last put
  LeaseId lease = 0;

  bool operator==(const Entry&) const = default;
};

// A condition on one key. An absent key has the revisions 0; a condition on its value never holds.
struct Compare {
  enum class Field : uint8_t { kCreateRevision, kModRevision, kValue };
  enum class Relation : uint8_t { kEqual, kNotEqual, kLess, kGreater };

  std::string key;
  Field field = Field::kModRevision;
  Relation relation = Relation::kEqual;
  Revision revision = 0;  // right side, for the revisions
  std::string value;      // right side, for the value

  static Compare Absent(std::string_view key) { return CreatedAt(key, 0); }
  static Compare Exists(std::string_view key);
  static Compare ModifiedAt(std::string_view key, Revision revision);
  static Compare CreatedAt(std::string_view key, Revision revision);
  static Compare HasValue(std::string_view key, std::string_view value);

  // `entry` is what the key holds, nullptr when it is absent.
  bool Holds(const Entry* entry) const;
};

struct Operation {
  enum class Kind : uint8_t { kPut, kDelete, kGet };

  Kind kind = Kind::kGet;
  std::string key;
  std::string value;  // of a put
  LeaseId lease = 0;  // of a put: the key goes when this lease ends; 0 detaches it

  static Operation Put(std::string_view key, std::string_view value, LeaseId lease = 0);
  static Operation Delete(std::string_view key);
  static Operation Get(std::string_view key);
};

// When all compares hold, `then` is done, else `otherwise`: everything or nothing, in one revision.
// Within one branch a key may stand once.
struct Transaction {
  std::vector<Compare> compares;
  std::vector<Operation> then;
  std::vector<Operation> otherwise;

  // kInvalid (store.h), naming what is wrong, when it breaks a limit.
  Status Validate() const;
  // Neither branch changes anything.
  bool OnlyReads() const;
};

struct OperationResult {
  // Get: what is there. Put and Delete: nullopt.
  std::optional<Entry> entry;
  // Delete: whether there was anything to delete.
  bool deleted = false;
};

struct TransactionResult {
  bool succeeded = false;  // `then` was done
  // Of this transaction when it changed anything, else one at which its answer was true. A put
  // always changes something, the deletion of an absent key does not.
  Revision revision = 0;
  std::vector<OperationResult> results;  // one per operation of the branch that was done
};

struct RangeRequest {
  KeyRange range;
  Revision revision = 0;  // 0: the newest
  size_t limit = 0;       // entries; 0: all of them
  bool keys_only = false;
};

struct RangeResult {
  std::vector<Entry> entries;  // in the order of their keys
  Revision revision = 0;       // at which they were read
  // There are entries behind the last one: ask again for range.After(last key) at `revision`.
  bool more = false;
};

// One transaction, as a watch sees it: what it changed in the watch's range, once per key.
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
