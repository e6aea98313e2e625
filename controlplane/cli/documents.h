// SPDX-License-Identifier: Apache-2.0
// Answers for programs: proto3 JSON (64-bit numbers are strings there), and the same tree as YAML.
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

}  // namespace rocegw::cli
