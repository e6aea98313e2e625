// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/views/describe.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <vector>

#include "controlplane/cli/documents/message_fields.h"
#include "controlplane/cli/documents/quantity.h"
#include "controlplane/cli/views/table.h"
#include "gateway/base/foreign_text.h"

namespace rocegw::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::TimeUtil;

constexpr size_t kIndent = 2;
constexpr size_t kMostTitle = 24;

// Converts "registered_bytes" to "Registered bytes".
std::string Title(const FieldDescriptor& field) {
  std::string title = field.name();
  std::ranges::replace(title, '_', ' ');
  title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return title;
}

std::string TimeText(const google::protobuf::Timestamp& time, int64_t now) {
  google::protobuf::Timestamp whole;
  whole.set_seconds(time.seconds());
  const int64_t past = now - time.seconds();
  return TimeUtil::ToString(whole) +
         (past >= 0 ? " (" + AgeText(past) + " ago)" : " (in " + AgeText(-past) + ")");
}

std::string DurationText(const google::protobuf::Duration& duration) {
  if (duration.seconds() != 0 || duration.nanos() == 0) return AgeText(duration.seconds());
  char text[32];
  std::snprintf(text, sizeof text, "%.1fms", duration.nanos() / 1e6);
  return text;
}

std::string NumberText(uint64_t value, const std::string& field) {
  return QuantityText(value, UnitOfField(field));
}

class Writer {
 public:
  explicit Writer(int64_t now) : now_(now) {}

  void Fields(const Message& message, size_t indent) {
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    size_t width = 0;
    for (const FieldDescriptor* field : fields) {
      if (IsLine(*field)) width = std::max(width, field->name().size());
    }
    width = std::min(width, kMostTitle);
    for (const FieldDescriptor* field : fields) Field(message, *field, indent, width);
  }

  std::string text;

 private:
  static bool IsWellKnown(const FieldDescriptor& field) {
    return field.message_type() != nullptr &&
           field.message_type()->file()->package() == "google.protobuf";
  }
  static bool IsLine(const FieldDescriptor& field) {
    return field.is_map() || field.message_type() == nullptr || IsWellKnown(field);
  }

  void Line(size_t indent, const std::string& title, size_t width, const std::string& value) {
    std::string line(indent, ' ');
    line += title + ":";
    if (line.size() < indent + width + 1) line.resize(indent + width + 1, ' ');
    text += line + " " + ForeignText(value) + "\n";
  }

  void Field(const Message& message, const FieldDescriptor& field, size_t indent, size_t width) {
    const auto& reflection = *message.GetReflection();
    const std::string title = Title(field);
    if (field.is_map()) return Map(message, field, indent, width);
    if (!field.is_repeated()) {
      if (IsLine(field)) return Line(indent, title, width, Value(message, field, -1));
      const Message& part = reflection.GetMessage(message, &field);
      if (part.ByteSizeLong() == 0) return;
      text += std::string(indent, ' ') + title + ":\n";
      return Fields(part, indent + kIndent);
    }
    const int count = reflection.FieldSize(message, &field);
    if (!IsLine(field)) {
      text += std::string(indent, ' ') + title + ":\n";
      for (int i = 0; i < count; ++i) {
        const size_t begin = text.size();
        Fields(reflection.GetRepeatedMessage(message, &field, i), indent + 2 * kIndent);
        // A dash before the first field separates the elements.
        if (text.size() > begin) text[begin + indent + kIndent] = '-';
      }
      return;
    }
    std::string all;
    for (int i = 0; i < count; ++i) all += (i == 0 ? "" : ", ") + Value(message, field, i);
    Line(indent, title, width, all);
  }

  void Map(const Message& message, const FieldDescriptor& field, size_t indent, size_t width) {
    const auto& reflection = *message.GetReflection();
    std::vector<std::string> pairs;
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
      const auto& kind = *field.message_type();
      pairs.push_back(Value(entry, *kind.map_key(), -1) + "=" +
                      Value(entry, *kind.map_value(), -1));
    }
    std::ranges::sort(pairs);
    std::string all;
    for (const std::string& pair : pairs) all += (all.empty() ? "" : ", ") + pair;
    Line(indent, Title(field), width, all);
  }

  // `index`: element of a repeated field, else -1.
  std::string Value(const Message& message, const FieldDescriptor& field, int index) {
    const auto& reflection = *message.GetReflection();
    const auto get = [&](auto single, auto repeated) {
      return index < 0 ? (reflection.*single)(message, &field)
                       : (reflection.*repeated)(message, &field, index);
    };
    using R = google::protobuf::Reflection;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return get(&R::GetString, &R::GetRepeatedString);
      case FieldDescriptor::CPPTYPE_BOOL:
        return get(&R::GetBool, &R::GetRepeatedBool) ? "yes" : "no";
      case FieldDescriptor::CPPTYPE_ENUM: {
        std::string name = get(&R::GetEnum, &R::GetRepeatedEnum)->name();
        for (char& c : name) {
          c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
        return name;
      }
      case FieldDescriptor::CPPTYPE_UINT64:
        return NumberText(get(&R::GetUInt64, &R::GetRepeatedUInt64), field.name());
      case FieldDescriptor::CPPTYPE_UINT32:
        return NumberText(get(&R::GetUInt32, &R::GetRepeatedUInt32), field.name());
      case FieldDescriptor::CPPTYPE_INT64:
        return std::to_string(get(&R::GetInt64, &R::GetRepeatedInt64));
      case FieldDescriptor::CPPTYPE_INT32:
        return std::to_string(get(&R::GetInt32, &R::GetRepeatedInt32));
      default:
        return WellKnown(index < 0 ? reflection.GetMessage(message, &field)
                                   : reflection.GetRepeatedMessage(message, &field, index));
    }
  }

  std::string WellKnown(const Message& message) const {
    if (const auto* time = dynamic_cast<const google::protobuf::Timestamp*>(&message)) {
      return TimeText(*time, now_);
    }
    if (const auto* duration = dynamic_cast<const google::protobuf::Duration*>(&message)) {
      return DurationText(*duration);
    }
    return message.ShortDebugString();
  }

  int64_t now_;
};

}  // namespace

std::string Description(const Message& object, int64_t now) {
  Writer writer(now);
  writer.Fields(object, 0);
  return writer.text;
}

}  // namespace rocegw::cli
