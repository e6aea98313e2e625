// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/transaction.h"

#include <algorithm>
#include <set>

#include "controlplane/store/store.h"

namespace rocegw::store {
namespace {

template <typename T>
bool Compares(const T& left, Compare::Relation relation, const T& right) {
  switch (relation) {
    case Compare::Relation::kEqual:
      return left == right;
    case Compare::Relation::kNotEqual:
      return left != right;
    case Compare::Relation::kLess:
      return left < right;
    case Compare::Relation::kGreater:
      return left > right;
  }
  return false;
}

Status CheckKey(const std::string& key) {
  if (key.empty()) return {kInvalid, "a key is empty"};
  if (key.size() > kMaxKeyBytes) {
    return {kInvalid, "a key has " + std::to_string(key.size()) + " bytes; at most " +
                          std::to_string(kMaxKeyBytes) + " fit"};
  }
  return OkStatus();
}

Status CheckBranch(const std::vector<Operation>& operations, size_t* bytes) {
  if (operations.size() > kMaxOperations) {
    return {kInvalid, "a transaction with " + std::to_string(operations.size()) +
                          " operations; at most " + std::to_string(kMaxOperations) + " fit"};
  }
  std::set<std::string_view> keys;
  for (const Operation& operation : operations) {
    if (Status status = CheckKey(operation.key); !status.ok()) return status;
    if (!keys.insert(operation.key).second) {
      return {kInvalid, "key " + operation.key + " stands twice in one transaction"};
    }
    *bytes += operation.key.size() + operation.value.size();
  }
  return OkStatus();
}

}  // namespace

KeyRange KeyRange::Key(std::string_view key) { return {std::string(key), std::string(key) + '\0'}; }

KeyRange KeyRange::Prefix(std::string_view prefix) {
  KeyRange range{std::string(prefix), std::string(prefix)};
  // First key behind all keys with this prefix: increments the last byte that is not 0xff.
  while (!range.end.empty() && range.end.back() == '\xff') range.end.pop_back();
  if (!range.end.empty()) range.end.back() = static_cast<char>(range.end.back() + 1);
  return range;
}

KeyRange KeyRange::After(std::string_view key) const { return {std::string(key) + '\0', end}; }

bool KeyRange::Contains(std::string_view key) const {
  return key >= begin && (end.empty() || key < end);
}

Compare Compare::Exists(std::string_view key) {
  return {std::string(key), Field::kCreateRevision, Relation::kNotEqual, 0, {}};
}

Compare Compare::ModifiedAt(std::string_view key, Revision revision) {
  return {std::string(key), Field::kModRevision, Relation::kEqual, revision, {}};
}

Compare Compare::CreatedAt(std::string_view key, Revision revision) {
  return {std::string(key), Field::kCreateRevision, Relation::kEqual, revision, {}};
}

Compare Compare::HasValue(std::string_view key, std::string_view value) {
  return {std::string(key), Field::kValue, Relation::kEqual, 0, std::string(value)};
}

bool Compare::Holds(const Entry* entry) const {
  switch (field) {
    case Field::kCreateRevision:
      return Compares(entry == nullptr ? Revision{0} : entry->create_revision, relation, revision);
    case Field::kModRevision:
      return Compares(entry == nullptr ? Revision{0} : entry->mod_revision, relation, revision);
    case Field::kValue:
      return entry != nullptr && Compares(entry->value, relation, value);
  }
  return false;
}

Operation Operation::Put(std::string_view key, std::string_view value, LeaseId lease) {
  return {Kind::kPut, std::string(key), std::string(value), lease};
}

Operation Operation::Delete(std::string_view key) {
  return {Kind::kDelete, std::string(key), {}, 0};
}

Operation Operation::Get(std::string_view key) { return {Kind::kGet, std::string(key), {}, 0}; }

bool Transaction::OnlyReads() const {
  const auto reads = [](const Operation& operation) {
    return operation.kind == Operation::Kind::kGet;
  };
  return std::ranges::all_of(then, reads) && std::ranges::all_of(otherwise, reads);
}

Status Transaction::Validate() const {
  size_t bytes = 0;
  if (compares.size() > kMaxOperations) {
    return {kInvalid, "a transaction with " + std::to_string(compares.size()) +
                          " compares; at most " + std::to_string(kMaxOperations) + " fit"};
  }
  for (const Compare& compare : compares) {
    if (Status status = CheckKey(compare.key); !status.ok()) return status;
    bytes += compare.key.size() + compare.value.size();
  }
  for (const std::vector<Operation>* branch : {&then, &otherwise}) {
    if (Status status = CheckBranch(*branch, &bytes); !status.ok()) return status;
  }
  if (bytes > kMaxTransactionBytes) {
    return {kInvalid, "a transaction of " + std::to_string(bytes) + " bytes; at most " +
                          std::to_string(kMaxTransactionBytes) + " fit"};
  }
  return OkStatus();
}

}  // namespace rocegw::store
