// SPDX-License-Identifier: Apache-2.0
#include "tests/support/store/conformance.h"

#include <algorithm>
#include <utility>

namespace rocegw::testing {

using store::Changes;
using store::Entry;
using store::Operation;
using store::RangeResult;
using store::Transaction;
using store::TransactionResult;

TransactionResult StoreConformance::Must(Transaction transaction) {
  auto result = store().Txn(std::move(transaction));
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? std::move(*result) : TransactionResult{};
}

StoreConformance::Revision StoreConformance::Put(std::string_view key, std::string_view value,
                                                 store::LeaseId lease) {
  return Must({.compares = {}, .then = {Operation::Put(key, value, lease)}, .otherwise = {}})
      .revision;
}

StoreConformance::Revision StoreConformance::Delete(std::string_view key) {
  return Must({.compares = {}, .then = {Operation::Delete(key)}, .otherwise = {}}).revision;
}

std::optional<Entry> StoreConformance::Get(std::string_view key) {
  auto entry = store().Get(key);
  EXPECT_TRUE(entry.ok()) << entry.status().text();
  return entry.ok() ? *entry : std::nullopt;
}

RangeResult StoreConformance::List(std::string_view prefix, Revision at, size_t limit) {
  auto result = store().Range({store::KeyRange::Prefix(prefix), at, limit});
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? std::move(*result) : RangeResult{};
}

Changes StoreConformance::Next(store::BlockingWatch& watch) {
  auto next = watch.Next(std::chrono::seconds(20));
  EXPECT_TRUE(next.ok()) << next.status().text();
  if (!next.ok()) return {};
  EXPECT_TRUE(next->has_value()) << "no change came";
  return next->value_or(Changes{});
}

std::vector<std::string> StoreConformance::Text(const Changes& changes) {
  std::vector<std::string> text;
  for (const auto& change : changes.changes) {
    text.push_back(change.deleted ? "del " + change.entry.key
                                  : "put " + change.entry.key + "=" + change.entry.value);
    EXPECT_EQ(change.entry.mod_revision, changes.revision);
  }
  std::sort(text.begin(), text.end(),
            [](const auto& a, const auto& b) { return a.substr(4) < b.substr(4); });
  return text;
}

}  // namespace rocegw::testing
