// SPDX-License-Identifier: Apache-2.0
#include "proto/rules/check.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/field_mask.pb.h>
#include <google/protobuf/unknown_field_set.h>

#include <limits>
#include <map>
#include <memory>
#include <set>

#include "proto/rules/formats.h"
#include "proto/rules/relations.h"
#include "proto/rules/resource_name.h"
#include "rocegw/types/v1/annotations.pb.h"

namespace rocegw::rules {
namespace {

using google::protobuf::Duration;
using google::protobuf::FieldDescriptor;
using google::protobuf::FieldMask;
using google::protobuf::Message;
using google::protobuf::Reflection;
using types::v1::FieldRule;

const FieldRule& RuleOf(const FieldDescriptor& field) {
  return field.options().GetExtension(types::v1::field);
}

std::string Path(const std::string& prefix, const FieldDescriptor& field, int index = -1) {
  std::string path = prefix.empty() ? std::string(field.name()) : prefix + "." + field.name();
  if (index >= 0) path += "[" + std::to_string(index) + "]";
  return path;
}

bool HasUpdateMask(const Message& request) {
  const FieldDescriptor* const field = request.GetDescriptor()->FindFieldByName("update_mask");
  if (field == nullptr || field->message_type() != FieldMask::descriptor()) return false;
  FieldMask mask;
  mask.CopyFrom(request.GetReflection()->GetMessage(request, field));
  return mask.paths_size() != 0;
}

class Checker {
 public:
  explicit Checker(bool in_part) : in_part_(in_part) {}

  void Visit(const Message& message, const std::string& prefix) {
    const size_t before = violations_.size();
    VisitFields(message, prefix);
    if (!in_part_ && violations_.size() == before) CheckRelations(message, prefix, violations_);
  }

  std::vector<Violation> Take() { return std::move(violations_); }

 private:
  void VisitFields(const Message& message, const std::string& prefix) {
    const Reflection& reflection = *message.GetReflection();
    if (!reflection.GetUnknownFields(message).empty()) {
      const int number = reflection.GetUnknownFields(message).field(0).number();
      Add(prefix, "has a field with number " + std::to_string(number) +
                      " that this version does not know; is the client newer than the server?");
    }
    const auto& descriptor = *message.GetDescriptor();
    for (int i = 0; i < descriptor.field_count(); ++i) {
      const FieldDescriptor& field = *descriptor.field(i);
      const FieldRule& rule = RuleOf(field);
      if (rule.output_only()) continue;
      if (field.is_map()) {
        VisitMap(message, field, rule, prefix);
      } else if (field.is_repeated()) {
        VisitRepeated(message, field, rule, prefix);
      } else if (!field.has_presence() || reflection.HasField(message, &field)) {
        VisitOne(message, field, rule, prefix);
      } else if (rule.required()) {
        Add(Path(prefix, field), "must be given");
      }
    }
  }

  void Add(const std::string& field, std::string text) {
    violations_.push_back({field, std::move(text)});
  }

  void CountItems(int count, const FieldRule& rule, const std::string& path) {
    if (rule.has_max_items() && static_cast<uint32_t>(count) > rule.max_items()) {
      Add(path, "has " + std::to_string(count) + " items, at most " +
                    std::to_string(rule.max_items()) + " are allowed");
    }
    if (rule.required() && count == 0) Add(path, "must be given");
  }

  void VisitMap(const Message& message, const FieldDescriptor& field, const FieldRule& rule,
                const std::string& prefix) {
    const Reflection& reflection = *message.GetReflection();
    const std::string path = Path(prefix, field);
    const int count = reflection.FieldSize(message, &field);
    CountItems(count, rule, path);
    // Maps of this API are labels: text to text.
    const FieldDescriptor& key = *field.message_type()->map_key();
    const FieldDescriptor& value = *field.message_type()->map_value();
    // Sorted, so that equal requests get equal texts.
    std::map<std::string, std::string> labels;
    for (int i = 0; i < count; ++i) {
      const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
      labels[entry.GetReflection()->GetString(entry, &key)] =
          entry.GetReflection()->GetString(entry, &value);
    }
    for (const auto& [name, text] : labels) {
      const std::string at = path + "[" + name + "]";
      CheckText(name, rule, at);
      if (!IsLabelValue(text)) {
        Add(at, "has a value that is no label value: at most 63 letters, digits, '-', '_' or '.'");
      }
    }
  }

