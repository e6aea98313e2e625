// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/verbs_script/script.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "tests/interop/rdma_check/failure.h"

namespace rocegw::interop {
namespace {

uint64_t Number(const std::string& text) {
  size_t used = 0;
  uint64_t value = 0;
  try {
    value = std::stoull(text, &used, 0);
  } catch (const std::logic_error&) {
    used = std::string::npos;
  }
  Check(used == text.size(), "'", text, "' is no number");
  return value;
}

}  // namespace

ScriptLine ScriptLine::Parse(std::string_view text) {
  static constexpr std::array<std::string_view, 6> kFlags = {"inline", "fence",  "solicited",
                                                             "quiet",  "signal", "srq"};
  std::istringstream in{std::string(text)};
  ScriptLine line;
  std::string word;
  Check(static_cast<bool>(in >> word), "empty line");
  if (word == "L" || word == "R") {
    line.side = word[0];
    Check(static_cast<bool>(in >> word), "a side without a verb");
  }
  line.verb = word;
  while (in >> word) {
    const size_t equals = word.find('=');
    if (equals != std::string::npos) {
      line.values_[word.substr(0, equals)] = word.substr(equals + 1);
    } else if (std::find(kFlags.begin(), kFlags.end(), word) != kFlags.end()) {
      line.values_[word] = "";
    } else {
      line.words_.push_back(word);
    }
  }
  return line;
}

const std::string& ScriptLine::word(size_t i) const {
  Check(i < words_.size(), verb, " lacks a word");
  return words_[i];
}

uint64_t ScriptLine::number(size_t i) const { return Number(word(i)); }

std::string ScriptLine::text(const std::string& name, const std::string& otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() ? otherwise : found->second;
}

uint64_t ScriptLine::value(const std::string& name, uint64_t otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() ? otherwise : Number(found->second);
}

std::vector<Extent> ScriptLine::pieces(size_t i) const {
  std::vector<Extent> pieces;
  if (word(i) == "-") return pieces;
  std::istringstream in(word(i));
  std::string piece;
  while (std::getline(in, piece, ',')) {
    const size_t plus = piece.find('+');
    Check(plus != std::string::npos, "'", piece, "' is no piece of memory");
    pieces.push_back({static_cast<uint32_t>(Number(piece.substr(0, plus))),
                      static_cast<uint32_t>(Number(piece.substr(plus + 1)))});
  }
  return pieces;
}

std::vector<ScriptLine> Lines(const Script& script) {
  std::vector<ScriptLine> lines;
  std::istringstream in(script.text);
  std::string text;
  while (std::getline(in, text)) {
    if (text.find_first_not_of(' ') != std::string::npos) lines.push_back(ScriptLine::Parse(text));
  }
  return lines;
}

std::vector<Script> AllScripts() {
  std::vector<Script> all;
  for (auto&& part : {SendScripts(), RemoteMemoryScripts(), ErrorScripts(), SharedReceiveScripts(),
                      UnreliableScripts()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace rocegw::interop
