// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/documents/message_reader.h"

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/time_util.h>

#include <cctype>
#include <limits>
#include <set>

#include "controlplane/cli/documents/message_fields.h"
#include "controlplane/cli/documents/quantity.h"
#include "rocegw/types/v1/annotations.pb.h"

namespace rocegw::cli {
namespace {

constexpr char kGivenTwice[] = "is given twice";

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::TimeUtil;

bool IsOutputOnly(const FieldDescriptor& field) {
  return field.options().GetExtension(types::v1::field).output_only();
}

std::string Below(const std::string& path, const std::string& field) {
  return path.empty() ? field : path + "." + field;
}

std::string KnownFields(const Descriptor& message) {
  std::string text;
  for (int i = 0; i < message.field_count(); ++i) {
    if (IsOutputOnly(*message.field(i))) continue;
    text += (text.empty() ? "" : ", ") + message.field(i)->name();
  }
  return text;
}

// Returns the enum value of that name in any case, with '-' for '_'.
const google::protobuf::EnumValueDescriptor* EnumValue(const EnumDescriptor& type,
                                                       const std::string& text) {
  std::string name = text;
  for (char& c : name) {
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return type.FindValueByName(name);
}

std::string EnumValues(const EnumDescriptor& type) {
  std::string text;
  for (int i = 1; i < type.value_count(); ++i) {
    text += (i == 1 ? "" : i + 1 == type.value_count() ? " or " : ", ") + type.value(i)->name();
  }
  return text;
}

}  // namespace

const FieldDescriptor* FieldByAnyName(const Descriptor& message, const std::string& name) {
  const FieldDescriptor* const field = message.FindFieldByName(name);
  return field != nullptr ? field : message.FindFieldByCamelcaseName(name);
}

void MessageReader::Complain(const YAML::Node& node, const std::string& path,
                             const std::string& what) {
  const int line = node.Mark().line;
  problems_.push_back((line >= 0 ? "line " + std::to_string(line + 1) + ": " : "") +
                      (path.empty() ? "" : path + ": ") + what);
}

void MessageReader::Fill(const YAML::Node& node, Message& message, const std::string& path) {
  if (FillWellKnown(node, message, path)) return;
  const Descriptor& type = *message.GetDescriptor();
  if (!node.IsMap() && !node.IsNull()) {
    return Complain(node, path, "needs fields: " + KnownFields(type));
  }
  if (node.size() == 0 && !in_list_ && !path.empty()) mask_.push_back(path);
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const auto name = entry.first.as<std::string>();
    const FieldDescriptor* const field = FieldByAnyName(type, name);
    // Both spellings of a field are the same key.
    if (!seen.insert(field == nullptr ? name : field->name()).second) {
      Complain(entry.first, Below(path, name), kGivenTwice);
    } else if (field == nullptr) {
      Complain(entry.first, Below(path, name), "no such field; there are: " + KnownFields(type));
    } else if (!IsOutputOnly(*field)) {
      FillField(entry.second, message, *field, Below(path, field->name()));
    } else if (!skip_output_only_) {
      Complain(entry.first, Below(path, name), "is written by the controller only");
    }
  }
}

void MessageReader::FillField(const YAML::Node& node, Message& message, const Field& field,
                              const std::string& path) {
  const bool leaf = field.is_repeated() || field.message_type() == nullptr ||
                    field.message_type()->file()->package() == "google.protobuf";
  if (!in_list_ && (leaf || node.IsNull())) mask_.push_back(path);
  if (node.IsNull()) {
    message.GetReflection()->ClearField(&message, &field);
  } else if (field.is_map()) {
    FillMap(node, message, field, path);
  } else if (field.is_repeated()) {
    FillList(node, message, field, path);
  } else if (field.message_type() != nullptr) {
    Fill(node, *message.GetReflection()->MutableMessage(&message, &field), path);
  } else {
    FillScalar(node, message, field, path, false);
  }
}

void MessageReader::FillMap(const YAML::Node& node, Message& message, const Field& field,
                            const std::string& path) {
  if (!node.IsMap()) return Complain(node, path, "needs \"key: value\" pairs");
  std::set<std::string> seen;
  for (const auto& pair : node) {
    if (!seen.insert(pair.first.as<std::string>()).second) {
      Complain(pair.first, Below(path, pair.first.as<std::string>()), kGivenTwice);
      continue;
    }
    if (!pair.second.IsScalar() && !pair.second.IsNull()) {
      Complain(pair.second, path, "values are words");
      continue;
    }
    Message* const entry = message.GetReflection()->AddMessage(&message, &field);
    SetText(*entry, "key", pair.first.as<std::string>());
    SetText(*entry, "value", pair.second.IsNull() ? "" : pair.second.as<std::string>());
  }
}

void MessageReader::FillList(const YAML::Node& node, Message& message, const Field& field,
                             const std::string& path) {
  if (!node.IsSequence()) return Complain(node, path, "needs a list: [a, b]");
  const bool outer = std::exchange(in_list_, true);
  size_t index = 0;
  for (const auto& element : node) {
    const std::string at = path + "[" + std::to_string(index++) + "]";
    if (field.message_type() != nullptr) {
      Fill(element, *message.GetReflection()->AddMessage(&message, &field), at);
    } else {
      FillScalar(element, message, field, at, true);
    }
  }
  in_list_ = outer;
}

bool MessageReader::FillWellKnown(const YAML::Node& node, Message& message,
                                  const std::string& path) {
  auto* const duration = dynamic_cast<google::protobuf::Duration*>(&message);
  auto* const time = dynamic_cast<google::protobuf::Timestamp*>(&message);
  if (duration == nullptr && time == nullptr) return false;
  const std::string text = node.IsScalar() ? node.as<std::string>() : "";
  if (duration != nullptr) {
    const auto parsed = ParseDuration(text);
    if (parsed.has_value()) {
      *duration = TimeUtil::MillisecondsToDuration(*parsed);
    } else {
      Complain(node, path, "'" + text + "' is not a duration, such as 90s, 15m or 1h30m");
    }
  } else if (!TimeUtil::FromString(text, time)) {
    Complain(node, path, "'" + text + "' is not a time, such as 2026-01-31T12:00:00Z");
  }
  return true;
}

void MessageReader::FillScalar(const YAML::Node& node, Message& message, const Field& field,
                               const std::string& path, bool add) {
  if (!node.IsScalar()) return Complain(node, path, "needs one value");
  const auto text = node.as<std::string>();
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      if (add) {
        reflection.AddString(&message, &field, text);
      } else {
        reflection.SetString(&message, &field, text);
      }
      break;
    case FieldDescriptor::CPPTYPE_BOOL: {
      bool value = false;
      if (!YAML::convert<bool>::decode(node, value)) {
        return Complain(node, path, "'" + text + "' is neither true nor false");
      }
      reflection.SetBool(&message, &field, value);
      break;
    }
    case FieldDescriptor::CPPTYPE_ENUM:
      FillEnum(text, node, message, field, path);
      break;
    default:
      FillNumber(text, node, message, field, path);
  }
}

