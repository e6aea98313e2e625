// SPDX-License-Identifier: Apache-2.0
// Pages of a list that is read anew for each page. Rows have a 64-bit key, a page is the next rows
// by key, and the token names list and last key. Tokens are opaque to callers, so any other token
// is refused.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rocegw::service {

inline constexpr uint32_t kDefaultPageSize = 100;
inline constexpr uint32_t kMaxPageSize = 1000;

// Returns the page size: 0 means the default, larger sizes than the maximum mean the maximum.
// Nothing for a negative size.
std::optional<uint32_t> EffectivePageSize(int32_t asked);

// Start of a page: rows with a key above `last`; empty: the first page.
struct Position {
  bool started = false;
  uint64_t last = 0;
};
std::string MakePageToken(char list, uint64_t last);
std::optional<Position> ReadPageToken(char list, const std::string& token);

// Keeps the page's rows in `rows`, in key order. Returns true if more follow. key(row) is unique.
template <typename Row, typename Key>
bool CutPage(std::vector<Row>& rows, const Position& position, uint32_t page_size, Key key) {
  std::erase_if(rows,
                [&](const Row& row) { return position.started && key(row) <= position.last; });
  const auto by_key = [&](const Row& a, const Row& b) { return key(a) < key(b); };
  if (rows.size() <= page_size) {
    std::sort(rows.begin(), rows.end(), by_key);
    return false;
  }
  std::partial_sort(rows.begin(), rows.begin() + page_size, rows.end(), by_key);
  rows.erase(rows.begin() + page_size, rows.end());
  return true;
}

}  // namespace rocegw::service
