// SPDX-License-Identifier: Apache-2.0
// Fields of messages by name, for fields that all kinds of objects and requests have. A missing
// field is empty; setting it does nothing.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <string>

namespace rocegw::cli {

using MessagePtr = std::unique_ptr<google::protobuf::Message>;

MessagePtr NewMessage(const google::protobuf::Descriptor* type);
std::string TextOf(const google::protobuf::Message& message, const char* field);
int64_t NumberOf(const google::protobuf::Message& message, const char* field);
bool FlagOf(const google::protobuf::Message& message, const char* field);
// Returns the default instance for an unset field.
const google::protobuf::Message& PartOf(const google::protobuf::Message& message,
                                        const char* field);
bool HasField(const google::protobuf::Message& message, const char* field);

void SetText(google::protobuf::Message& message, const char* field, const std::string& value);
void SetNumber(google::protobuf::Message& message, const char* field, int64_t value);
void SetFlag(google::protobuf::Message& message, const char* field, bool value);
google::protobuf::Message* MutablePart(google::protobuf::Message& message, const char* field);
void ClearPart(google::protobuf::Message& message, const char* field);

// Returns the only field of that type: the object in Create and Update requests, the list in
// answers.
const google::protobuf::FieldDescriptor* FieldOfType(const google::protobuf::Descriptor* message,
                                                     const google::protobuf::Descriptor* type);

}  // namespace rocegw::cli
