// SPDX-License-Identifier: Apache-2.0
// Text tables: columns as wide as their content, two blanks apart, numbers right-aligned. With a
// limit, marked columns are truncated (".." at the end) until a line fits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rocegw::cli {

enum class Column : uint8_t { kLeft, kRight, kCut };  // kCut: left-aligned, may be truncated

class Table {
 public:
  void AddColumn(std::string title, Column kind) { columns_.push_back({std::move(title), kind}); }
  // Cells may contain foreign text: control characters are escaped (gateway/base/foreign_text.h).
  void AddRow(std::vector<std::string> cells);
  size_t rows() const { return rows_.size(); }

  // `limit`: characters per line, 0: none. `paint`: highlights words in colour.
  std::string Text(size_t limit, bool paint = false) const;

  // For continuous output: returns the rows since the last call, in columns at least as wide as
  // before; the titles come with the first call.
  std::string NextText(size_t limit, bool paint = false);

 private:
  struct Head {
    std::string title;
    Column kind;
  };
  std::vector<size_t> Widths(size_t limit) const;
  std::string Lines(const std::vector<size_t>& widths, bool titles, bool paint) const;

  std::vector<Head> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> last_widths_;
};

// Replaces an empty cell by "-".
inline std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }
template <typename Texts>
std::string Joined(const Texts& texts, const char* separator = ",") {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : separator) + text;
  return OrDash(all);
}
// "17", "4.0KiB", "1.5GiB".
std::string BytesText(uint64_t bytes);
// "12s", "3m05s", "4h07m", "2d03h".
std::string AgeText(int64_t seconds);

}  // namespace rocegw::cli
