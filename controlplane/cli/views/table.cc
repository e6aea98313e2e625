// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/views/table.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "gateway/base/foreign_text.h"

namespace rocegw::cli {
namespace {

constexpr size_t kGap = 2;
// Least width of a truncated column, dots included.
constexpr size_t kLeastCut = 6;

// Words for states that are highlighted.
constexpr std::pair<std::string_view, std::string_view> kColours[] = {
    {"DOWN", "31"},      {"ERR", "31"},       {"failed", "31"}, {"disconnected", "31"},
    {"unadopted", "31"}, {"rejecting", "31"}, {"behind", "33"}, {"draining", "33"},
    {"drained", "33"},   {"ok", "32"},        {"done", "32"},   {"RTS", "32"},
    {"deleted", "31"},   {"no-daemon", "31"}};

std::string Painted(const std::string& cell) {
  for (const auto& [word, colour] : kColours) {
    if (cell == word) return "\x1b[" + std::string(colour) + "m" + cell + "\x1b[0m";
  }
  return cell;
}

bool ContinuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Returns the number of characters of a cell, each one column wide.
size_t Length(const std::string& cell) {
  return cell.size() - static_cast<size_t>(std::ranges::count_if(cell, ContinuesCharacter));
}

std::string FirstCharacters(const std::string& cell, size_t count) {
  size_t end = 0;
  while (end < cell.size() && (count > 0 || ContinuesCharacter(cell[end]))) {
    if (!ContinuesCharacter(cell[end])) --count;
    ++end;
  }
  return cell.substr(0, end);
}

void AppendCell(std::string& line, const std::string& cell, size_t width, bool right, bool paint) {
  if (Length(cell) > width) {
    line += FirstCharacters(cell, width - 2) + "..";
    return;
  }
  const std::string space(width - Length(cell), ' ');
  if (right) line += space;
  line += paint ? Painted(cell) : cell;
  if (!right) line += space;
}

}  // namespace

void Table::AddRow(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = ForeignText(cell);
  rows_.push_back(std::move(cells));
}

std::vector<size_t> Table::Widths(size_t limit) const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t width = columns_[c].title.size();
    if (c < last_widths_.size()) width = std::max(width, last_widths_[c]);
    for (const auto& row : rows_) width = std::max(width, Length(row[c]));
    widths.push_back(width);
  }
  size_t total = kGap * (columns_.size() - 1);
  for (const size_t width : widths) total += width;
  // The last column is truncated first.
  for (size_t c = columns_.size(); limit != 0 && c-- > 0;) {
    if (columns_[c].kind != Column::kCut || total <= limit || widths[c] <= kLeastCut) continue;
    const size_t least = std::max(kLeastCut, columns_[c].title.size());
    const size_t width = std::max(least, widths[c] - std::min(widths[c], total - limit));
    total -= widths[c] - std::min(widths[c], width);
    widths[c] = std::min(widths[c], width);
  }
  return widths;
}

std::string Table::Lines(const std::vector<size_t>& widths, bool titles, bool paint) const {
  std::string text;
  const auto append_line = [&](const auto& cell_of, bool painted) {
    std::string line;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (c != 0) line.append(kGap, ' ');
      AppendCell(line, cell_of(c), widths[c], columns_[c].kind == Column::kRight, painted);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  if (titles) append_line([&](size_t c) { return columns_[c].title; }, false);
  for (const auto& row : rows_) append_line([&](size_t c) { return row[c]; }, paint);
  return text;
}

std::string Table::Text(size_t limit, bool paint) const {
  return Lines(Widths(limit), true, paint);
}

std::string Table::NextText(size_t limit, bool paint) {
  const bool first = last_widths_.empty();
  last_widths_ = Widths(limit);
  std::string text = Lines(last_widths_, first, paint);
  rows_.clear();
  return text;
}

std::string BytesText(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%s", value, kUnits[unit]);
  return text;
}

std::string AgeText(int64_t seconds) {
  seconds = std::max<int64_t>(seconds, 0);
  const auto two = [](int64_t high, char high_unit, int64_t low, char low_unit) {
    char text[48];
    std::snprintf(text, sizeof text, "%lld%c%02lld%c", static_cast<long long>(high), high_unit,
                  static_cast<long long>(low), low_unit);
    return std::string(text);
  };
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return two(seconds / 60, 'm', seconds % 60, 's');
  if (seconds < 86400) return two(seconds / 3600, 'h', seconds / 60 % 60, 'm');
  return two(seconds / 86400, 'd', seconds / 3600 % 24, 'h');
}

}  // namespace rocegw::cli
