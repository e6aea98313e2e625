// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/client/objects_client.h"

#include <google/protobuf/field_mask.pb.h>
#include <sys/random.h>

#include <array>
#include <cstdio>

namespace rocegw::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int64_t kPageSize = 1000;

std::string Parent(const Kind& kind, const std::string& parent) {
  return parent.empty() ? std::string(kind.parent) + "/-" : parent;
}

// Create and Update take the object in the only field of its type.
void SetObject(Message& request, const Message& object) {
  const FieldDescriptor* const field = FieldOfType(request.GetDescriptor(), object.GetDescriptor());
  request.GetReflection()->MutableMessage(&request, field)->CopyFrom(object);
}

}  // namespace

std::string NewRequestId() {
  std::array<unsigned char, 16> bytes{};
  (void)getentropy(bytes.data(), bytes.size());
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0F) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3F) | 0x80);
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

CallResult ObjectsClient::Get(const Kind& kind, const std::string& name, MessagePtr& out) {
  const auto& method = kind.Method("Get");
  const MessagePtr request = NewMessage(method.input_type());
  SetText(*request, "name", name);
  out = NewMessage(kind.object);
  return rpc_.Call(MethodPath(method), *request, *out);
}

CallResult ObjectsClient::List(const Kind& kind, const std::string& parent,
                               const std::string& selector, ObjectList& out) {
  const auto& method = kind.Method("List");
  const MessagePtr request = NewMessage(method.input_type());
  const FieldDescriptor* const list = FieldOfType(method.output_type(), kind.object);
  SetNumber(*request, "page_size", kPageSize);
  SetText(*request, "label_selector", selector);
  SetText(*request, "parent", Parent(kind, parent));
  std::string token;
  do {
    const MessagePtr page = NewMessage(method.output_type());
    SetText(*request, "page_token", token);
    CallResult result = rpc_.Call(MethodPath(method), *request, *page);
    if (!result.ok()) return result;
    const auto& reflection = *page->GetReflection();
    for (int i = 0; i < reflection.FieldSize(*page, list); ++i) {
      out.objects.push_back(NewMessage(kind.object));
      out.objects.back()->CopyFrom(reflection.GetRepeatedMessage(*page, list, i));
    }
    out.revision = NumberOf(*page, "revision");
    token = TextOf(*page, "next_page_token");
  } while (!token.empty());
  return {};
}

CallResult ObjectsClient::Watch(const Kind& kind, const std::string& parent,
                                const std::string& selector, int64_t start_revision,
                                const std::function<bool(const Change&)>& on_change,
                                const std::function<void()>& on_synced) {
  const auto& method = kind.Method("Watch");
  const MessagePtr request = NewMessage(method.input_type());
  const MessagePtr message = NewMessage(method.output_type());
  const FieldDescriptor* const changed = FieldOfType(method.output_type(), kind.object);
  const FieldDescriptor* const deleted = method.output_type()->FindFieldByName("deleted");
  SetText(*request, "label_selector", selector);
  SetText(*request, "parent", Parent(kind, parent));
  SetNumber(*request, "start_revision", start_revision);
  bool wanted = true;
  bool progress = true;
  CallResult result;
  // Continues a stream that was interrupted after it had delivered something.
  while (wanted && progress) {
    progress = false;
    result = rpc_.Stream(MethodPath(method), *request, *message, [&] {
      const auto& reflection = *message->GetReflection();
      const int64_t revision = NumberOf(*message, "revision");
      for (int i = 0; wanted && i < reflection.FieldSize(*message, changed); ++i) {
        wanted = on_change({&reflection.GetRepeatedMessage(*message, changed, i), {}, revision});
      }
      for (int i = 0; wanted && i < reflection.FieldSize(*message, deleted); ++i) {
        wanted = on_change({nullptr, reflection.GetRepeatedString(*message, deleted, i), revision});
      }
      if (wanted && FlagOf(*message, "synced") && on_synced) on_synced();
      if (FlagOf(*message, "synced") || NumberOf(*request, "start_revision") != 0) {
        SetNumber(*request, "start_revision", revision + 1);
        progress = true;
      }
      return wanted;
    });
    if (!result.ok() && result.code != kUnavailable) return result;
  }
  return wanted ? result : CallResult();
}

CallResult ObjectsClient::Write(const std::string& method, Message& request,
                                const WriteOptions& options, Message& response) {
  SetText(request, "request_id", options.request_id.empty() ? NewRequestId() : options.request_id);
  SetFlag(request, "validate_only", options.validate_only);
  CallResult result = rpc_.Call(method, request, response);
  if (result.code == kUnavailable) result = rpc_.Call(method, request, response);
  return result;
}

CallResult ObjectsClient::Create(const Kind& kind, const Message& object,
                                 const WriteOptions& options, MessagePtr& out) {
  const auto& method = kind.Method("Create");
  const MessagePtr request = NewMessage(method.input_type());
  SetObject(*request, object);
  out = NewMessage(kind.object);
  return Write(MethodPath(method), *request, options, *out);
}

CallResult ObjectsClient::Update(const Kind& kind, const Message& object,
                                 const std::vector<std::string>& mask, const WriteOptions& options,
                                 MessagePtr& out) {
  const auto& method = kind.Method("Update");
  const MessagePtr request = NewMessage(method.input_type());
  SetObject(*request, object);
  google::protobuf::FieldMask paths;
  for (const std::string& path : mask) paths.add_paths(path);
  MutablePart(*request, "update_mask")->CopyFrom(paths);
  out = NewMessage(kind.object);
  return Write(MethodPath(method), *request, options, *out);
}

CallResult ObjectsClient::Delete(const Kind& kind, const std::string& name, const std::string& etag,
                                 const WriteOptions& options) {
  const auto& method = kind.Method("Delete");
  const MessagePtr request = NewMessage(method.input_type());
  const MessagePtr response = NewMessage(method.output_type());
  SetText(*request, "name", name);
  SetText(*request, "etag", etag);
  return Write(MethodPath(method), *request, options, *response);
}

}  // namespace rocegw::cli
