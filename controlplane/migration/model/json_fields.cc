// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/model/json_fields.h"

#include "controlplane/migration/model/inventory.h"
#include "gateway/base/foreign_text.h"

namespace rocegw::migration {
namespace {

constexpr size_t kMostLabels = 32;
constexpr int kDeepest = 16;

}  // namespace

JsonFields::JsonFields(const nlohmann::json& object, std::string where, std::string& problem)
    : object_(object), where_(std::move(where)), problem_(problem) {
  if (!object_.is_object() && problem_.empty()) problem_ = where_ + " is not an object";
}

void JsonFields::Complain(const std::string& field, const std::string& text) {
  if (!problem_.empty()) return;
  problem_ = where_ + (where_.empty() ? "" : ".") + ForeignText(field.substr(0, 64)) + " " + text;
}

void JsonFields::Finish() {
  if (!ok()) return;
  for (const auto& [field, value] : object_.items()) {
    if (!read_.contains(field)) return Complain(field, "is not a field that is known here");
  }
}

const nlohmann::json* JsonFields::Find(const char* field) {
  if (!ok()) return nullptr;
  read_.insert(field);
  const auto found = object_.find(field);
  return found == object_.end() ? nullptr : &*found;
}

std::string JsonFields::Text(const char* field, size_t longest) {
  const nlohmann::json* const value = Find(field);
  if (value == nullptr) return {};
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    if (text.size() <= longest) return text;
  }
  Complain(field, "is not a text of at most " + std::to_string(longest) + " bytes");
  return {};
}

std::string JsonFields::Name(const char* field) {
  std::string name = Text(field, 253);
  if (!IsName(name)) Complain(field, "must be 1 to 253 letters, digits, and -._:");
  return name;
}

std::vector<std::string> JsonFields::Names(const char* field, size_t most) {
  std::vector<std::string> names;
  const nlohmann::json* const array = Array(field, most);
  if (array == nullptr) return names;
  for (const nlohmann::json& value : *array) {
    if (!value.is_string() || !IsName(value.get_ref<const std::string&>())) {
      Complain(field, "must hold names of 1 to 253 letters, digits, and -._:");
      return {};
    }
    names.push_back(value.get<std::string>());
  }
  return names;
}

std::map<std::string, std::string> JsonFields::Labels(const char* field) {
  std::map<std::string, std::string> labels;
  const nlohmann::json* const object = Object(field);
  if (object == nullptr) return labels;
  for (const auto& [key, value] : object->items()) {
    if (labels.size() == kMostLabels || !IsName(key) || !value.is_string() ||
        !IsName(value.get_ref<const std::string&>())) {
      Complain(field, "must hold at most 32 names with names as values");
      return {};
    }
    labels[key] = value.get<std::string>();
  }
  return labels;
}

bool JsonFields::Flag(const char* field, bool otherwise) {
  const nlohmann::json* const value = Find(field);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  Complain(field, "must be true or false");
  return otherwise;
}

int64_t JsonFields::Number(const char* field, int64_t otherwise, int64_t least, int64_t most) {
  const nlohmann::json* const value = Find(field);
  if (value == nullptr) return otherwise;
  if (value->is_number_integer() &&
      !(value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))) {
    const auto number = value->get<int64_t>();
    if (number >= least && number <= most) return number;
  }
  Complain(field,
           "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return otherwise;
}

const nlohmann::json* JsonFields::Array(const char* field, size_t most) {
  const nlohmann::json* const value = Find(field);
  if (value == nullptr) return nullptr;
  if (value->is_array() && value->size() <= most) return value;
  Complain(field, "must be a list of at most " + std::to_string(most));
  return nullptr;
}

const nlohmann::json* JsonFields::Object(const char* field) {
  const nlohmann::json* const value = Find(field);
  if (value == nullptr) return nullptr;
  if (value->is_object()) return value;
  Complain(field, "must be an object");
  return nullptr;
}

nlohmann::json ParseJsonObject(std::string_view text, size_t most, std::string& problem) {
  if (text.size() > most) {
    problem = "more than " + std::to_string(most) + " bytes";
    return nlohmann::json::object();
  }
  // The parser recurses for each level, so that deep nesting by a hostile writer costs stack.
  bool too_deep = false;
  const auto watch_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    too_deep = too_deep || depth > kDeepest;
    return depth <= kDeepest;
  };
  nlohmann::json parsed = nlohmann::json::parse(text, watch_depth, false);
  if (too_deep) {
    problem = "nested deeper than " + std::to_string(kDeepest);
  } else if (parsed.is_discarded()) {
    problem = "not JSON";
  } else if (!parsed.is_object()) {
    problem = "not a JSON object";
  }
  return problem.empty() ? parsed : nlohmann::json::object();
}

}  // namespace rocegw::migration
