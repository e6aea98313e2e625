// SPDX-License-Identifier: Apache-2.0
// Reads the fields of a foreign JSON object: each with its type and range, unknown ones refused.
// The first problem stays; later reads return defaults. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "controlplane/migration/model/names.h"

namespace rocegw::migration {

class JsonFields {
 public:
  // `where`: path of the object for problem texts, "nodes[3]"; empty: the document.
  JsonFields(const nlohmann::json& object, std::string where, std::string& problem);
  // Refuses fields that no call has read.
  void Finish();

  std::string Text(const char* field, size_t longest = 4096);
  std::string Name(const char* field);  // required
  std::vector<std::string> Names(const char* field, size_t most);
  std::map<std::string, std::string> Labels(const char* field);
  bool Flag(const char* field, bool otherwise);
  int64_t Number(const char* field, int64_t otherwise, int64_t least, int64_t most);
  // nullptr: not there, or no array.
  const nlohmann::json* Array(const char* field, size_t most);
  const nlohmann::json* Object(const char* field);

  template <typename Enum>
  Enum Word(const char* field, Enum otherwise) {
    const nlohmann::json* const value = Find(field);
    if (value == nullptr) return otherwise;
    if (value->is_string()) {
      if (const auto found = FromWord<Enum>(value->template get_ref<const std::string&>()))
        return *found;
    }
    Complain(field, "is not a word that is known here");
    return otherwise;
  }

  bool ok() const { return problem_.empty(); }
  void Complain(const std::string& field, const std::string& text);

 private:
  const nlohmann::json* Find(const char* field);

  const nlohmann::json& object_;
  const std::string where_;
  std::string& problem_;
  std::set<std::string> read_;
};

// Parses one JSON object of at most `most` bytes. `problem`: what is wrong, one line.
nlohmann::json ParseJsonObject(std::string_view text, size_t most, std::string& problem);

}  // namespace rocegw::migration
