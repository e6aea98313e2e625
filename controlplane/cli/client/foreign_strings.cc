// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/client/foreign_strings.h"

#include <string>
#include <vector>

#include "gateway/base/foreign_text.h"

namespace rocegw::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void CleanString(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  std::string scratch;
  if (!field.is_repeated()) {
    const std::string& text = reflection.GetStringReference(message, &field, &scratch);
    std::string clean = ForeignLines(text);
    if (clean != text) reflection.SetString(&message, &field, std::move(clean));
    return;
  }
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const std::string& text = reflection.GetRepeatedStringReference(message, &field, i, &scratch);
    std::string clean = ForeignLines(text);
    if (clean != text) reflection.SetRepeatedString(&message, &field, i, std::move(clean));
  }
}

void CleanMessages(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  if (!field.is_repeated()) return CleanStrings(*reflection.MutableMessage(&message, &field));
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i)
    CleanStrings(*reflection.MutableRepeatedMessage(&message, &field, i));
}

}  // namespace

void CleanStrings(Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      CleanString(message, *field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      CleanMessages(message, *field);
    }
  }
}

}  // namespace rocegw::cli
