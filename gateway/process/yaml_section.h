// SPDX-License-Identifier: Apache-2.0
// Reader of one mapping of a YAML document, key by key. Every value is checked when it is read,
// every problem is reported with file and line, and Finish() reports unknown keys. Problems are
// collected, so that one run shows all of them. Start-up only, one thread. An absent key leaves its
// target unchanged.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rocegw::process {

// List of problems, "FILE:LINE: text", in the order found.
class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}

  // `line` counts from 1; 0: unknown.
  void Add(int line, const std::string& text);
  const std::vector<std::string>& lines() const { return lines_; }
  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  std::string file_;
  std::vector<std::string> lines_;
};

class Section {
 public:
  // `path` is the dotted name of this mapping ("dpdk", "ports[0]"), empty at the top.
  Section(Problems& problems, const YAML::Node& node, std::string path);

  void Unsigned(std::string_view key, uint64_t least, uint64_t most, uint64_t& target);
  void Unsigned(std::string_view key, uint32_t least, uint32_t most, uint32_t& target);
  // Reads a number of bytes: "4096", "64KiB", "16MiB", "2GiB".
  void Bytes(std::string_view key, uint64_t least, uint64_t most, uint64_t& target);
  void Bool(std::string_view key, bool& target);
  // Returns what is wrong with the value, or "".
  using TextCheck = std::function<std::string(const std::string&)>;
  void Text(std::string_view key, const TextCheck& check, std::string& target);
  template <typename E>
  void Choice(std::string_view key, const std::vector<std::pair<const char*, E>>& choices,
              E& target) {
    std::vector<const char*> names;
    names.reserve(choices.size());
    for (const auto& choice : choices) names.push_back(choice.first);
    const int found = ChoiceIndex(key, names);
    if (found >= 0) target = choices[static_cast<size_t>(found)].second;
  }
  void Nested(std::string_view key, const std::function<void(Section&)>& read);
  void NestedList(std::string_view key, const std::function<void(Section&)>& read_one);
  // `read` returns what is wrong with the element, or "".
  void TextList(std::string_view key, const std::function<std::string(const std::string&)>& read);

  // Reads the value as JSON; scalars other than true, false and octal numbers (0660) become texts.
  // Each element of a list is passed separately: f(json, line).
  void Json(std::string_view key, const std::function<void(const std::string&, int)>& f);

  bool Has(std::string_view key) const;
  // Reports a problem with this mapping, or with the value of one of its keys.
  void Problem(const std::string& text);
  void ProblemAt(std::string_view key, const std::string& text);
  int line() const { return LineOf(node_); }
  // Reports every key that none of the calls above named.
  void Finish();

 private:
  static int LineOf(const YAML::Node& node);
  // Reads a scalar if the key is present; reports a value of another kind.
  bool Scalar(std::string_view key, std::string& text);
  YAML::Node Find(std::string_view key);
  int ChoiceIndex(std::string_view key, const std::vector<const char*>& names);
  std::string Name(std::string_view key) const;

  Problems& problems_;
  YAML::Node node_;
  std::string path_;
  std::vector<std::string> known_;
};

}  // namespace rocegw::process
