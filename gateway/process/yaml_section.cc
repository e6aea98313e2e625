// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/yaml_section.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <set>

namespace rocegw::process {
namespace {

// Returns the number of edits between two words, to suggest the key for a misspelt one.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

bool ParseUnsigned(std::string_view text, uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::string BytesText(uint64_t bytes) {
  static constexpr std::pair<uint64_t, const char*> kUnits[] = {
      {1ull << 30, "GiB"}, {1ull << 20, "MiB"}, {1ull << 10, "KiB"}};
  for (const auto& [size, unit] : kUnits) {
    if (bytes >= size && bytes % size == 0) return std::to_string(bytes / size) + unit;
  }
  return std::to_string(bytes);
}

void AppendJsonText(const std::string& text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += c;
    }
  }
  out += '"';
}

void AppendJson(const YAML::Node& node, std::string& out) {
  if (node.IsMap()) {
    out += '{';
    for (const auto& entry : node) {
      if (out.back() != '{') out += ',';
      AppendJsonText(entry.first.IsScalar() ? entry.first.Scalar() : "", out);
      out += ':';
      AppendJson(entry.second, out);
    }
    out += '}';
  } else if (node.IsSequence()) {
    out += '[';
    for (const auto& element : node) {
      if (out.back() != '[') out += ',';
      AppendJson(element, out);
    }
    out += ']';
  } else if (node.IsScalar()) {
    // Tag "!": the text was in quotes.
    const std::string& text = node.Scalar();
    const bool plain = node.Tag() != "!";
    uint32_t octal = 0;
    if (plain && (text == "true" || text == "false")) {
      out += text;
    } else if (plain && text.size() > 1 && text[0] == '0' &&
               std::from_chars(text.data(), text.data() + text.size(), octal, 8).ptr ==
                   text.data() + text.size()) {
      // Modes are octal, such as 0660, throughout the file.
      out += std::to_string(octal);
    } else {
      AppendJsonText(text, out);
    }
  } else {
    out += "null";
  }
}

}  // namespace

void Problems::Add(int line, const std::string& text) {
  lines_.push_back(line > 0 ? file_ + ":" + std::to_string(line) + ": " + text
                            : file_ + ": " + text);
}

Section::Section(Problems& problems, const YAML::Node& node, std::string path)
    : problems_(problems), node_(node), path_(std::move(path)) {
  std::set<std::string> seen;
  for (const auto& entry : node_) {
    if (!entry.first.IsScalar()) {
      problems_.Add(LineOf(entry.first), "a key must be a word");
    } else if (!seen.insert(entry.first.Scalar()).second) {
      problems_.Add(LineOf(entry.first), "key '" + Name(entry.first.Scalar()) + "' is given twice");
    }
  }
}

int Section::LineOf(const YAML::Node& node) {
  const YAML::Mark mark = node.Mark();
  return mark.is_null() ? 0 : mark.line + 1;
}

std::string Section::Name(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

YAML::Node Section::Find(std::string_view key) {
  known_.emplace_back(key);
  for (const auto& entry : node_) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key) return entry.second;
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

bool Section::Has(std::string_view key) const {
  return std::any_of(node_.begin(), node_.end(), [key](const auto& entry) {
    return entry.first.IsScalar() && entry.first.Scalar() == key;
  });
}

void Section::Problem(const std::string& text) {
  problems_.Add(line(), path_.empty() ? text : path_ + ": " + text);
}

void Section::ProblemAt(std::string_view key, const std::string& text) {
  int at = line();
  for (const auto& entry : node_) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key) at = LineOf(entry.first);
  }
  problems_.Add(at, Name(key) + ": " + text);
}

bool Section::Scalar(std::string_view key, std::string& text) {
  const YAML::Node value = Find(key);
  if (!value.IsDefined()) return false;
  if (value.IsNull()) {
    ProblemAt(key, "the value is missing");
    return false;
  }
  if (!value.IsScalar()) {
    ProblemAt(key, "one value is expected here, not a list or a mapping");
    return false;
  }
  text = value.Scalar();
  return true;
}

void Section::Unsigned(std::string_view key, uint64_t least, uint64_t most, uint64_t& target) {
  std::string text;
  if (!Scalar(key, text)) return;
  uint64_t value = 0;
  if (!ParseUnsigned(text, value)) {
    ProblemAt(key, "'" + text + "' is not a whole number");
  } else if (value < least || value > most) {
    ProblemAt(key, text + " is out of range, " + std::to_string(least) + " to " +
                       std::to_string(most) + " is allowed");
  } else {
    target = value;
  }
}

void Section::Unsigned(std::string_view key, uint32_t least, uint32_t most, uint32_t& target) {
  uint64_t value = target;
  Unsigned(key, uint64_t{least}, uint64_t{most}, value);
  target = static_cast<uint32_t>(value);
}

