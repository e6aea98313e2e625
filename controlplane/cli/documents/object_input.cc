// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/documents/object_input.h"

#include <google/protobuf/util/field_mask_util.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

#include "controlplane/cli/documents/message_reader.h"

namespace rocegw::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FieldMask;
using google::protobuf::Message;
using google::protobuf::util::FieldMaskUtil;

constexpr std::string_view kLabels = "labels.";

CallResult Wrong(const std::string& source, const std::vector<std::string>& problems) {
  std::string text;
  for (const std::string& problem : problems) {
    text += (text.empty() ? "" : "\n  ") + (source.empty() ? problem : source + ": " + problem);
  }
  return {kUsage, text, {}};
}

// Returns true for fields that an update may contain; other fields of a document identify the
// object.
bool IsClients(const std::string& path) {
  return path.starts_with("spec") || path.starts_with("meta.labels");
}

class DocumentReader {
 public:
  DocumentReader(std::string source, std::vector<ObjectInput>& out)
      : source_(std::move(source)), out_(out) {}

  void Read(const YAML::Node& document) {
    if (document.IsNull()) return;
    if (!document.IsMap()) return Complain(document, "is not an object: a map with a name");
    if (document["name"]) return ReadObject(document);
    // Reads the output of `get -o json`: lists under the kinds' names.
    bool any = false;
    for (const auto& entry : document) {
      if (!entry.second.IsSequence() || FindKind(entry.first.as<std::string>()) == nullptr)
        continue;
      any = true;
      for (const auto& element : entry.second) {
        if (element.IsMap() && element["name"]) {
          ReadObject(element);
        } else {
          Complain(element, "has no name");
        }
      }
    }
    if (!any) Complain(document, "has no name (name: tenants/blue)");
  }

  std::vector<std::string> problems;

 private:
  void Complain(const YAML::Node& node, const std::string& what) {
    problems.push_back("line " + std::to_string(node.Mark().line + 1) + ": " + what);
  }

  void ReadObject(const YAML::Node& node) {
    const auto name = node["name"].as<std::string>();
    ObjectInput input;
    input.kind = KindOfName(name);
    if (input.kind == nullptr) {
      return Complain(node["name"], "'" + name + "' is no name of a kind: tenants/T, " +
                                        "tenants/T/pools/P, ccPolicies/C, gateways/G, "
                                        "roleBindings/R, gateways/G/donors/D");
    }
    input.where = source_ + ":" + std::to_string(node.Mark().line + 1);
    input.object = NewMessage(input.kind->object);
    MessageReader reader(true);
    reader.Fill(node, *input.object, "");
    problems.insert(problems.end(), reader.problems().begin(), reader.problems().end());
    std::ranges::copy_if(reader.mask(), std::back_inserter(input.mask), IsClients);
    out_.push_back(std::move(input));
  }

  std::string source_;
  std::vector<ObjectInput>& out_;
};

void AddPaths(const Descriptor& message, const std::string& prefix, std::vector<std::string>& out) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const std::string path = prefix + field.name();
    const bool group = field.message_type() != nullptr && !field.is_repeated() &&
                       field.message_type()->file()->package() != "google.protobuf";
    if (group) {
      AddPaths(*field.message_type(), path + ".", out);
    } else {
      out.push_back(field.is_map() ? path + "." : path);
    }
  }
}

// Puts `value` into the tree at "a.b.c"; below a map field the rest of the path is one key.
void Put(YAML::Node tree, const Descriptor* message, std::string_view path,
         const YAML::Node& value) {
  const size_t dot = path.find('.');
  const std::string key(path.substr(0, dot));
  if (dot == std::string_view::npos) {
    tree[key] = value;
    return;
  }
  const FieldDescriptor* const field = message == nullptr ? nullptr : FieldByAnyName(*message, key);
  const std::string_view rest = path.substr(dot + 1);
  if (!tree[key]) tree[key] = YAML::Node(YAML::NodeType::Map);
  if (field != nullptr && field->is_map()) {
    tree[key][std::string(rest)] = value;
  } else {
    Put(tree[key], field == nullptr ? nullptr : field->message_type(), rest, value);
  }
}

// Calls with the message and the field at the end of a mask's path.
void AtPath(Message& root, const std::string& path,
            const std::function<void(Message&, const FieldDescriptor&)>& use) {
  Message* at = &root;
  std::string_view rest = path;
  for (;;) {
    const size_t dot = rest.find('.');
    const FieldDescriptor* const field =
        at->GetDescriptor()->FindFieldByName(std::string(rest.substr(0, dot)));
    if (dot == std::string_view::npos) return use(*at, *field);
    at = at->GetReflection()->MutableMessage(at, field);
    rest.remove_prefix(dot + 1);
  }
}