  void VisitRepeated(const Message& message, const FieldDescriptor& field, const FieldRule& rule,
                     const std::string& prefix) {
    const Reflection& reflection = *message.GetReflection();
    const int count = reflection.FieldSize(message, &field);
    CountItems(count, rule, Path(prefix, field));
    std::set<std::string> seen;
    for (int i = 0; i < count; ++i) {
      const std::string path = Path(prefix, field, i);
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        Visit(reflection.GetRepeatedMessage(message, &field, i), path);
      } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        const std::string text = reflection.GetRepeatedString(message, &field, i);
        CheckText(text, rule, path);
        if (rule.unique_items() && !seen.insert(text).second) Add(path, "is there twice");
      }
    }
  }

  void VisitOne(const Message& message, const FieldDescriptor& field, const FieldRule& rule,
                const std::string& prefix) {
    const Reflection& reflection = *message.GetReflection();
    const std::string path = Path(prefix, field);
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE: {
        const Message& part = reflection.GetMessage(message, &field);
        if (part.GetDescriptor() == Duration::descriptor()) {
          Duration duration;
          duration.CopyFrom(part);
          return CheckDuration(duration, rule, path);
        }
        return Visit(part, path);
      }
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = reflection.GetString(message, &field);
        if (!text.empty()) {
          CheckText(text, rule, path);
        } else if (rule.required()) {
          Add(path, "must be given");
        }
        return;
      }
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int value = reflection.GetEnumValue(message, &field);
        if (field.enum_type()->FindValueByNumber(value) == nullptr) {
          Add(path,
              "has the value " + std::to_string(value) + ", which this version does not know");
        } else if (rule.required() && value == 0) {
          Add(path, "must be given");
        }
        return;
      }
      case FieldDescriptor::CPPTYPE_UINT32:
        return CheckNumber(reflection.GetUInt32(message, &field), rule, path);
      case FieldDescriptor::CPPTYPE_INT32:
        return CheckNumber(reflection.GetInt32(message, &field), rule, path);
      case FieldDescriptor::CPPTYPE_INT64:
        return CheckNumber(reflection.GetInt64(message, &field), rule, path);
      case FieldDescriptor::CPPTYPE_UINT64: {
        const uint64_t value = reflection.GetUInt64(message, &field);
        const auto largest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
        if (value > largest) return Add(path, "must be at most " + std::to_string(largest));
        return CheckNumber(static_cast<int64_t>(value), rule, path);
      }
      default:
        return;
    }
  }

  // Checks a duration; negative ones are never valid in this API.
  void CheckDuration(const Duration& duration, const FieldRule& rule, const std::string& path) {
    constexpr int32_t kLargestNanos = 999999999;
    if (duration.seconds() < 0 || duration.nanos() < 0) return Add(path, "must not be negative");
    if (duration.nanos() > kLargestNanos) {
      return Add(path,
                 "must have less than a second in nanos, has " + std::to_string(duration.nanos()));
    }
    if (rule.has_min() && duration.seconds() < rule.min())
      Add(path, "must be at least " + std::to_string(rule.min()) + " s");
    if (rule.has_max() && (duration.seconds() > rule.max() ||
                           (duration.seconds() == rule.max() && duration.nanos() != 0)))
      Add(path, "must be at most " + std::to_string(rule.max()) + " s");
  }

  void CheckNumber(int64_t value, const FieldRule& rule, const std::string& path) {
    if (rule.has_min() && value < rule.min()) {
      Add(path, "must be at least " + std::to_string(rule.min()) + ", is " + std::to_string(value));
    }
    if (rule.has_min_unless_zero() && value != 0 && value < rule.min_unless_zero()) {
      Add(path, "must be 0 or at least " + std::to_string(rule.min_unless_zero()) + ", is " +
                    std::to_string(value));
    }
    if (rule.has_max() && value > rule.max()) {
      Add(path, "must be at most " + std::to_string(rule.max()) + ", is " + std::to_string(value));
    }
  }

  void CheckText(const std::string& text, const FieldRule& rule, const std::string& path) {
    if (rule.has_max_length() && text.size() > rule.max_length()) {
      return Add(path, "is longer than " + std::to_string(rule.max_length()) + " bytes");
    }
    std::string wrong;
    if (!rule.resource().empty()) {
      wrong = MismatchWithPattern(text, rule.resource(), rule.wildcard());
    } else {
      wrong = MismatchWithFormat(text, rule.format());
    }
    if (!wrong.empty()) Add(path, std::move(wrong));
  }

  const bool in_part_;  // nested objects have only some of their fields
  std::vector<Violation> violations_;
};

