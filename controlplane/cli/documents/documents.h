// SPDX-License-Identifier: Apache-2.0
// Answers for programs: proto3 JSON (64-bit numbers are strings), and the same tree as YAML.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <utility>
#include <vector>

namespace rocegw::cli {

std::string JsonText(const google::protobuf::Message& message);
std::string YamlText(const google::protobuf::Message& message);

// Several answers as one document, each under its key.
using NamedMessages = std::vector<std::pair<std::string, const google::protobuf::Message*>>;
std::string JsonText(const NamedMessages& messages);
std::string YamlText(const NamedMessages& messages);

// Print objects without default fields, as `apply` reads them. JSON: a list under `key`; YAML: a
// document each.
using Messages = std::vector<const google::protobuf::Message*>;
std::string ObjectsJson(const std::string& key, const Messages& objects);
std::string ObjectsYaml(const Messages& objects);
std::string ObjectJson(const google::protobuf::Message& object);
// Returns one line: {"change": "changed", "object": {...}}.
std::string ChangeJson(const std::string& change, const google::protobuf::Message& object);

}  // namespace rocegw::cli