// Adds entries of `map` whose key is missing in `into`.
void AddMissing(const Message& from, const FieldDescriptor& map, Message& into) {
  const auto& reflection = *from.GetReflection();
  const int given = reflection.FieldSize(into, &map);
  for (int i = 0; i < reflection.FieldSize(from, &map); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(from, &map, i);
    bool known = false;
    for (int j = 0; j < given; ++j) {
      known |= TextOf(reflection.GetRepeatedMessage(into, &map, j), "key") == TextOf(entry, "key");
    }
    if (!known) reflection.AddMessage(&into, &map)->CopyFrom(entry);
  }
}

// Removes map entries that an assignment without a value deletes.
void DropEmpty(Message& message, const FieldDescriptor& map) {
  const auto& reflection = *message.GetReflection();
  for (int i = reflection.FieldSize(message, &map) - 1; i >= 0; --i) {
    if (!TextOf(reflection.GetRepeatedMessage(message, &map, i), "value").empty()) continue;
    reflection.SwapElements(&message, &map, i, reflection.FieldSize(message, &map) - 1);
    reflection.RemoveLast(&message, &map);
  }
}

}  // namespace

CallResult ParseObjects(std::string_view text, const std::string& source,
                        std::vector<ObjectInput>& out) {
  DocumentReader reader(source, out);
  try {
    for (const YAML::Node& document : YAML::LoadAll(std::string(text))) reader.Read(document);
  } catch (const YAML::Exception& error) {
    return Wrong(source, {error.what()});
  }
  if (!reader.problems.empty()) return Wrong(source, reader.problems);
  if (out.empty()) return Wrong(source, {"has no objects"});
  return {};
}

CallResult ReadObjects(const std::string& file, std::vector<ObjectInput>& out) {
  std::stringstream text;
  if (file == "-") {
    text << std::cin.rdbuf();
    return ParseObjects(text.str(), "standard input", out);
  }
  std::ifstream stream(file);
  if (!stream) return {kUsage, file + ": " + std::strerror(errno), {}};
  text << stream.rdbuf();
  return ParseObjects(text.str(), file, out);
}

CallResult ParseAssignments(const Kind& kind, const std::string& name,
                            const std::vector<std::string>& words, ObjectInput& out) {
  out.kind = &kind;
  out.object = NewMessage(kind.object);
  YAML::Node tree(YAML::NodeType::Map);
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return {kUsage, "'" + word + "' is not FIELD=VALUE, such as weight=3", {}};
    }
    const std::string path = word.substr(0, equals);
    const std::string value = word.substr(equals + 1);
    try {
      const bool label = path.starts_with(kLabels);
      // Only lists and maps are YAML; other values are plain text.
      const bool flow = !label && (value.starts_with('[') || value.starts_with('{'));
      const YAML::Node node = value.empty() ? YAML::Node(YAML::NodeType::Null)
                              : flow        ? YAML::Load(value)
                                            : YAML::Node(value);
      Put(tree, kind.object, (label ? "meta." : "spec.") + path, node);
    } catch (const YAML::Exception& error) {
      return {kUsage, "'" + word + "': " + error.msg, {}};
    }
  }
  MessageReader reader(false);
  reader.Fill(tree, *out.object, "");
  if (!reader.problems().empty()) return Wrong("", reader.problems());
  std::ranges::copy_if(reader.mask(), std::back_inserter(out.mask), IsClients);
  SetText(*out.object, "name", name);
  return {};
}

std::vector<std::string> AssignablePaths(const Kind& kind) {
  std::vector<std::string> paths;
  const FieldDescriptor* const spec = kind.object->FindFieldByName("spec");
  AddPaths(*spec->message_type(), "", paths);
  paths.emplace_back(kLabels);
  return paths;
}

MessagePtr Merged(const Message& before, const ObjectInput& input, bool whole_maps) {
  MessagePtr said(input.object->New());
  said->CopyFrom(*input.object);
  MessagePtr after(before.New());
  after->CopyFrom(before);
  FieldMask mask;
  for (const std::string& path : input.mask) {
    mask.add_paths(path);
    if (whole_maps) continue;
    AtPath(*said, path, [&](Message& message, const FieldDescriptor& field) {
      if (!field.is_map() || message.GetReflection()->FieldSize(message, &field) == 0) return;
      AtPath(*after, path,
             [&](Message& old, const FieldDescriptor&) { AddMissing(old, field, message); });
      DropEmpty(message, field);
    });
  }
  FieldMaskUtil::MergeOptions options;
  options.set_replace_message_fields(true);
  options.set_replace_repeated_fields(true);
  FieldMaskUtil::MergeMessageTo(*said, mask, options, after.get());
  return after;
}

}  // namespace rocegw::cli