void Section::Bytes(std::string_view key, uint64_t least, uint64_t most, uint64_t& target) {
  std::string text;
  if (!Scalar(key, text)) return;
  std::string_view digits = text;
  unsigned shift = 0;
  for (const auto& [suffix, bits] :
       {std::pair<std::string_view, unsigned>{"KiB", 10}, {"MiB", 20}, {"GiB", 30}}) {
    if (digits.ends_with(suffix)) {
      digits.remove_suffix(suffix.size());
      shift = bits;
      break;
    }
  }
  uint64_t value = 0;
  if (!ParseUnsigned(digits, value) || value > (UINT64_MAX >> shift)) {
    ProblemAt(key, "'" + text + "' is not a number of bytes (like 65536, 64KiB, 16MiB, 2GiB)");
    return;
  }
  value <<= shift;
  if (value < least || value > most) {
    ProblemAt(key, text + " is out of range, " + BytesText(least) + " to " + BytesText(most) +
                       " is allowed");
    return;
  }
  target = value;
}

void Section::Bool(std::string_view key, bool& target) {
  std::string text;
  if (!Scalar(key, text)) return;
  if (text == "true" || text == "false") {
    target = text == "true";
  } else {
    ProblemAt(key, "'" + text + "' is neither true nor false");
  }
}

void Section::Text(std::string_view key, const TextCheck& check, std::string& target) {
  std::string text;
  if (!Scalar(key, text)) return;
  const std::string wrong = check(text);
  if (wrong.empty()) {
    target = text;
  } else {
    ProblemAt(key, wrong);
  }
}

int Section::ChoiceIndex(std::string_view key, const std::vector<const char*>& names) {
  std::string text;
  if (!Scalar(key, text)) return -1;
  std::string all;
  for (size_t i = 0; i < names.size(); ++i) {
    if (text == names[i]) return static_cast<int>(i);
    all += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
  }
  ProblemAt(key, "'" + text + "' is not known, use " + all);
  return -1;
}

void Section::Nested(std::string_view key, const std::function<void(Section&)>& read) {
  const YAML::Node value = Find(key);
  if (!value.IsDefined()) return;
  if (!value.IsMap()) {
    ProblemAt(key, "a mapping (key: value) is expected here");
    return;
  }
  Section section(problems_, value, Name(key));
  read(section);
  section.Finish();
}

void Section::NestedList(std::string_view key, const std::function<void(Section&)>& read_one) {
  const YAML::Node value = Find(key);
  if (!value.IsDefined()) return;
  if (!value.IsSequence()) {
    ProblemAt(key, "a list (- ...) is expected here");
    return;
  }
  size_t index = 0;
  for (const auto& element : value) {
    std::string name = Name(key) + "[" + std::to_string(index++) + "]";
    if (!element.IsMap()) {
      problems_.Add(LineOf(element), name + ": a mapping (key: value) is expected here");
      continue;
    }
    Section section(problems_, element, std::move(name));
    read_one(section);
    section.Finish();
  }
}

void Section::TextList(std::string_view key,
                       const std::function<std::string(const std::string&)>& read) {
  const YAML::Node value = Find(key);
  if (!value.IsDefined()) return;
  if (!value.IsSequence()) {
    ProblemAt(key, "a list (- ...) is expected here");
    return;
  }
  size_t index = 0;
  for (const auto& element : value) {
    std::string problem = Name(key) + "[" + std::to_string(index++) + "]: ";
    const std::string wrong =
        element.IsScalar() ? read(element.Scalar()) : "one value is expected here";
    if (wrong.empty()) continue;
    problem += wrong;
    problems_.Add(LineOf(element), problem);
  }
}

void Section::Json(std::string_view key, const std::function<void(const std::string&, int)>& f) {
  const YAML::Node value = Find(key);
  if (!value.IsDefined()) return;
  const auto one = [&](const YAML::Node& node) {
    std::string json;
    AppendJson(node, json);
    f(json, LineOf(node));
  };
  if (!value.IsSequence()) return one(value);
  for (const auto& element : value) one(element);
}

void Section::Finish() {
  for (const auto& entry : node_) {
    if (!entry.first.IsScalar()) continue;
    const std::string& key = entry.first.Scalar();
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    std::string hint;
    size_t best = 3;
    for (const std::string& known : known_) {
      const size_t distance = !key.empty() && known.starts_with(key) ? 0 : EditDistance(key, known);
      if (distance < best) {
        best = distance;
        hint = " (did you mean '" + known + "'?)";
      }
    }
    problems_.Add(LineOf(entry.first), "unknown key '" + Name(key) + "'" + hint);
  }
}

}  // namespace rocegw::process