// Calls visit(message, field) for every set field, messages before their contents.
template <typename MessageType, typename Visit>
void ForEachField(MessageType& message, const Visit& visit) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) visit(*field);
}

}  // namespace

std::vector<Violation> Check(const Message& message) {
  Checker checker(HasUpdateMask(message));
  checker.Visit(message, "");
  return checker.Take();
}

void ClearOutputOnly(Message& message) {
  const Reflection& reflection = *message.GetReflection();
  ForEachField(message, [&](const FieldDescriptor& field) {
    if (RuleOf(field).output_only()) {
      reflection.ClearField(&message, &field);
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_repeated()) {
      ClearOutputOnly(*reflection.MutableMessage(&message, &field));
    }
  });
}

std::vector<Violation> CheckImmutable(const Message& before, const Message& after) {
  std::vector<Violation> violations;
  const auto& descriptor = *after.GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (!RuleOf(field).immutable() || field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) continue;
    const std::string was = before.GetReflection()->GetString(before, &field);
    if (after.GetReflection()->GetString(after, &field) != was) {
      violations.push_back({std::string(field.name()), "cannot change, it is '" + was + "'"});
    }
  }
  return violations;
}

namespace {

// Compares in messages with only this field: it may be a number, a text or a list.
bool SameField(const Message& before, const Message& after, const FieldDescriptor& field) {
  const auto alone = [&](const Message& message) {
    std::unique_ptr<Message> copy(message.New());
    copy->CopyFrom(message);
    ForEachField(message, [&](const FieldDescriptor& other) {
      if (&other != &field) copy->GetReflection()->ClearField(copy.get(), &other);
    });
    return copy;
  };
  return alone(before)->SerializeAsString() == alone(after)->SerializeAsString();
}

void FindGuarded(const Message& before, const Message& after, const std::string& prefix,
                 std::vector<GuardedChange>& found) {
  const auto& descriptor = *after.GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    const std::string path = prefix + std::string(field.name());
    if (!RuleOf(field).permission().empty()) {
      if (!SameField(before, after, field)) found.push_back({path, RuleOf(field).permission()});
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_repeated() &&
               (after.GetReflection()->HasField(after, &field) ||
                before.GetReflection()->HasField(before, &field))) {
      FindGuarded(before.GetReflection()->GetMessage(before, &field),
                  after.GetReflection()->GetMessage(after, &field), path + ".", found);
    }
  }
}

}  // namespace

std::vector<GuardedChange> GuardedChanges(const Message& before, const Message& after) {
  std::vector<GuardedChange> found;
  FindGuarded(before, after, "", found);
  return found;
}

}  // namespace rocegw::rules
