// SPDX-License-Identifier: Apache-2.0
// Reader of messages from a YAML tree, by descriptor: the part of object_input that knows field
// types. Pure.
#pragma once

#include <google/protobuf/message.h>
#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

namespace rocegw::cli {

class MessageReader {
 public:
  // `skip_output_only`: ignores fields that only the controller writes, which its own output
  // contains; otherwise they are errors.
  explicit MessageReader(bool skip_output_only) : skip_output_only_(skip_output_only) {}

  // Fills the message. `path`: path of `node` in the object, "" at its root. Errors are in
  // problems().
  void Fill(const YAML::Node& node, google::protobuf::Message& message, const std::string& path);

  // Paths of the fields that were read, down to their innermost fields.
  const std::vector<std::string>& mask() const { return mask_; }
  // Texts such as "line 3: spec.weight: 'x' is not ...".
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  using Field = google::protobuf::FieldDescriptor;

  void FillField(const YAML::Node& node, google::protobuf::Message& message, const Field& field,
                 const std::string& path);
  void FillMap(const YAML::Node& node, google::protobuf::Message& message, const Field& field,
               const std::string& path);
  void FillList(const YAML::Node& node, google::protobuf::Message& message, const Field& field,
                const std::string& path);
  // `add`: appends to a repeated field.
  void FillScalar(const YAML::Node& node, google::protobuf::Message& message, const Field& field,
                  const std::string& path, bool add);
  // Reads Duration and Timestamp; returns false for other messages.
  bool FillWellKnown(const YAML::Node& node, google::protobuf::Message& message,
                     const std::string& path);
  void FillEnum(const std::string& text, const YAML::Node& node, google::protobuf::Message& message,
                const Field& field, const std::string& path);
  void FillNumber(const std::string& text, const YAML::Node& node,
                  google::protobuf::Message& message, const Field& field, const std::string& path);
  void Complain(const YAML::Node& node, const std::string& path, const std::string& what);

  bool skip_output_only_;
  bool in_list_ = false;
  std::vector<std::string> mask_;
  std::vector<std::string> problems_;
};

// Returns the message's field by its name in JSON or in the proto; nullptr: none.
const google::protobuf::FieldDescriptor* FieldByAnyName(const google::protobuf::Descriptor& message,
                                                        const std::string& name);

}  // namespace rocegw::cli