void MessageReader::FillEnum(const std::string& text, const YAML::Node& node, Message& message,
                             const Field& field, const std::string& path) {
  const auto* const value = EnumValue(*field.enum_type(), text);
  if (value == nullptr) {
    return Complain(node, path, "'" + text + "' is not one of " + EnumValues(*field.enum_type()));
  }
  message.GetReflection()->SetEnum(&message, &field, value);
}

void MessageReader::FillNumber(const std::string& text, const YAML::Node& node, Message& message,
                               const Field& field, const std::string& path) {
  const Unit unit = UnitOfField(field.name());
  const bool large = field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
  const bool small = field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32;
  auto value = ParseQuantity(text, unit);
  // The API prints a mode as a decimal number without a leading zero.
  if (unit == Unit::kMode && !text.starts_with('0')) value = ParseQuantity(text, Unit::kCount);
  if (!value.has_value() || !(large || small) ||
      (small && *value > std::numeric_limits<uint32_t>::max())) {
    return Complain(node, path, "'" + text + "' is not " + std::string(QuantityHelp(unit)));
  }
  if (large) {
    message.GetReflection()->SetUInt64(&message, &field, *value);
  } else {
    message.GetReflection()->SetUInt32(&message, &field, static_cast<uint32_t>(*value));
  }
}

}  // namespace rocegw::cli
