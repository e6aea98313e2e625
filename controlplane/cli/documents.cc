// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/documents.h"

#include <google/protobuf/util/json_util.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

namespace rocegw::cli {
namespace {

using Json = nlohmann::ordered_json;

Json Tree(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  std::string text;
  // Fails only for Any and malformed well-known types, which these messages do not have.
  if (!google::protobuf::util::MessageToJsonString(message, &text, options).ok()) return {};
  return Json::parse(text);
}

Json Tree(const NamedMessages& messages) {
  Json tree = Json::object();
  for (const auto& [key, message] : messages) tree[key] = Tree(*message);
  return tree;
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
    out << YAML::DoubleQuoted << tree.get<std::string>();
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

}  // namespace rocegw::cli
