// SPDX-License-Identifier: Apache-2.0
#include "controlplane/model/json_text.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/field_mask.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/field_mask_util.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/time_util.h>

#include <cstdio>
#include <map>
#include <vector>

namespace rocegw::model {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void AddQuoted(const std::string& value, std::string& out) {
  out += '"';
  for (const char c : value) {
    switch (c) {
      case '"':
      case '\\':
        out += '\\';
        out += c;
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        // Like protobuf, for pages that show the text.
        if (static_cast<unsigned char>(c) < 0x20 || c == '<' || c == '>' || c == '\x7f') {
          char code[8];
          std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
          out += code;
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

// Returns false for a message with unsupported contents.
bool AddMessage(const Message& message, std::string& out);

// `index`: element of a repeated field, else -1.
bool AddValue(const Message& message, const FieldDescriptor& field, int index, std::string& out) {
  const Reflection& reflection = *message.GetReflection();
  const auto get = [&](auto single, auto repeated) {
    return index < 0 ? (reflection.*single)(message, &field)
                     : (reflection.*repeated)(message, &field, index);
  };
  using R = Reflection;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      if (field.type() == FieldDescriptor::TYPE_BYTES) return false;
      AddQuoted(get(&R::GetString, &R::GetRepeatedString), out);
      return true;
    case FieldDescriptor::CPPTYPE_BOOL:
      out += get(&R::GetBool, &R::GetRepeatedBool) ? "true" : "false";
      return true;
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = get(&R::GetEnumValue, &R::GetRepeatedEnumValue);
      const auto* const value = field.enum_type()->FindValueByNumber(number);
      out += value == nullptr ? std::to_string(number) : "\"" + value->name() + "\"";
      return true;
    }
    case FieldDescriptor::CPPTYPE_INT32:
      out += std::to_string(get(&R::GetInt32, &R::GetRepeatedInt32));
      return true;
    case FieldDescriptor::CPPTYPE_UINT32:
      out += std::to_string(get(&R::GetUInt32, &R::GetRepeatedUInt32));
      return true;
    // JSON readers have no 64-bit integers.
    case FieldDescriptor::CPPTYPE_INT64:
      out += "\"" + std::to_string(get(&R::GetInt64, &R::GetRepeatedInt64)) + "\"";
      return true;
    case FieldDescriptor::CPPTYPE_UINT64:
      out += "\"" + std::to_string(get(&R::GetUInt64, &R::GetRepeatedUInt64)) + "\"";
      return true;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return AddMessage(index < 0 ? reflection.GetMessage(message, &field)
                                  : reflection.GetRepeatedMessage(message, &field, index),
                        out);
    default:
      return false;
  }
}

bool AddMap(const Message& message, const FieldDescriptor& field, std::string& out) {
  const Reflection& reflection = *message.GetReflection();
  const FieldDescriptor& key = *field.message_type()->map_key();
  const FieldDescriptor& value = *field.message_type()->map_value();
  if (key.cpp_type() != FieldDescriptor::CPPTYPE_STRING) return false;
  std::map<std::string, std::string> sorted;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    std::string& text = sorted[entry.GetReflection()->GetString(entry, &key)];
    if (!AddValue(entry, value, -1, text)) return false;
  }
  out += '{';
  for (const auto& [name, text] : sorted) {
    if (out.back() != '{') out += ',';
    AddQuoted(name, out);
    out += ':';
    out += text;
  }
  out += '}';
  return true;
}

bool AddField(const Message& message, const FieldDescriptor& field, std::string& out) {
  if (field.is_map()) return AddMap(message, field, out);
  if (!field.is_repeated()) return AddValue(message, field, -1, out);
  out += '[';
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    if (i > 0) out += ',';
    if (!AddValue(message, field, i, out)) return false;
  }
  out += ']';
  return true;
}

// Writes types whose JSON is a text; returns false for others.
bool AddWellKnown(const Message& message, std::string& out) {
  using google::protobuf::util::TimeUtil;
  std::string text;
  if (const auto* time = dynamic_cast<const google::protobuf::Timestamp*>(&message)) {
    text = TimeUtil::ToString(*time);
  } else if (const auto* duration = dynamic_cast<const google::protobuf::Duration*>(&message)) {
    text = TimeUtil::ToString(*duration);
  } else if (const auto* mask = dynamic_cast<const google::protobuf::FieldMask*>(&message)) {
    if (!google::protobuf::util::FieldMaskUtil::ToJsonString(*mask, &text)) return false;
  } else {
    return false;
  }
  AddQuoted(text, out);
  return true;
}

bool AddMessage(const Message& message, std::string& out) {
  if (message.GetDescriptor()->file()->package() == "google.protobuf")
    return AddWellKnown(message, out);
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  out += '{';
  for (const FieldDescriptor* field : fields) {
    if (field != fields.front()) out += ',';
    out += '"';
    out += field->json_name();
    out += "\":";
    if (!AddField(message, *field, out)) return false;
  }
  out += '}';
  return true;
}

}  // namespace

std::string JsonText(const Message& message) {
  std::string text;
  if (AddMessage(message, text)) return text;
  text.clear();
  (void)google::protobuf::util::MessageToJsonString(message, &text);
  return text;
}

}  // namespace rocegw::model
