// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/plan/gate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "gateway/base/lower_case.h"

namespace rocegw::migration {
namespace {

constexpr auto kOperators = std::to_array<std::string_view>({"==", "!=", "<=", ">=", "<", ">"});

bool IsWordByte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_' || byte == ':';
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Place of the only comparison outside of parentheses.
struct Comparison {
  size_t at = 0;
  size_t size = 0;
};

class Scanner {
 public:
  Scanner(std::string_view text, std::string& problem) : text_(text), problem_(problem) {}

  std::optional<Comparison> Find() {
    while (at_ < text_.size() && problem_.empty()) Step();
    if (problem_.empty() && depth_ != 0) problem_ = "its parentheses do not match";
    if (problem_.empty() && !found_.has_value())
      problem_ = "it is no comparison, such as rate(errors_total[5m]) < 1";
    return problem_.empty() ? found_ : std::nullopt;
  }

 private:
  void Step() {
    const char byte = text_[at_];
    if (byte == '"' || byte == '\'' || byte == '`') return SkipString(byte);
    if (byte == '#') {
      problem_ = "it has a comment";
    } else if (byte == '(' || byte == '[' || byte == '{') {
      ++depth_;
    } else if (byte == ')' || byte == ']' || byte == '}') {
      if (--depth_ < 0) problem_ = "its parentheses do not match";
    } else if (depth_ == 0) {
      return StepOutside();
    }
    ++at_;
  }

  void SkipString(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && quote != '`') ++at_;
    }
    if (at_ >= text_.size()) problem_ = "a string does not end";
    ++at_;
  }

  void StepOutside() {
    if (IsWordByte(text_[at_])) {
      const size_t begin = at_;
      while (at_ < text_.size() && IsWordByte(text_[at_])) ++at_;
      // PromQL takes its keywords in either case.
      const std::string word = LowerCase(text_.substr(begin, at_ - begin));
      if (word == "and" || word == "or" || word == "unless")
        problem_ = "it is more than one comparison: make a gate of each";
      return;
    }
    const auto found = std::ranges::find_if(
        kOperators, [&](std::string_view op) { return text_.substr(at_).starts_with(op); });
    if (found == kOperators.end()) {
      ++at_;
      return;
    }
    if (found_.has_value()) problem_ = "it is more than one comparison: make a gate of each";
    found_ = Comparison{.at = at_, .size = found->size()};
    at_ += found->size();
  }

  const std::string_view text_;
  std::string& problem_;
  size_t at_ = 0;
  int depth_ = 0;
  std::optional<Comparison> found_;
};

}  // namespace

Gate ReadGate(std::string_view text, std::string& problem) {
  problem.clear();
  if (text.size() > kLongestGate) {
    problem = "it is longer than " + std::to_string(kLongestGate) + " bytes";
    return {};
  }
  const auto comparison = Scanner(text, problem).Find();
  if (!comparison.has_value()) return {};
  const std::string_view left = Trimmed(text.substr(0, comparison->at));
  std::string_view right = Trimmed(text.substr(comparison->at + comparison->size));
  if (LowerCase(right.substr(0, 4)) == "bool" && (right.size() == 4 || !IsWordByte(right[4])))
    right = Trimmed(right.substr(4));
  if (left.empty() || right.empty()) {
    problem = "one side of its comparison is empty";
    return {};
  }
  Gate gate{.query = std::string(left), .left = std::string(left)};
  gate.query += " " + std::string(text.substr(comparison->at, comparison->size)) + " bool " +
                std::string(right);
  return gate;
}

}  // namespace rocegw::migration
