// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/documents/documents.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

namespace rocegw::cli {
namespace {

using Json = nlohmann::ordered_json;

// Sorts map entries, whose order differs from call to call.
void SortMaps(const google::protobuf::Descriptor& type, Json& tree) {
  if (!tree.is_object()) return;
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    const auto at = tree.find(field.json_name());
    if (field.message_type() == nullptr || at == tree.end()) continue;
    if (field.is_map()) {
      std::map<std::string, Json> sorted;
      for (const auto& [key, value] : at->items()) sorted.emplace(key, value);
      *at = Json::object();
      for (auto& [key, value] : sorted) (*at)[key] = std::move(value);
    } else if (field.is_repeated()) {
      for (Json& element : *at) SortMaps(*field.message_type(), element);
    } else {
      SortMaps(*field.message_type(), *at);
    }
  }
}

Json Tree(const google::protobuf::Message& message, bool defaults = true) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = defaults;
  std::string text;
  // Fails only for Any and malformed well-known types, which these messages do not contain.
  if (!google::protobuf::util::MessageToJsonString(message, &text, options).ok()) return {};
  Json tree = Json::parse(text);
  SortMaps(*message.GetDescriptor(), tree);
  return tree;
}

Json Tree(const NamedMessages& messages) {
  Json tree = Json::object();
  for (const auto& [key, message] : messages) tree[key] = Tree(*message);
  return tree;
}

// Returns true if YAML would read the text as another type.
bool NeedsQuotes(const std::string& text) {
  static constexpr std::string_view kWords[] = {"true", "false", "null", "yes", "no",
                                                "on",   "off",   "y",    "n"};
  if (text.empty() || (std::isalpha(static_cast<unsigned char>(text[0])) == 0 && text[0] != '/')) {
    return true;
  }
  std::string lower;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) == 0 && std::string_view("_./@-").find(c) == std::string_view::npos) {
      return true;
    }
    lower += static_cast<char>(std::tolower(byte));
  }
  return std::ranges::count(kWords, lower) != 0;
}

void Emit(const Json& tree, YAML::Emitter& out) {
  if (tree.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, value] : tree.items()) {
      out << YAML::Key << key << YAML::Value;
      Emit(value, out);
    }
    out << YAML::EndMap;
  } else if (tree.is_array()) {
    if (tree.empty()) out << YAML::Flow;
    out << YAML::BeginSeq;
    for (const auto& value : tree) Emit(value, out);
    out << YAML::EndSeq;
  } else if (tree.is_string()) {
    const auto text = tree.get<std::string>();
    if (NeedsQuotes(text)) out << YAML::DoubleQuoted;
    out << text;
  } else {
    out << tree.dump();
  }
}

std::string Yaml(const Json& tree) {
  YAML::Emitter out;
  Emit(tree, out);
  return std::string(out.c_str(), out.size()) + "\n";
}

constexpr int kIndent = 2;

}  // namespace

std::string JsonText(const google::protobuf::Message& message) {
  return Tree(message).dump(kIndent) + "\n";
}
std::string JsonText(const NamedMessages& messages) { return Tree(messages).dump(kIndent) + "\n"; }
std::string YamlText(const google::protobuf::Message& message) { return Yaml(Tree(message)); }
std::string YamlText(const NamedMessages& messages) { return Yaml(Tree(messages)); }

std::string ObjectJson(const google::protobuf::Message& object) {
  return Tree(object, false).dump(kIndent) + "\n";
}

std::string ObjectsJson(const std::string& key, const Messages& objects) {
  Json list = Json::array();
  for (const google::protobuf::Message* object : objects) list.push_back(Tree(*object, false));
  return Json{{key, std::move(list)}}.dump(kIndent) + "\n";
}

std::string ObjectsYaml(const Messages& objects) {
  std::string text;
  for (const google::protobuf::Message* object : objects) {
    text += (text.empty() ? "" : "---\n") + Yaml(Tree(*object, false));
  }
  return text;
}

std::string ChangeJson(const std::string& change, const google::protobuf::Message& object) {
  return Json{{"change", change}, {"object", Tree(object, false)}}.dump() + "\n";
}

}  // namespace rocegw::cli
