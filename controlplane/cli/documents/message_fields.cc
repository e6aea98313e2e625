// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/documents/message_fields.h"

#include <google/protobuf/descriptor.h>

namespace rocegw::cli {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

namespace {

const FieldDescriptor* Find(const Message& message, const char* field) {
  return message.GetDescriptor()->FindFieldByName(field);
}

}  // namespace

MessagePtr NewMessage(const Descriptor* type) {
  return MessagePtr(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

std::string TextOf(const Message& message, const char* field) {
  const FieldDescriptor* const found = Find(message, field);
  return found == nullptr ? "" : message.GetReflection()->GetString(message, found);
}

int64_t NumberOf(const Message& message, const char* field) {
  const FieldDescriptor* const found = Find(message, field);
  return found == nullptr ? 0 : message.GetReflection()->GetInt64(message, found);
}

bool FlagOf(const Message& message, const char* field) {
  const FieldDescriptor* const found = Find(message, field);
  return found != nullptr && message.GetReflection()->GetBool(message, found);
}

const Message& PartOf(const Message& message, const char* field) {
  return message.GetReflection()->GetMessage(message, Find(message, field));
}

bool HasField(const Message& message, const char* field) {
  const FieldDescriptor* const found = Find(message, field);
  return found != nullptr && message.GetReflection()->HasField(message, found);
}

void SetText(Message& message, const char* field, const std::string& value) {
  const FieldDescriptor* const found = Find(message, field);
  if (found != nullptr) message.GetReflection()->SetString(&message, found, value);
}

void SetNumber(Message& message, const char* field, int64_t value) {
  const FieldDescriptor* const found = Find(message, field);
  if (found == nullptr) return;
  if (found->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
    message.GetReflection()->SetInt32(&message, found, static_cast<int32_t>(value));
  } else {
    message.GetReflection()->SetInt64(&message, found, value);
  }
}

void SetFlag(Message& message, const char* field, bool value) {
  const FieldDescriptor* const found = Find(message, field);
  if (found != nullptr) message.GetReflection()->SetBool(&message, found, value);
}

Message* MutablePart(Message& message, const char* field) {
  return message.GetReflection()->MutableMessage(&message, Find(message, field));
}

void ClearPart(Message& message, const char* field) {
  const FieldDescriptor* const found = Find(message, field);
  if (found != nullptr) message.GetReflection()->ClearField(&message, found);
}

const FieldDescriptor* FieldOfType(const Descriptor* message, const Descriptor* type) {
  for (int i = 0; i < message->field_count(); ++i) {
    if (message->field(i)->message_type() == type) return message->field(i);
  }
  return nullptr;
}

}  // namespace rocegw::cli
